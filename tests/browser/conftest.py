"""Fixtures of the browser tests: the real app in its own process, and a real browser."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import BrowserContext, Error, Page, Request, ViewportSize, expect, sync_playwright

from tests.browser.helpers import BROWSER_FLAGS, PHONE, VIEWPORT, put_scripts, require_browser
from tests.browser.idle import WATCH, last_events
from tests.browser.own_folder import write_own_folder
from tools.serve import ROOT, Server, serve

HERE = Path(__file__).parent
# A test that passes does not wait for these; on a machine with other work 5 s, Playwright's own, are soon over.
expect.set_options(timeout=30_000)
WAIT_MS = 60_000
MOST_TEXT = 2000  # letters of a page whose test failed
# What cannot be clicked, and what lies over a page: an open menu makes all else inert.
OVER = "[inert], dialog[open], [role=dialog], [role=listbox], [data-baseweb=popover]"
LYING_OVER = """(over) => [...document.querySelectorAll(over)].map((one) => {
  const [is, text] = one.inert ? ["inert", ""] : ["over", one.innerText.slice(0, 200)];
  return `${is} ${one.cloneNode(false).outerHTML.slice(0, 200)} ${text}`;
})"""
# Of two processes with a file each, neither shall be left alone with one of these at the end.
LONGEST = (
    "test_charts",
    "test_clicks",
    "test_lessons",
    "test_presentation",
    "test_room",
    "test_step_story",
    "test_training_page",
    "test_watching",
)

# The language also decides the checkpoint of an address that names none; what moves is drawn 60 times a second.
USUAL: dict[str, Any] = {"locale": "en-US", "reduced_motion": "reduce"}
DRAFTS = {"GLASSFORMER_DRAFT": "auto"}  # a server as users run it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark browser tests and run them last.

    Last, as they are the slowest, and as Playwright leaves an event loop in the main thread, which would
    break later tests that start one of their own.
    """
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker("browser")
    longest_first = sorted(ours, key=lambda item: item.path.stem not in LONGEST)
    items[:] = [item for item in items if item not in set(ours)] + longest_first


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell of a page whose test failed what happened on it last: much that is rare is seen once."""
    report = yield
    given = getattr(item, "funcargs", {})
    page = given.get("kept_page")
    if report.when == "call" and report.failed and page is not None and page.url.startswith("http"):
        with suppress(Error):  # it may be gone
            text = page.evaluate("() => document.querySelector('[data-testid=stMain]')?.innerText ?? ''")
            lines = [page.url, *last_events(page), *page.evaluate(LYING_OVER, OVER), "", text[:MOST_TEXT]]
            report.sections.append(("the page", "\n".join(lines)))
            page.goto("about:blank")  # nothing of it for the next test
    return report


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app, started once for all tests; `server.url`, `server.log`."""
    with serve(log=tmp_path_factory.mktemp("server") / "app.log", environment=DRAFTS) as running:
        yield running


@pytest.fixture(scope="session")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app with a folder of a user's own beside the shipped checkpoints, started once for all tests."""
    folder = tmp_path_factory.mktemp("own_server")
    own = write_own_folder(folder)
    with serve(log=folder / "app.log", environment=DRAFTS, arguments=["--checkpoints", str(own)]) as running:
        yield running


@pytest.fixture
def fresh_server(tmp_path: Path) -> Iterator[Server]:
    """The app, started for this test alone: for first visits and deep links."""
    with serve(log=tmp_path / "app.log", environment=DRAFTS) as running:
        yield running


@pytest.fixture(scope="session")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """A browser for all tests, with a folder of its own.

    There it keeps scripts, and what it compiled of them: a page opens in half the time of one in a new context.
    """
    executable = require_browser()  # before Playwright starts, as looking may start it too
    with sync_playwright() as playwright:
        started = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=executable,
            args=BROWSER_FLAGS,
            viewport=VIEWPORT,
            **USUAL,
        )
        prepare(started)
        yield started
        started.close()


def prepare(context: BrowserContext) -> None:
    """Let pages of a context tell when they are at rest, and give them time."""
    context.add_init_script(WATCH)
    context.set_default_timeout(WAIT_MS)


@pytest.fixture
def kept_page(profile: BrowserContext) -> Page:
    """A tab that tests use one after the other: a new one would start a process and compile every script again."""
    return next((page for page in profile.pages if not page.is_closed()), None) or profile.new_page()


