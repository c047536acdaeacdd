"""Milliseconds per target token: our decoding and our full trace against Hugging Face and CTranslate2.

    python -m benchmarks.decode --turns 7
    python -m benchmarks.decode --shapes zh-en --batches 1 --turns 3

All programs have the same parameters (`benchmarks.same_model`), read the same sentences and write greedily; the
script first checks that they write the same pieces. The shapes `zh-en` and `en-fr` are the shipped checkpoints with
eight sentences; the others have random parameters, read 20 tokens and write 30. Times are those of whole sentences,
encoder included, divided by the number of pieces they write. Each program has its own process, and one works while
the others wait; a turn of one takes about `--seconds`. A program's time is that of its better number of threads.

Ours runs with each draft that it has (`extensions.drafts.drafter`), named by GLASSFORMER_DRAFT.

Needs: pip install transformers ctranslate2 (tried with 5.23.0 and 4.8.5).
"""

import argparse
import copy
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks import same_model
from benchmarks.same_model import CHECKPOINTS
from glassformer.extensions.drafts import drafter
from transformer.checkpoint.load import Checkpoint, load
from transformer.runs.query import Query
from transformer.runs.reading import go_on, read
from transformer.runs.running import run_batch, write

DRAFTS = ("none", "int8", "ctranslate2")
LABELS = {
    "hf": "Hugging Face `generate`",
    "hf-attentions": "Hugging Face `generate(output_attentions=True)`",
    "ctranslate2": "CTranslate2, float32",
    "decode": "our decoding",
    "trace": "our full trace",
}
OURS = ("decode", "trace")
Ids = list[int]
Work = Callable[[], list[Ids]]  # writes all sentences


class Program(NamedTuple):
    """What has a process of its own."""

    work: str
    draft: str = ""

    @property
    def label(self) -> str:
        """Its row's label."""
        return LABELS[self.work] + (f", draft: {self.draft}" if self.draft else "")


PROGRAMS = [
    *(Program(work) for work in LABELS if work not in OURS),
    *(Program(work, draft) for work in OURS for draft in DRAFTS),
]
Times = dict[tuple[Program, int, int], list[float]]  # milliseconds a token of each turn, by batch and threads


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=same_model.SHAPES, default=["zh-en", "en-fr", "opus-mt", "gpt2"])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32], help="sentences at once")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads to try")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="least length of a turn")
    parser.add_argument("--processor", action="store_true", help="count the processor's time, for a busy machine")
    parser.add_argument("--worker", choices=LABELS, help=argparse.SUPPRESS)
    parser.add_argument("--checkpoint", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _answer(options)
        return
    ratios = []
    for shape in options.shapes:
        with tempfile.TemporaryDirectory() as folder:
            shipped = shape in same_model.SENTENCES
            path = CHECKPOINTS / shape if shipped else same_model.stored(same_model.peer_of(shape), Path(folder))
            times, right = _measure(shape, path, options)
        for batch in options.batches:
            best = _report(shape, batch, times)
            ratios.append(_ratios(shape, batch, best, right[batch]))
    print("\n| | at once | Hugging Face with attentions / our full trace | our decoding / CTranslate2 | drafts right |")
    print("|---|---|---|---|---|")
    print("\n".join(ratios))
    print(f"\nBoth columns of ratios: with the drafts {', '.join(DRAFTS)}.", end=" ")
    print("Aims: at least 2.2 with int8 and 3.0 with ctranslate2; at most 1.2.")


def _measure(shape: str, path: Path, options: argparse.Namespace) -> tuple[Times, dict[int, dict[str, str]]]:
    """The times of a shape, and for each batch how often each draft was right."""
    workers = {program: _start(program, shape, path, options) for program in PROGRAMS}
    for batch in options.batches:
        expected = _ask(workers[PROGRAMS[0]], "write", batch, options.threads[0])
        for program, worker in workers.items():
            for threads in options.threads:
                if _ask(worker, "write", batch, threads) != expected:
                    sys.exit(
                        f"{shape}, {batch} at once: other tokens than Hugging Face's: {program}, {threads} threads"
                    )
        pieces = [i for ids in expected for i in ids]
        print(f"{shape}, {batch} at once: all write the same {len(pieces)} tokens, {len(set(pieces))} different ones.")
    right = {
        batch: {draft: _ask(workers[Program("trace", draft)], "right", batch, 1) for draft in DRAFTS[1:]}
        for batch in options.batches
    }
    places = [(*one, n) for one in ((p, b) for p in PROGRAMS for b in options.batches) for n in options.threads]
    times: Times = {place: [] for place in places}
    for turn in range(options.turns):
        random.Random(turn).shuffle(places)
        for place in places:
            times[place].append(float(_ask(workers[place[0]], "time", *place[1:])))
        print(f"{shape}: turn {turn + 1} of {options.turns}", file=sys.stderr, flush=True)
    for worker in workers.values():
        worker.terminate()
        worker.wait()
    return times, right


def _start(program: Program, shape: str, path: Path, options: argparse.Namespace) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.decode", "--worker", program.work, "--shapes", shape]
    command += ["--checkpoint", str(path), "--seconds", str(options.seconds)]
    command += ["--processor"] * options.processor
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, env=os.environ | {drafter.ENVIRONMENT: program.draft or "none"},
    )  # fmt: skip


