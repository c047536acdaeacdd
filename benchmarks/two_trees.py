"""Milliseconds per target token of this checkout and of another one, such as the commit before a change.

    git worktree add ../before main
    python -m benchmarks.two_trees ../before --turns 15

Each checkout has its own process, `benchmarks.decode` with its worker of the same name, which has the same parameters
and writes the same sentence; one runs while the other waits.
"""

import argparse
import random
import statistics
import subprocess
import sys
from pathlib import Path

WORK = ("decode", "trace")


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="the root of the other checkout")
    parser.add_argument("--turns", type=int, default=15)
    options = parser.parse_args()
    print("| | ms a token, least here | there | ratio | ratio in a turn, median | range |\n|---|---|---|---|---|---|")
    for work in WORK:
        here, there = _measure((Path.cwd(), options.other), work, options.turns)
        ratios = [a / b for a, b in zip(here, there, strict=True)]
        least = f"{min(here):.3f} | {min(there):.3f} | {min(here) / min(there):.3f}"  # what else runs only adds
        print(
            f"| {work} | {least} | {statistics.median(ratios):.3f} | {min(ratios):.2f}-{max(ratios):.2f} |", flush=True
        )


def _measure(trees: tuple[Path, Path], work: str, turns: int) -> list[list[float]]:
    command = [sys.executable, "-m", "benchmarks.decode", "--worker", work, "--threads", "1"]
    workers = [
        subprocess.Popen(
            command, cwd=tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        for tree in trees
    ]  # fmt: skip
    written: set[str] = {_answer(worker, "write") for worker in workers}
    times: list[list[float]] = [[], []]
    if len(written) > 1:
        sys.exit("the two checkouts do not write the same tokens")
    for turn in range(turns):
        for place in random.Random(turn).sample(range(2), 2):
            times[place].append(float(_answer(workers[place], "time")))
    for worker in workers:
        worker.terminate()
    return times


def _answer(worker: "subprocess.Popen[str]", question: str) -> str:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(question + "\n")
    worker.stdin.flush()
    return worker.stdout.readline() or sys.exit("a worker has failed")


if __name__ == "__main__":
    main()
