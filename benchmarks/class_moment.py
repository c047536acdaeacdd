"""Benchmark: latency when a whole class translates at once.

    python -m benchmarks.class_moment --visitors 30 100 --rounds 7

A new server for each number of visitors, all on the Step page. In a round each types a new sentence, all at the same
moment; every answer is compared with the visitor's own translation, computed separately. Then each asks for a
neighbour's sentence: the model has nothing to do, so this is the share of Streamlit and of our drawing.

`--beside`: a visitor who types one new sentence after the other, in turns alone and next to a visitor who does the
same with long sentences and 16 beams, without pauses.

Browser and network are left out, and visitors and server share the machine; see `benchmarks.load`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from statistics import median

import transformer
from benchmarks.app import cpu_seconds
from benchmarks.load import CHECKPOINT, SETTLE_SECONDS, Judge, fresh_server, visitor_of
from benchmarks.visitors import Answer, Visitor, more_sentences, sentences
from tools.serve import Server
from transformer.checkpoint.load import Checkpoint

BEAMS = "how=beam&beam=16"
Round = tuple[float, float, float]  # seconds of the middle visitor, of the last, and of the server's CPU


async def everybody(server: Server, visitors: Sequence[Visitor]) -> tuple[Round, list[Answer]]:
    """All translate in the same moment."""
    await asyncio.sleep(SETTLE_SECONDS)
    before = cpu_seconds(server.pid)
    answers = await asyncio.gather(*(visitor.act("translate") for visitor in visitors))
    await asyncio.sleep(SETTLE_SECONDS)
    seconds = [answer.seconds for answer in answers]
    return (median(seconds), max(seconds), cpu_seconds(server.pid) - before), answers


async def class_of(
    server: Server, checkpoint: Checkpoint, options: argparse.Namespace, count: int
) -> tuple[list[Round], list[Round], list[Answer]]:
    """The rounds of new sentences, those of known ones, and all answers."""
    texts = [list(islice(sentences(number, count, seed=options.seed), options.rounds)) for number in range(count)]
    own = [chain.from_iterable(zip(texts[n], texts[n - 1], strict=True)) for n in range(count)]
    visitors = [visitor_of(checkpoint, number, own[number], seed=options.seed) for number in range(count)]
    new, known, answers = list[Round](), list[Round](), list[Answer]()
    for visitor in visitors:
        answers.append(await visitor.open(server.url))
    for _ in range(options.rounds):
        for rounds in (new, known):
            numbers, found = await everybody(server, visitors)
            rounds.append(numbers)
            answers += found
    await asyncio.gather(*(visitor.close() for visitor in visitors))
    return new, known, answers


async def beside(server: Server, checkpoint: Checkpoint, options: argparse.Namespace) -> tuple[list[float], ...]:
    """Milliseconds of each new sentence of a visitor alone, and beside one who loops over beams of 16."""
    visitor = visitor_of(checkpoint, 0, more_sentences(seed=1), seed=1)
    long = (6 * text for text in more_sentences(seed=2))
    looping = visitor_of(checkpoint, 1, long, seed=2)
    await visitor.open(server.url)
    await looping.open(server.url, query=BEAMS)
    times: tuple[list[float], list[float]] = [], []
    for turn in range(2 * options.rounds):
        loop = asyncio.create_task(_for_ever(looping)) if turn % 2 else None
        for _ in range(options.sentences):
            await asyncio.sleep(options.think)
            answer = await visitor.act("translate")
            if answer.error:
                raise RuntimeError(answer.error)
            times[turn % 2].append(1000 * answer.seconds)
        if loop is not None:
            loop.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await loop
            await looping.close()
            looping = visitor_of(checkpoint, 1, long, seed=2)
            await looping.open(server.url, query=BEAMS)
    return times


async def _for_ever(visitor: Visitor) -> None:
    while True:
        answer = await visitor.act("translate")
        if answer.error:
            raise RuntimeError(answer.error)


def row(rounds: Sequence[Round]) -> str:
    """Medians over rounds, as cells of a table."""
    middle, last, cpu = (list(values) for values in zip(*rounds, strict=True))
    return f"{median(middle):.2f} s | {median(last):.2f} s | {min(last):.2f}-{max(last):.2f} s | {median(cpu):.2f} s"


def classes(checkpoint: Checkpoint, options: argparse.Namespace) -> Iterator[str]:
    """The table of classes, line by line."""
    judge = Judge(checkpoint)
    yield "| visitors | sentences | middle | last | range of the last | server CPU a round | wrong | load |"
    yield "|---|---|---|---|---|---|---|---|"
    for count in options.visitors:
        started = time.monotonic()
        with fresh_server() as server:
            new, known, answers = asyncio.run(class_of(server, checkpoint, options, count))
        wrong = sum(bool(answer.error or judge.problems(answer)) for answer in answers)
        load = f"{wrong} of {len(answers)} | {os.getloadavg()[0]:.1f} after {time.monotonic() - started:.0f} s"
        for name, rounds in (("new", new), ("known", known)):
            yield f"| {count} | {name} | {row(rounds)} | {load} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, nargs="*", default=[30, 100])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--beside", action="store_true", help="next to a visitor who loops over beams, instead")
    parser.add_argument("--sentences", type=int, default=10, help="per turn, of the visitor next to the looping one")
    parser.add_argument("--think", type=float, default=0.2, help="seconds between an answer and the next sentence")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    checkpoint = transformer.load(CHECKPOINT)
    if not options.beside:
        for line in classes(checkpoint, options):
            print(line, flush=True)
        return
    with fresh_server() as server:
        alone, with_looping = asyncio.run(beside(server, checkpoint, options))
    for name, times in (("alone", alone), ("beside beams of 16", with_looping)):
        print(f"{name}: median {median(times):.0f} ms, slowest {max(times):.0f} ms, n {len(times)}")
    print(f"ratio of the medians: {median(with_looping) / median(alone):.1f}; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