def _ask(worker: "subprocess.Popen[str]", *question: object) -> Any:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(" ".join(map(str, question)) + "\n")
    worker.stdin.flush()
    answer = worker.stdout.readline()
    if not answer:
        sys.exit(f"a worker has failed: {' '.join(map(str, worker.args))}")  # type: ignore[arg-type]
    return json.loads(answer)


def _answer(options: argparse.Namespace) -> None:
    """Answer the questions that come on standard input: what, and perhaps how many at once, with how many threads."""
    shape = options.shapes[0]
    side = _Side(options.worker, shape, load(options.checkpoint or CHECKPOINTS / shape))
    works: dict[tuple[int, int], Work] = {}
    with torch.inference_mode():
        for question in sys.stdin:
            what, *numbers = question.split()
            batch, n = map(int, numbers) if numbers else (1, options.threads[0])
            torch.set_num_threads(n)
            if (batch, n) not in works:
                works[batch, n] = side.work(batch, n)
                works[batch, n]()
            work = works[batch, n]
            if what == "right":
                print(json.dumps(side.right(batch, n, work())), flush=True)
            else:
                print(json.dumps(work() if what == "write" else _time(work, options)), flush=True)


def _time(work: Work, options: argparse.Namespace) -> float:
    """Milliseconds a token, the median of the times of all sentences, after one that does not count."""
    times: list[float] = []
    n_tokens = sum(map(len, work()))
    clock = time.process_time if options.processor else time.perf_counter
    began = clock()
    while not times or clock() - began < options.seconds:
        started = clock()
        work()
        times.append(clock() - started)
    return 1000 * statistics.median(times) / n_tokens


