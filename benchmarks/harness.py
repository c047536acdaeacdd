"""One way to compare programs: sides in turns, medians and ratios in one table, and what all sides need.

A claim is a module with `measure(settings)`, which yields a `Comparison` for each row of its table. `turns` lets the
sides of a comparison work one after the other in the same minutes, because a busy machine changes. A side whose
memory, imports or threads matter has its own process, a `worker`. `app` serves the app or a script on a free port with
a client (`raw_client`), `chromium` starts a browser. CPU and memory come from /proc, so this needs Linux.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib import import_module, metadata
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from benchmarks.raw_client import RawClient
from tools.browser import REMEDY, find_browser
from tools.serve import Server, serve

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parent.parent
CHECKPOINTS = ROOT / "checkpoints"
IMPORTS = "import torch, streamlit, plotly, sentencepiece, pandas"
EMPTY_APP = f"{IMPORTS}\nimport streamlit as st\n\nst.text('empty')\n"
"""A page with nothing on it, in a process that holds what the app imports: what Streamlit costs by itself."""
BROWSER_FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
VERSIONS = ("torch", "streamlit", "transformers", "ctranslate2", "bertviz")  # of the programs that are compared
K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the command line says to all claims.

    Attributes:
        quick: Small counts, to see that a claim runs; its figures say nothing.
        turns: How many turns, in place of the claim's own number.
        only: What a claim is to be limited to: checkpoints, models or mistakes by name.
        folder: Where a claim keeps or finds its files; a temporary one if there is none.
        device: Where training learns.
    """

    quick: bool = False
    turns: int | None = None
    only: tuple[str, ...] = ()
    folder: Path | None = None
    device: str = "cpu"

    def n(self, usual: int, quick: int) -> int:
        """A count."""
        return quick if self.quick else usual

    def n_turns(self, usual: int) -> int:
        """The number of turns."""
        return self.turns or self.n(usual, 1)

    def chosen(self, names: Sequence[str], usual: Sequence[str] = ()) -> tuple[str, ...]:
        """Those of some names that the command line asks for; `usual` (or all) if it says nothing."""
        if unknown := set(self.only) - set(names):
            raise SystemExit(f"{', '.join(sorted(unknown))}: there is only {', '.join(names)}.")
        return self.only or tuple(usual or names)

    @contextlib.contextmanager
    def work(self) -> Iterator[Path]:
        """The folder for files."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            yield self.folder
            return
        with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
            yield Path(folder)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A row of the table: what was measured, one number a turn on each side.

    Attributes:
        what: What was measured.
        ours: Our numbers.
        peer: Those of whom we compare with, in the same turns; empty if there is nobody.
        peer_name: Who that is.
        unit: Of both.
        rate: They are rates: more is better.
        more: The ratio says how many times as fast ours is, not how many times as long it takes.
        aim: In words.
        headline: It is the row of its claim in the README.
    """

    what: str
    ours: Sequence[float]
    peer: Sequence[float] = ()
    peer_name: str = ""
    unit: str = "s"
    rate: bool = False
    more: bool = False
    aim: str = ""
    headline: bool = False

    def ratios(self) -> list[float]:
        """The ratio of each turn; none if there is nobody to compare with, or one would divide by 0."""
        pairs = list(zip(self.ours, self.peer, strict=True)) if self.peer else []
        if self.more != self.rate:
            pairs = [(theirs, mine) for mine, theirs in pairs]
        return [one / other for one, other in pairs] if all(other for _, other in pairs) else []

    def row(self) -> str:
        """A row of Markdown."""
        theirs = f"{shown(median(self.peer), self.unit)}, {self.peer_name}" if self.peer else ""
        ratios, of = self.ratios(), self.ratios() or self.ours
        low, high = (f"{value:.2f}" if ratios else shown(value, self.unit) for value in (min(of), max(of)))
        word = "fast" if self.more else "long" if self.unit in ("s", "ms") else "much"
        ratio = f"**{median(ratios):.2f}** times as {word}" if ratios else ""
        cells = (self.what, shown(median(self.ours), self.unit), theirs, ratio, f"{low} to {high}", str(len(of)))
        return f"| {' | '.join((*cells, self.aim))} |"


def shown(value: float, unit: str) -> str:
    """A number with its unit and three digits that count, such as 1.23 s, 12.3 ms or 1,234 MB."""
    digits = next((n for n, least in ((0, 100), (1, 10), (2, 0.1)) if abs(value) >= least), 3 if value else 0)
    return f"{value:,.{digits if unit else 0}f} {unit}".rstrip()


