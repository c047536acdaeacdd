"""How many visitors the app can serve: latencies, errors, server CPU and memory, and whether runs get mixed up.

    python -m benchmarks.load --visitors 1 30 100

For each number of visitors there is a new server, and that many visitors (visitors.py) who open the app one after the
other and then act and think in turns, 10 s on average. Counting begins after a warm-up, in which every visitor comes
to all pages and parts: until then a session grows, because it keeps what its widgets need. Before the visitors come,
one client fills the bounded cache of runs with translations, because its growth is not a leak. At the end all
visitors translate at the same moment, like a class that is told to.

A tenth of the visitors also change something inside the model, and continue with the change; runs of a changed model
are counted separately.

The visitors share one process and one thread, the server has its own process; both use the machine's cores, and the
visitors' share is printed. CPU and memory come from /proc, so this needs Linux. Not measured: the browser, the
network.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median

import numpy as np
import torch

import transformer
from benchmarks.app import cpu_seconds, resident_mb
from benchmarks.visitors import CHANGE, PAGES, WEIGHTS, Answer, Visitor, foreign, more_sentences, sentences
from tools.serve import Server, serve
from transformer.checkpoint.load import Checkpoint
from transformer.runs.interventions import parse
from transformer.runs.trace import Trace

CHECKPOINT = Path(__file__).resolve().parent.parent / "checkpoints" / "zh-en"
AT_ONCE = "translate, all at once"
ACTIONS = ("open", *WEIGHTS, CHANGE, AT_ONCE)
ROUND = ("translate", "step", "step", "step", "head", "part", "part", "page")
SHOWN_PROBLEMS = 5
SETTLE_SECONDS = 0.1  # what a server still does after a run must count as its CPU


@dataclass
class Load:
    """What one number of visitors gave.

    Attributes:
        answers: All that were counted, those of opening the app included.
        seconds: Length of the counted time.
        server_cpu, client_cpu: Seconds of CPU in that time.
        memory: Resident memory of the server by the second, `(seconds, MB)`.
        log_errors: Lines of the server's log that report an exception.
    """

    visitors: int
    answers: list[Answer] = field(default_factory=list)
    seconds: float = 0.0
    server_cpu: float = 0.0
    client_cpu: float = 0.0
    memory: list[tuple[float, float]] = field(default_factory=list)
    log_errors: int = 0

    def slope(self) -> float:
        """Growth of memory in MB a minute: the slope of the line through all samples."""
        at, megabytes = np.array(self.memory).T
        return float(60 * np.polyfit(at, megabytes, 1)[0])


class Judge:
    """Tells whether an answer is about its visitor's own sentence, by translating that sentence here."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        torch.set_num_threads(1)  # as the server does: where two pieces are equally probable, the last digit decides
        self._checkpoint = checkpoint
        self._traces: dict[tuple[str, str], Trace] = {}

    def problems(self, answer: Answer) -> list[str]:
        """What an answer shows that is not its visitor's."""
        examples = self._checkpoint.card.examples
        trace, *beside = [
            self._trace(sentence, answer.changes) for sentence in (answer.sentence or examples[0], *examples)
        ]
        return foreign(answer, trace, beside=beside)

    def _trace(self, sentence: str, changes: str) -> Trace:
        if (sentence, changes) not in self._traces:
            query = self._checkpoint.query(sentence, interventions=parse(changes))
            self._traces[sentence, changes] = self._checkpoint.run(query)
        return self._traces[sentence, changes]


def visitor_of(
    checkpoint: Checkpoint, number: int, own: Iterator[str], *, seed: int, changing: bool = False
) -> Visitor:
    """A visitor who knows what can be chosen on the pages of a checkpoint."""
    config = checkpoint.config
    return Visitor(number, own, n_layers=config.n_decoder_layers, n_heads=config.n_heads, seed=seed, changing=changing)


