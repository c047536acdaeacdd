"""The app's start against importing its libraries, and the memory of the server and of each further visitor.

A cold start is from `streamlit run app.py` until the server answers and the first page has run: torch imported, the
default checkpoint loaded and tried. A further visitor goes to five pages with the app's own sentence and stays. The
empty page is an app of two lines that imports the same libraries. Files are in the disk's cache: the first turn does
not count. Python has compiled the modules before.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from benchmarks.harness import EMPTY_APP, IMPORTS, Comparison, Settings, app, memory_mb, turns
from benchmarks.raw_client import RawClient
from tools.serve import Server

PAGES = ("attention", "masks", "positions", "inside")  # after the one on which the app opens
SETTLE_SECONDS = 1.5  # what the server still does after the first page
WARM_UP = 3  # visitors after whom a server has imported and cached what all need


def measure(settings: Settings) -> Iterator[Comparison]:
    """The table."""
    sides: dict[str, Callable[[], tuple[float, float]]] = {
        "imports": _imported, "app": lambda: _started("app.py"), "empty": lambda: _started(EMPTY_APP)
    }  # fmt: skip
    found = turns(sides, settings.n_turns(5), warm_up=settings.n(1, 0))
    seconds, megabytes = ({name: [one[i] for one in turn] for name, turn in found.items()} for i in (0, 1))
    yield Comparison(
        what="the app starts in", ours=seconds["app"], peer=seconds["imports"], peer_name="importing its libraries",
        aim="at most 1.5 times", headline=True,
    )  # fmt: skip
    yield Comparison(
        what="memory after the start", ours=megabytes["app"], peer=megabytes["empty"], unit="MB",
        peer_name="an empty page with these libraries", aim="at most 380 MB",
    )  # fmt: skip
    count = settings.n(20, 2)
    with app() as (ours, _), app(EMPTY_APP) as (empty, _), ExitStack() as visitors:
        for server, pages in ((ours, PAGES), (empty, ())):
            _come(server, pages, WARM_UP, visitors)
        grown = turns({
            "app": lambda: _come(ours, PAGES, count, visitors), "empty": lambda: _come(empty, (), count, visitors)
        }, settings.n_turns(3))  # fmt: skip
    yield Comparison(
        what="memory of a visitor who has been to five pages", ours=grown["app"], peer=grown["empty"], unit="MB",
        peer_name="a visitor of an empty page", aim="at most 1 MB",
    )  # fmt: skip


def _started(script: str) -> tuple[float, float]:
    """Seconds until the first page has run, and the server's megabytes a little later."""
    began = time.perf_counter()
    with app(script) as (server, _):
        seconds = time.perf_counter() - began
        time.sleep(SETTLE_SECONDS)
        return seconds, memory_mb(server.pid)


def _imported() -> tuple[float, float]:
    """Seconds until a bare interpreter has imported what the app imports, and its megabytes."""
    began = time.perf_counter()
    command = [sys.executable, "-c", f"{IMPORTS}; print('imported', flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        said = process.stdout.readline() if process.stdout else ""
        seconds = time.perf_counter() - began  # ending the process is not part of it
        if said != "imported\n":
            raise RuntimeError(f"`{IMPORTS}` failed with code {process.wait()}")
        megabytes = memory_mb(process.pid)
        process.communicate("\n")
    return seconds, megabytes


def _come(server: Server, pages: tuple[str, ...], count: int, visitors: ExitStack) -> float:
    """So many visitors come, go to all pages and stay; by how many megabytes the server grows for each."""
    before = memory_mb(server.pid)
    for _ in range(count):
        client = visitors.enter_context(RawClient(server.url))
        client.rerun()
        for page in pages:
            client.rerun(page=page)
    time.sleep(SETTLE_SECONDS)
    return max(memory_mb(server.pid) - before, 0.0) / count