class _Side:
    """One program's model."""

    def __init__(self, name: str, shape: str, checkpoint: Checkpoint) -> None:
        self.name, self.shape = name, shape
        self.ends = shape in same_model.SENTENCES
        self.most = same_model.LONGEST if self.ends else same_model.TARGET_TOKENS
        self.peer: Any = None if name in OURS else same_model.peer_of(shape)
        self._checkpoint = checkpoint
        self.config = self._checkpoint.config
        self._by_threads: dict[int, Any] = {}

    def work(self, batch: int, threads: int) -> Work:
        """What writes all sentences, so many at a time."""
        queries = self.queries(batch)
        batches = [queries[start : start + batch] for start in range(0, len(queries), batch)]
        if self.name in OURS:
            checkpoint = self.checkpoint(threads)
            if self.name == "trace":
                return lambda: [list(one.tgt_ids) for some in batches for one in run_batch(checkpoint, some)]
            return lambda: [list(ids) for some in batches for ids in write(checkpoint, some)]
        sources = [[list(source.ids) for source in read(self._checkpoint, some).sources] for some in batches]
        one = self._ctranslate2(threads) if self.name == "ctranslate2" else self._hugging_face()
        return lambda: [ids for some in sources for ids in one(some)]

    def queries(self, batch: int) -> list[Query]:
        """The sentences, as many as fill batches."""
        texts = same_model.texts(self.shape, batch)
        return [self._checkpoint.query(text, max_new=self.most) for text in texts]

    def checkpoint(self, threads: int) -> Checkpoint:
        """Ours, with drafts of its own: they are made for a number of threads."""
        if threads not in self._by_threads:
            self._by_threads[threads] = replace(self._checkpoint, model=copy.copy(self._checkpoint.model))
        found: Checkpoint = self._by_threads[threads]
        return found

    def right(self, batch: int, threads: int, written: list[Ids]) -> str:
        """How many pieces of the drafts stand before the first wrong one, and how many drafts are right."""
        checkpoint, right, whole, name = self.checkpoint(threads), 0, 0, ""
        for query, ids in zip(self.queries(batch), written, strict=True):
            reading = read(checkpoint, [query])
            draft = drafter.draft_for(reading)
            if draft is None:
                return "no draft"
            (guess,) = draft.write(reading, [0], [()], go_on)
            name = draft.name
            right += next((t for t, (a, b) in enumerate(zip(guess, ids, strict=False)) if a != b), len(ids))
            whole += list(guess) == ids
        return f"{name} {right} of {sum(map(len, written))} tokens, {whole} of {len(written)} outputs"

    def _cut(self, rows: Iterable[Ids]) -> list[Ids]:
        """Rows up to their end piece."""
        end = self.config.eos_id
        return [row[: row.index(end) + 1] if self.ends and end in row else row for row in rows]

    def _hugging_face(self) -> Callable[[list[Ids]], list[Ids]]:
        attentions, fill, alone = self.name == "hf-attentions", self.config.fill_id, not self.config.n_encoder_layers
        if attentions:
            self.peer.set_attn_implementation("eager")  # the only one that returns attention weights
        options: dict[str, Any] = {"max_new_tokens": self.most, "num_beams": 1, "do_sample": False}
        options |= {"output_attentions": attentions, "return_dict_in_generate": True}

        def one(rows: list[Ids]) -> list[Ids]:
            width = max(map(len, rows))
            src = torch.tensor([row + [fill] * (width - len(row)) for row in rows])
            mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
            result = self.peer.generate(src, attention_mask=mask, **options)
            if attentions and not (result.attentions if alone else result.cross_attentions):
                raise RuntimeError("no attentions came back")
            return self._cut(result.sequences[:, width if alone else 1 :].tolist())

        return one

    def _ctranslate2(self, threads: int) -> Callable[[list[Ids]], list[Ids]]:
        if threads not in self._by_threads:
            self._by_threads[threads] = same_model.ctranslate2(self.peer, self.config, threads=threads)
        engine, least = self._by_threads[threads], 1 if self.ends else self.most

        def one(rows: list[Ids]) -> list[Ids]:
            tokens = list(map(same_model.names, rows))
            if not self.config.n_encoder_layers:
                options = {"max_length": self.most, "min_length": least, "include_prompt_in_result": False}
                return [result.sequences_ids[0] for result in engine.generate_batch(tokens, **options)]
            options = {"beam_size": 1, "min_decoding_length": least, "max_decoding_length": self.most}
            found = engine.translate_batch(tokens, return_end_token=True, **options)
            return [list(map(int, result.hypotheses[0])) for result in found]

        return one


def _report(shape: str, batch: int, times: Times) -> dict[Program, float]:
    """Print the times of one shape and batch; returns the best median of each program."""
    threads = sorted({n for _, _, n in times})
    heads = [f"{n} thread{'s' * (n > 1)}" for n in threads]
    print(f"\n{shape}, {batch} at once: ms a token, median and range of turns\n\n| | {' | '.join(heads)} |")
    print("|---" * (1 + len(heads)) + "|")
    best = {}
    for program in PROGRAMS:
        found = [times[program, batch, n] for n in threads]
        best[program] = min(map(statistics.median, found))
        cells = [f"{statistics.median(one):.3f} ({min(one):.3f}-{max(one):.3f})" for one in found]
        print(f"| {program.label} | {' | '.join(cells)} |", flush=True)
    return best


def _ratios(shape: str, batch: int, best: dict[Program, float], right: dict[str, str]) -> str:
    faster = [f"{best[Program('hf-attentions')] / best[Program('trace', draft)]:.2f}" for draft in DRAFTS]
    slower = [f"{best[Program('decode', draft)] / best[Program('ctranslate2')]:.2f}" for draft in DRAFTS]
    return f"| {shape} | {batch} | {', '.join(faster)} | {', '.join(slower)} | {'; '.join(right.values())} |"


if __name__ == "__main__":
    main()