async def visit(url: str, visitor: Visitor, answers: list[Answer], *, think: float, until: float) -> None:
    """Open the app some time within the first thinking time, look round, then act and think until it is late."""
    await asyncio.sleep(random.Random(visitor.number).uniform(0, think))
    answers.append(await visitor.open(url))
    answers += await visitor.look_round(think / 2)
    while time.monotonic() < until and not answers[-1].error.startswith("Connection"):
        await visitor.think(think)
        answers.append(await visitor.act())


async def fill(url: str, checkpoint: Checkpoint, count: int) -> None:
    """Ask for many translations, one after the other, so that the cache of runs is full.

    They are as long as the visitors' own: memory goes on growing while the cache trades long runs for shorter ones.
    """
    visitor = visitor_of(checkpoint, 0, more_sentences(seed=0), seed=0)
    await visitor.open(url)
    for _ in range(count):
        answer = await visitor.act("translate")
        if answer.error:
            raise RuntimeError(f"The cache could not be filled: {answer.error}")
    await visitor.close()


async def under_load(server: Server, checkpoint: Checkpoint, options: argparse.Namespace, count: int) -> Load:
    """Let visitors come, and count what happens after the warm-up."""
    await fill(server.url, checkpoint, options.fill)
    own = [sentences(number, count, seed=options.seed) for number in range(count)]
    every = round(1 / options.changing) if options.changing else count + 1
    everybody = [
        visitor_of(checkpoint, number, own[number], seed=options.seed, changing=number % every == every - 1)
        for number in range(count)
    ]
    load, answers = Load(count), list[Answer]()
    begin = time.monotonic() + options.warm_up
    end = begin + options.seconds
    visits = [visit(server.url, visitor, answers, think=options.think, until=end) for visitor in everybody]
    working = asyncio.gather(*visits)
    await asyncio.sleep(options.warm_up)
    print(f"{count} visitors: counting", file=sys.stderr, flush=True)
    server_cpu, client_cpu = cpu_seconds(server.pid), time.process_time()
    while time.monotonic() < end:
        load.memory.append((time.monotonic() - begin, resident_mb(server.pid)))
        await asyncio.sleep(1)
    load.seconds = time.monotonic() - begin
    load.server_cpu, load.client_cpu = cpu_seconds(server.pid) - server_cpu, time.process_time() - client_cpu
    await working
    at_once = await asyncio.gather(*(visitor.act("translate") for visitor in everybody))
    load.log_errors = server.log_text().count("Traceback")
    await asyncio.gather(*(visitor.close() for visitor in everybody))
    load.answers = [answer for answer in answers if answer.action == "open" or begin <= answer.at < end]
    load.answers += [replace(answer, action=AT_ONCE) for answer in at_once]
    return load


async def alone(server: Server, checkpoint: Checkpoint, options: argparse.Namespace) -> dict[str, list[float]]:
    """One visitor who does not think: milliseconds of the server's CPU for each action, by name."""
    visitor = visitor_of(checkpoint, 0, sentences(0, 1, seed=options.seed), seed=options.seed)
    await visitor.open(server.url)
    for action in ROUND * len(PAGES):  # once around
        if visitor.can(action):
            await visitor.act(action)
    cost: dict[str, list[float]] = {}
    for action in ROUND * options.alone:
        if not visitor.can(action):
            continue
        before = cpu_seconds(server.pid)
        await visitor.act(action)
        await asyncio.sleep(SETTLE_SECONDS)
        name = f"{'page, to' if action == 'page' else action + ' on'} {visitor.page}"
        cost.setdefault(name, []).append(1000 * (cpu_seconds(server.pid) - before))
    await visitor.close()
    return cost


@contextlib.contextmanager
def fresh_server() -> Iterator[Server]:
    """The app, just started."""
    with tempfile.TemporaryDirectory() as folder, serve("app.py", log=Path(folder) / "log") as server:
        yield server


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(100 * share) * len(ordered) // 100) - 1)]


