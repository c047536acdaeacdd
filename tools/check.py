"""`make check`: lint, types, and for about a minute the tests nearest to what changed, by the graph of imports.

    make check                  # what git says has changed since the last commit; if nothing, the last commit
    make check SINCE=main       # what has changed since a commit or a branch
    make check SECONDS=300      # more time for tests

A test is as near as the number of imports between it and the change. Nearest of all is the test of a module, whose
path mirrors the module's: `tests/glassformer/charts/test_marks.py` is the test of `glassformer/charts/marks.py`. Names
of modules in strings count as imports, and so do pages that a test opens. At a changed script of a browser component,
the tests of JavaScript are chosen, and browser tests of its name. When the time is over, what was not reached is
counted: `make test` runs all.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from tools import imports

ROOT = imports.ROOT
SECONDS = 60.0  # for tests; lint and types take up to half a minute more
MOST_FILES = 120  # of tests: collecting more would take the time of running some
FURTHEST = 4  # imports between a test and a change
PROCESSES = 2
OF_SOURCE = ("names", "layering", "words", "plain_words", "docs")  # tests that read all source code, always run last
COMPONENT = re.compile(r"components?/(?:(\w+)/)?(\w+)\.(?:js|css)$")


def changed(since: str = "") -> list[str]:
    """The paths that have changed since a commit; since the last one if none is named, or else in it."""
    new = _git("ls-files", "--others", "--exclude-standard")
    found = _git("diff", "--name-only", since or "HEAD") + new
    return sorted({*(found or _git("diff", "--name-only", "HEAD~1", "HEAD"))})


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"`make check` asks git what has changed, and git says: {done.stderr.strip()}")
    return done.stdout.splitlines()


@cache
def modules() -> dict[str, Path]:
    """Every module of the product and of the tests by its name."""
    tests = {".".join(file.relative_to(ROOT).with_suffix("").parts): file for file in (ROOT / "tests").rglob("*.py")}
    return imports.files() | tests


@cache
def importers() -> dict[str, set[str]]:
    """For each module, those that import it, name it in a string or, if it is a page, open it."""
    graph = imports.graph(modules())
    pages = {name.rpartition(".")[2]: name for name in modules() if re.search(r"(^|\.)pages\.", name)}
    alone = (name for name in modules() if re.fullmatch(r"glassformer\.extensions\.\w+\.page", name))
    pages |= {name.split(".")[2].removesuffix("_page"): name for name in alone}
    pages = {short: name for short, name in pages.items() if not name.startswith("tests.")}
    found: dict[str, set[str]] = {name: set() for name in modules()}
    for name, file in modules().items():
        text = file.read_text(encoding="utf-8")
        named = {word.partition(":")[0] for word in re.findall(r"[\"']([\w.]+(?::\w+)?)[\"']", text) if "." in word}
        tests: set[str] = set()
        if name.startswith("tests."):
            words = {*re.findall(r"\w+(?:\.py\b)?", text)}
            tests = {page for short, page in pages.items() if {short.upper(), f"{short}.py"} & words}
        for other in (graph[name] | (named & modules().keys()) | tests) - {name}:
            found[other].add(name)
    return found


def distances(changes: Sequence[str]) -> dict[str, int]:
    """How many imports each module of the tests is away from the changed files, 0 for what changed itself."""
    above, by_path = importers(), {file: name for name, file in modules().items()}
    reached = {by_path[ROOT / path]: 0 for path in changes if ROOT / path in by_path}
    for name in [*reached]:
        package, _, short = name.removeprefix("glassformer.extensions.").rpartition(".")
        folder = "extensions." if name.startswith("glassformer.extensions.") else ""
        if (mirrored := f"tests.{folder}{package}.test_{short}") in modules():
            reached[mirrored] = 0
    edge = [*reached]
    for n in range(1, FURTHEST + 1):
        edge = [name for one in edge for name in sorted(above[one]) if reached.setdefault(name, n) == n]
    return {name: n for name, n in reached.items() if name.startswith("tests.")}


def nearest(changes: Sequence[str]) -> list[str]:
    """The paths of tests to run, the nearest to a change first."""
    near = distances(changes)
    below = {Path(path).parent for path in changes if Path(path).name == "conftest.py"}
    tests = {name: file.relative_to(ROOT) for name, file in modules().items() if ".test_" in name}
    away = {file: near[name] for name, file in tests.items() if name in near}
    away |= {file: 1 for file in tests.values() if below & {*file.parents}}
    away = {file: n for file, n in away.items() if "browser" not in file.parts or n == 0}
    components = {word for path in changes if (found := COMPONENT.search(path)) for word in found.groups() if word}
    components |= {"javascript"} if components else set()
    for file in tests.values():
        if "browser" in file.parts and components & {*file.stem.removeprefix("test_").split("_")}:
            away[file] = 0
    words = [{*Path(path).with_suffix("").parts, *Path(path).stem.split("_")} for path in changes]

    def order(file: Path) -> tuple[int, int, str]:
        return away[file], -max(len({*file.parts, *file.stem.split("_")} & one) for one in words), file.as_posix()

    ordered = sorted(away, key=order)[:MOST_FILES]
    of_source = [Path(f"tests/test_{name}.py") for name in OF_SOURCE]
    return [file.as_posix() for file in [*(one for one in ordered if one not in of_source), *of_source]]


class Deadline:
    """A pytest plugin that ends a run when its time is over, and counts the tests that were not reached."""

    def __init__(self, seconds: float) -> None:
        """Begin to count the time."""
        self._until, self.n_left, self.n_failed = time.monotonic() + seconds, 0, 0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """All are left at first."""
        self.n_left = len(session.items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """End the run before a test for which there is no time."""
        if time.monotonic() > self._until:
            item.session.shouldstop = "its time is over"
            return True
        self.n_left -= 1
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what failed."""
        self.n_failed += report.failed