HEADS = "| | Glassformer | compared with | ratio | range of turns | n | aim |\n|---|---|---|---|---|---|---|"


def table(rows: Sequence[Comparison]) -> str:
    """The table of some comparisons, in Markdown."""
    return "\n".join([HEADS, *(row.row() for row in rows)])


def machine(command: str) -> str:
    """Where, when and with what was measured: the head of a table."""
    found = []
    for name in VERSIONS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    cores, load = os.cpu_count(), os.getloadavg()[0]
    programs = ", ".join([f"Python {platform.python_version()}", *found])
    return f"`{command}`, {date.today():%d %B %Y}; {cores} cores of {_processor()}, load {load:.1f} before; {programs}."


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    flags = next((line for line in lines if line.startswith("flags")), "")
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "a processor")
    return f"{name} ({'with' if 'amx_bf16' in flags.split() else 'without'} a matrix unit)"


def turns(sides: Mapping[K, Callable[[], T]], count: int, *, warm_up: int = 0) -> dict[K, list[T]]:
    """What each side gives in each turn that counts, after those that do not.

    Every other turn goes backwards, so that no side always follows the same one.
    """
    found: dict[K, list[T]] = {name: [] for name in sides}
    for turn in range(-warm_up, count):
        for name in sides if turn % 2 == 0 else reversed(list(sides)):
            said = sides[name]()
            if turn >= 0:
                found[name].append(said)
        print(f"  turn {turn + 1} of {count}", file=sys.stderr, flush=True)
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-round(100 * share) * len(ordered) // 100) - 1)]


def timed(work: Callable[[], object], seconds: float = 0.0) -> float:
    """Seconds of a piece of work, the median over at least so many seconds."""
    times, began = list[float](), time.perf_counter()
    while not times or time.perf_counter() - began < seconds:
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return median(times)


# ---------------------------------------------------------------- processes


class Reply(NamedTuple):
    """What a worker answered: seconds by the clock and of all its threads, and the most memory it has had so far."""

    said: Any
    wall: float
    cpu: float
    peak_mb: float


@contextlib.contextmanager
def worker(module: str, side: str, given: object = None) -> Iterator[Callable[[object], Reply]]:
    """A side in its own process: what asks it, and waits for its answer; questions and answers are JSON.

    `side(name, given)` of a module of benchmarks returns the function that answers there. A RuntimeError of a side that
    has failed has the end of what it said.
    """
    command = [sys.executable, "-m", "benchmarks.harness", module, side, json.dumps(given)]
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
    ) as process:  # fmt: skip

        def ask(question: object) -> Reply:
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(question) + "\n")
                process.stdin.flush()
            if answer := process.stdout.readline():
                return Reply(*json.loads(answer))
            log.seek(0)
            raise RuntimeError(f"{side} of {module} has failed: {log.read()[-2000:]}")

        try:
            yield ask
        finally:
            process.kill()


def _answer(module: str, side: str, given: str) -> None:
    """Answer the questions on standard input, a line of JSON each, until it ends."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is no answer
    answer = import_module(f"benchmarks.{module}").side(side, json.loads(given))
    for question in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        said = answer(json.loads(question))
        spent = time.perf_counter() - wall, time.process_time() - cpu
        print(json.dumps([said, *spent, memory_mb(os.getpid(), "VmHWM")]), file=out, flush=True)


def cpu_seconds(pid: int) -> float:
    """The CPU time, user and system, that all threads of a process have used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int, kind: str = "VmRSS") -> float:
    """Megabytes that a process has in memory (VmRSS), or has had at most (VmHWM)."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(kind))


# ---------------------------------------------------------------- the app and a browser


@contextlib.contextmanager
def app(script: str = "app.py", *, arguments: Sequence[str] = ()) -> Iterator[tuple[Server, RawClient]]:
    """Serve an app, a path or the text of a script, and connect a client; its first run is done."""
    with tempfile.TemporaryDirectory() as folder:
        path: str | Path = script
        if "\n" in script:
            path = Path(folder) / "throwaway.py"
            path.write_text(script, encoding="utf-8")
        with serve(path, log=Path(folder) / "log", arguments=arguments) as server, RawClient(server.url) as client:
            client.rerun()
            yield server, client


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    executable = find_browser()
    if executable is None:
        raise SystemExit(REMEDY)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=executable, args=list(BROWSER_FLAGS))
        yield browser
        browser.close()


if __name__ == "__main__":
    _answer(*sys.argv[1:])