def table_of_latencies(loads: Sequence[Load]) -> None:
    """Print medians and 95th percentiles of each action."""
    print("\n| visitors | action | count | median | p95 | slowest | received, mean |\n|---|---|---|---|---|---|---|")
    for load in loads:
        for action in ACTIONS:
            found = [answer for answer in load.answers if answer.action == action]
            if found:
                times = [1000 * answer.seconds for answer in found]
                kilobytes = fmean(answer.received_bytes for answer in found) / 1000
                numbers = f"{median(times):.0f} ms | {percentile(times, 0.95):.0f} ms | {max(times):.0f} ms"
                print(f"| {load.visitors} | {action} | {len(found)} | {numbers} | {kilobytes:.1f} KB |")


def table_of_loads(loads: Sequence[Load], wrong: Sequence[Sequence[str]]) -> None:
    """Print what each number of visitors cost, and what went wrong."""
    print(
        "\n| visitors | actions/s | errors | cross-talk | server CPU an action | server, cores | visitors, cores",
        end="",
    )
    print(" | memory | slope |\n|---|---|---|---|---|---|---|---|---|")
    for load, problems in zip(loads, wrong, strict=True):
        counted = sum(answer.action in (*WEIGHTS, CHANGE) for answer in load.answers)
        errors = sum(bool(answer.error) for answer in load.answers) + load.log_errors
        cpu = f"{1000 * load.server_cpu / max(counted, 1):.0f} ms | {load.server_cpu / load.seconds:.2f}"
        memory = f"{load.memory[-1][1]:.0f} MB | {load.slope():+.1f} MB/min"
        print(f"| {load.visitors} | {counted / load.seconds:.1f} | {errors} | {len(problems)} | {cpu}", end="")
        print(f" | {load.client_cpu / load.seconds:.2f} | {memory} |")


def table_of_costs(cost: dict[str, list[float]]) -> None:
    """Print the server's CPU for each action of a single visitor."""
    print("\n| one visitor | count | server CPU, mean |\n|---|---|---|")
    for name, values in sorted(cost.items()):
        print(f"| {name} | {len(values)} | {fmean(values):.1f} ms |")


def judged(loads: Sequence[Load], judge: Judge) -> list[list[str]]:
    """What was shown to the wrong visitor, at each number of visitors."""
    found = []
    for load in loads:
        wrong = [(answer, judge.problems(answer)) for answer in load.answers if not answer.error]
        found.append([f"visitor {answer.visitor}, {answer.action}: {said}" for answer, said in wrong if said])
        failed = [
            f"visitor {answer.visitor}, {answer.action}: {answer.error}" for answer in load.answers if answer.error
        ]
        for problem in [*found[-1][:SHOWN_PROBLEMS], *failed[:SHOWN_PROBLEMS]]:
            print(f"{load.visitors} visitors: {problem}")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, nargs="*", default=[1, 30, 100])
    parser.add_argument("--seconds", type=float, default=180, help="counted time for each number of visitors")
    parser.add_argument("--warm-up", type=float, default=180, help="time before that, with the visitors there")
    parser.add_argument("--think", type=float, default=10, help="mean time between an answer and the next action")
    parser.add_argument("--fill", type=int, default=2400, help="translations that fill the cache of runs beforehand")
    parser.add_argument("--alone", type=int, default=12, help="rounds of the one visitor who does not think")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--changing", type=float, default=0.1, help="share of visitors who change the model, too")
    options = parser.parse_args(arguments)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")
    checkpoint = transformer.load(CHECKPOINT)
    if options.alone:
        with fresh_server() as server:
            table_of_costs(asyncio.run(alone(server, checkpoint, options)))
    loads = []
    for count in options.visitors:
        with fresh_server() as server:
            loads.append(asyncio.run(under_load(server, checkpoint, options, count)))
    wrong = judged(loads, Judge(checkpoint))
    table_of_latencies(loads)
    table_of_loads(loads, wrong)


if __name__ == "__main__":
    main()