def run_some(files: Sequence[str], seconds: float) -> int:
    """Run tests in this process until the time is over; 1 if one fails."""
    deadline = Deadline(seconds)
    code = pytest.main(
        ["-q", "-p", "no:cacheprovider", "--no-header", "--disable-warnings", *files], plugins=[deadline]
    )
    if deadline.n_left and not deadline.n_failed and code == pytest.ExitCode.INTERRUPTED:
        print(f"left: {deadline.n_left}")
        return 0
    return int(code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED))


def statements(changes: Sequence[str]) -> Iterator[list[str]]:
    """The commands that look at the code without running it."""
    python = [path for path in changes if path.endswith((".py", ".pyi")) and (ROOT / path).exists()]
    if python:
        yield ["-m", "ruff", "check", *python]
        yield ["-m", "ruff", "format", "--check", *python]
        yield ["-m", "mypy"]
    if any(path.endswith((".js", ".ts")) for path in changes):
        yield ["tools/check_javascript.py"]


def main(since: str, seconds: float) -> int:
    """Check what has changed; 1 if anything is wrong."""
    changes = changed(since)
    print(f"{len(changes)} changed files: {', '.join(changes[:8])}{', ...' if len(changes) > 8 else ''}")
    wrong = [subprocess.call([sys.executable, *one], cwd=ROOT) for one in statements(changes)]
    files = nearest(changes)
    print(f"The {len(files)} nearest files of tests, for {seconds:g} s:", *files[:6], "..." if len(files) > 6 else "")
    halves = [files[n::PROCESSES] for n in range(PROCESSES)]
    command = [sys.executable, "-m", "tools.check", "--seconds", str(seconds), "--files"]
    running = [subprocess.Popen([*command, *half], cwd=ROOT, stdout=subprocess.PIPE, text=True) for half in halves]
    said = [process.communicate()[0] for process in running]
    print("".join(re.sub(r"^left: .*\n", "", one, flags=re.MULTILINE) for one in said))
    if left := sum(int(n) for one in said for n in re.findall(r"^left: (\d+)$", one, re.MULTILINE)):
        print(f"{left:,} of these tests were not reached in {seconds:g} s: `make test` runs all.")
    return int(any(wrong) or any(process.returncode for process in running))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", default="", metavar="COMMIT", help="what has changed since then")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for tests")
    parser.add_argument("--files", nargs="*", help="run these files of tests, in this process")
    given = parser.parse_args()
    raise SystemExit(run_some(given.files, given.seconds) if given.files else main(given.since, given.seconds))
