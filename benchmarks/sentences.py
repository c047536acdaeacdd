"""A file of sentences: lines run one at a time against lines decoded together, on the checkpoint zh-en.

    python -m benchmarks.sentences --pairs test.tsv --turns 5

One at a time is `checkpoint.run` of each line, which keeps all maps; together is `run_lines`, as in the command
`sentences` and on the page. Both on one thread, in turns; the script first checks that outputs and log-probabilities
are the same to the last bit.

    python -m benchmarks.sentences --pairs test.tsv --others

Milliseconds that a visitor waits for a sentence of their own, with and without a file being run.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

from glassformer.extensions.sentences.line_runs import ROWS, run_lines
from glassformer.extensions.sentences.sentence_runs import SentenceRuns
from glassformer.server.model_runner import ModelRunner
from glassformer.state.link import Link
from transformer.checkpoint.load import Checkpoint, load
from transformer.runs.query import Query, Sampling
from transformer.runs.sentence_files import SentenceLine, read_file

ASKED, THINK_SECONDS = 20, 0.1
ZH_EN = Path(__file__).resolve().parents[1] / "checkpoints" / "zh-en"
_Found = dict[int, tuple[str, float | None]]


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--pairs", type=Path, required=True, metavar="FILE", help="one source per line, or source TAB reference"
    )
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--others", action="store_true", help="measure how long other visitors wait")
    options = parser.parse_args()
    torch.set_num_threads(1)
    checkpoint = load(ZH_EN)
    lines = read_file(options.pairs)[: options.lines]
    if options.others:
        _print_others(checkpoint, lines, options.turns)
        return
    ways: dict[str, Callable[[], _Found]] = {"one at a time": lambda: _alone(checkpoint, lines)}
    for rows in (4, 16, ROWS):
        ways[f"{rows} together"] = lambda rows=rows: _together(checkpoint, lines, rows)  # type: ignore[misc]
    found = [work() for work in ways.values()]
    if any(one != found[0] for one in found):
        raise SystemExit("the ways do not give the same.")
    print(
        f"{len(lines)} lines, {len(found) - 1} ways that give what each line alone gives, to the last bit.", flush=True
    )
    _print(_timed(ways, options.turns), len(lines))


def _alone(checkpoint: Checkpoint, lines: tuple[SentenceLine, ...]) -> _Found:
    traces = ((line.number, checkpoint.run(line.source)) for line in lines)
    return {number: (trace.output_text, trace.log_prob) for number, trace in traces}


def _together(checkpoint: Checkpoint, lines: tuple[SentenceLine, ...], rows: int) -> _Found:
    how = Query(checkpoint=checkpoint.content_hash, source="")
    return {one.line.number: (one.output, one.log_prob) for one in run_lines(checkpoint, lines, how, rows=rows)}


def _timed(ways: dict[str, Callable[[], _Found]], turns: int) -> dict[str, list[float]]:
    """Seconds of CPU of each turn: the machine may have other work."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns):
        for name in random.Random(turn).sample(list(ways), len(ways)):
            before = time.process_time()
            ways[name]()
            times[name].append(time.process_time() - before)
    return times


def _print(times: dict[str, list[float]], n: int) -> None:
    first = next(iter(times.values()))
    print("| | CPU a line, median of turns | range of turns | times as fast | range |\n|---|---|---|---|---|")
    for name, seconds in times.items():
        each = [1000 * one / n for one in seconds]
        ratios = [a / b for a, b in zip(first, seconds, strict=True)]
        print(
            f"| {name} | {statistics.median(each):.1f} ms | {min(each):.1f}-{max(each):.1f} ms "
            f"| {statistics.median(ratios):.1f} | {min(ratios):.1f}-{max(ratios):.1f} |"
        )


def _print_others(checkpoint: Checkpoint, lines: tuple[SentenceLine, ...], turns: int) -> None:
    runner = ModelRunner()
    waits: dict[str, list[float]] = {"nobody runs a file": [], "a file is run": []}
    sources = iter([line.source for line in lines] * 50)
    for turn in range(turns):
        for name, times in waits.items():
            jobs = SentenceRuns(runner)
            job = jobs.start(checkpoint, lines, Link()) if name == "a file is run" else None
            for place in range(ASKED):
                time.sleep(THINK_SECONDS)
                how = Sampling(seed=1000 * turn + place, temperature=0.05)  # nothing that was kept
                query = checkpoint.query(next(sources), decoding=how)
                before = time.monotonic()
                runner.trace(checkpoint, query)
                times.append(1000 * (time.monotonic() - before))
            if job is not None:
                if not job.seen.is_under_way:
                    raise SystemExit("the file was over before the others had asked; give more --lines.")
                jobs.withdraw(job.about.id)
    print("| | p50 | p95 | n |\n|---|---|---|---|")
    for name, times in waits.items():
        cuts = statistics.quantiles(times, n=20)
        print(f"| {name} | {statistics.median(times):.0f} ms | {cuts[-1]:.0f} ms | {len(times)} |")


if __name__ == "__main__":
    main()