@pytest.fixture(scope="session")
def visitors(profile: BrowserContext) -> Iterator[dict[str, BrowserContext]]:
    """What other visitors have in place of that profile, by their names, kept for the scripts they have fetched."""
    known: dict[str, BrowserContext] = {}
    yield known
    for context in known.values():
        context.close()


@pytest.fixture
def faults() -> list[str]:
    """What went wrong in this test's pages: errors nobody caught, requests to other machines."""
    return []


@pytest.fixture
def new_page(
    profile: BrowserContext, kept_page: Page, visitors: dict[str, BrowserContext], faults: list[str]
) -> Iterator[Callable[..., Page]]:
    """A function that opens pages: `new_page(color_scheme="dark")`.

    The first is the kept tab as the last test left it, with a new history: `open_page` loads an address anew, and
    `turn_to`, a third as dear, goes on in the app that is there. `fresh=True` asks for a tab of the test's own, for
    what cannot be taken back. Further options, such as `has_touch=True`, make a context of their own, and
    `visitor="teacher"` has one that is kept. At the end of the test what the pages stored is removed, all but the kept
    tab are closed, and the test fails if there were faults.
    """
    opened: list[Page] = []

    def note(request: Request) -> None:
        faults.extend(_outside(request.url))

    def complain(error: Error) -> None:
        faults.append(f"uncaught in the page: {error}\n{error.stack}")

    def open_one(
        *,
        viewport: ViewportSize = VIEWPORT,
        color_scheme: Literal["light", "dark"] = "light",
        fresh: bool = False,
        visitor: str = "",
        **options: Any,
    ) -> Page:
        if visitor or options:
            assert profile.browser is not None
            context = visitors.get(visitor) or profile.browser.new_context(**(USUAL | options))
            context.on("request", note)
            if visitor not in visitors:
                prepare(context)
            if visitor:
                visitors[visitor] = context
            page = context.new_page()
        else:
            page = profile.new_page() if fresh or kept_page in opened else kept_page
            page.context.new_cdp_session(page).send("Page.resetNavigationHistory")  # it has 50 entries at most
        page.bring_to_front()  # behind another tab nothing has the focus
        page.set_viewport_size(viewport)
        page.emulate_media(color_scheme=color_scheme, reduced_motion="reduce")
        page.on("pageerror", complain)
        opened.append(page)
        return page

    profile.on("request", note)  # of the context: windows that a page opens are watched as well
    yield open_one
    profile.remove_listener("request", note)
    for page in opened:
        page.remove_listener("pageerror", complain)
        _leave(page, kept=page is kept_page)
        if page.context in visitors.values():
            page.context.remove_listener("request", note)
            page.context.clear_cookies()
        elif page.context is not profile:
            page.context.close()
    profile.clear_cookies()
    assert not faults, "\n".join(faults)


def _leave(page: Page, *, kept: bool) -> None:
    """Remove what a page has stored, and close it if it is not kept.

    A session keeps its language, so that a page in another one is emptied.
    """
    if page.is_closed():
        return
    if page.url.startswith("http"):
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
    if not kept:
        page.close()
    elif page.evaluate("() => document.documentElement.lang") != "en":
        page.goto("about:blank")


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    """One page of 1280 x 720 in the light theme."""
    return new_page()


@pytest.fixture
def phone(new_page: Callable[..., Page]) -> Page:
    """The same in the window of a phone."""
    return new_page(viewport=PHONE)


@pytest.fixture
def offline(new_page: Callable[..., Page]) -> Callable[..., tuple[Page, list[str]]]:
    """A function that opens a file in another visitor's window without a network: the page, what it complains of."""

    def one(file: Path, **look: Any) -> tuple[Page, list[str]]:
        page, said = new_page(visitor="offline", **look), []
        page.context.set_offline(True)
        page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
        page.goto(file.as_uri())
        return page, said

    return one


def _outside(url: str) -> list[str]:
    """Return a complaint for a request that would leave this machine."""
    local = url.startswith(("http://127.0.0.1", "http://localhost", "data:", "blob:", "file:"))
    return [] if local else [f"asked another machine for {url}"]


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An app of nothing but charts."""
    folder = tmp_path_factory.mktemp("figures")
    (folder / "app.py").write_text("from tests.browser.figures import draw\n\ndraw()\n", encoding="utf-8")
    put_scripts(folder / "static")
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with serve(folder / "app.py", log=folder / "app.log", environment={"PYTHONPATH": path}) as running:
        yield running
