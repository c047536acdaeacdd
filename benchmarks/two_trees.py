"""Decoding, first pictures, steps and memory of this checkout and of another one, such as the commit before a change.

    git worktree add ../before main
    python -m benchmarks.two_trees ../before --turns 15          # milliseconds per target token
    python -m benchmarks.two_trees ../before --turns 15 --app    # first pictures of pages, a step, memory

Each checkout has its own process; one runs while the other waits. Decoding is `benchmarks.decode` with its worker,
which has the same parameters and writes the same sentence. The app is asked by a client without a browser, each time
as a new visitor with a sentence of its own: that is until all of a page has arrived; the browser is not measured.
"""

import argparse
import contextlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.app import by_stepper, resident_mb
from benchmarks.raw_client import RawClient
from tools.serve import Server, serve

PAGES = ("step", "attention", "inside", "positions", "masks", "search", "forcing")
VISITS = 10  # in a row, of which the median counts: after a rest a server looks for garbage
STEPS = 10  # of a run, after its first picture
WORK = ("decode", "trace")


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="the root of the other checkout")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--app", action="store_true", help="measure the app in place of decoding")
    options = parser.parse_args()
    if options.app:
        _measure_app((Path.cwd(), options.other), options.turns)
        return
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


def _measure_app(trees: tuple[Path, Path], turns: int) -> None:
    """Print the medians of both, and the median ratio of a turn."""
    with tempfile.TemporaryDirectory() as logs, contextlib.ExitStack() as running:
        servers = [
            running.enter_context(serve(tree / "app.py", log=Path(logs) / str(place), folder=tree))
            for place, tree in enumerate(trees)
        ]
        print("| | ms here, median | there | ratio in a turn, median |\n|---|---|---|---|")
        for page in (*PAGES, "a step"):
            times: list[list[float]] = [[], []]
            for turn in range(turns + 1):  # the first of each imports the page
                for place in random.Random(turn).sample(range(2), 2):
                    visits = [_visit(servers[place], page, VISITS * turn + number) for number in range(VISITS)]
                    times[place].append(1000 * statistics.median(visits))
            here, there = (one[1:] for one in times)
            ratio = statistics.median(a / b for a, b in zip(here, there, strict=True))
            print(
                f"| {page} | {statistics.median(here):.1f} | {statistics.median(there):.1f} | {ratio:.3f} |", flush=True
            )
        here_mb, there_mb = (resident_mb(server.pid) for server in servers)
        print(f"\nMemory {here_mb:.0f} MB here, {there_mb:.0f} there, {here_mb / there_mb:.3f} times.")


def _visit(server: Server, page: str, number: int) -> float:
    """The seconds of a page's first run for a new visitor, or of one step."""
    sentence = "+".join(random.Random(number).choices("0123456789", k=8))
    with RawClient(server.url) as client:
        client.rerun()
        if page != "a step":
            return client.rerun(page=page, query=f"model=reverse&src={sentence}").seconds
        client.rerun(page="step", query=f"model=reverse&src={sentence}")
        began = time.perf_counter()
        for step in range(1, STEPS):
            by_stepper(client, step)
        return (time.perf_counter() - began) / (STEPS - 1)


def _answer(worker: "subprocess.Popen[str]", question: str) -> str:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(question + "\n")
    worker.stdin.flush()
    return worker.stdout.readline() or sys.exit("a worker has failed")


if __name__ == "__main__":
    main()
