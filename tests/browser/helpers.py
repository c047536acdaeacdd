"""What browser tests share: finding a browser, waiting for Streamlit, screenshots."""

from __future__ import annotations

import gzip
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from glassformer.components.custom_component import served
from tests.browser.idle import POLL_MS, wait_for_idle, wait_for_rest
from tools.browser import REMEDY, find_browser

VIEWPORT: ViewportSize = {"width": 1280, "height": 720}
PHONE: ViewportSize = {"width": 390, "height": 844}
GROUND = {"light": "rgb(251, 250, 247)", "dark": "rgb(20, 27, 35)"}  # of the page: paper and ink
SCREENSHOTS = os.environ.get("GLASSFORMER_SCREENSHOTS")  # a folder; unset, none are taken, as they take minutes

# The sandbox does not start for root; the rest keeps Chromium from calling home.
BROWSER_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # The app must work offline: no other machine has an address. (Intercepting requests would also show them, but
    # turns the browser's cache off: every page would fetch all scripts again.)
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]


def put_scripts(folder: Path) -> None:
    """The scripts of our components, as files for an app that has no server of ours."""
    folder.mkdir()
    for name, content in served().items():
        (folder / name).write_bytes(gzip.decompress(content))


def require_browser() -> str:
    """Return the path of the machine's browser; fail the test, never skip it, when there is none."""
    executable = find_browser()
    if executable is None:
        pytest.fail(REMEDY, pytrace=False)
    return executable


def open_page(page: Page, url: str) -> None:
    """Go to an address of the app and wait until it has settled."""
    page.goto(url)
    wait_for_idle(page)


# What a click on a link of the menu does (glassformer/components/common/streamlit-page.js).
_TURN = """there => {
  history.pushState({}, "", there);
  dispatchEvent(new PopStateEvent("popstate", { state: {} }));
}"""


def turn_to(page: Page, url: str) -> None:
    """Show an address in a tab that has the app open already, in a fraction of the time that loading takes.

    What a first visit does, and what was unfolded or zoomed before, is for `open_page`.
    """
    if page.url == url or not page.url.startswith("/".join(url.split("/")[:3]) + "/"):
        open_page(page, url)
        return
    page.evaluate(_TURN, url)
    wait_for_idle(page)


def comes_to(page: Page, read: Callable[[], object], expected: object, *, within_ms: int = 30_000) -> None:
    """Wait until what is read is as expected: much of a page follows a click or a key only after a while."""
    deadline = time.monotonic() + within_ms / 1000
    while (found := read()) != expected and time.monotonic() < deadline:
        page.wait_for_timeout(POLL_MS)
    assert found == expected, f"{found!r} is not {expected!r}"


# Every chart is drawn as wide as its place.
_CHARTS_FIT = """
() => [...document.querySelectorAll(".gf-chart")].every(chart => {
  const drawn = chart.querySelector(".main-svg");
  return drawn === null || Math.abs(drawn.getBoundingClientRect().width - chart.clientWidth) <= 2;
})
"""
WIDER = """() => [document.documentElement, document.querySelector("[data-testid=stMain]")]
  .map((one) => one.scrollWidth - one.clientWidth)"""


def in_both_windows(page: Page) -> Iterator[tuple[str, int]]:
    """Show a page that is open in a light window of 1280 x 720, then in a dark one as narrow as a phone.

    A theme changes no widths, so each size has one.

    Yields:
        The theme and the width, once the page has followed.
    """
    windows: list[tuple[Literal["light", "dark"], ViewportSize]] = [("light", VIEWPORT), ("dark", PHONE)]
    for scheme, size in windows:
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        wait_for_idle(page)
        page.wait_for_function(_CHARTS_FIT, polling=POLL_MS)
        yield scheme, size["width"]


def fits_both_windows(page: Page, name: str, keys: Iterable[str] = ()) -> None:
    """Look that nothing of a page is wider than either window, and that these charts are in it."""
    for scheme, width in in_both_windows(page):
        assert max(page.evaluate(WIDER)) <= 0, (scheme, width)
        for key in keys:
            box = page.locator(f".st-key-{key} .main-svg").first.bounding_box()
            assert box is not None
            assert 0 <= box["x"] <= width - box["width"], (key, width)
        screenshot(page, f"{name}-{scheme}-{width}", whole=True)


# Where a place of a chart, in the units of its axes, is on the screen; without `y` half way up.
_PLACE = """([key, x, y]) => {
  const chart = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect();
  const down = y === null ? yaxis._length / 2 : yaxis.d2p(y);
  const scale = box.width / chart.offsetWidth;  // presented, a chart is shown larger
  return [box.left + scale * (xaxis._offset + xaxis.d2p(x)), box.top + scale * (yaxis._offset + down)];
}"""
_HOVERED = "key => document.querySelector(`.st-key-${key} .js-plotly-plot`)._hoverdata?.length > 0"


def point_at(page: Page, key: str, x: float, y: float | None = None) -> tuple[float, float]:
    """Move the mouse to a place of a chart until Plotly knows what is there: a drawing in between forgets it."""
    page.locator(f".st-key-{key} .js-plotly-plot").first.scroll_into_view_if_needed()
    wait_for_rest(page)
    at = (0.0, 0.0)

    def is_seen() -> bool:
        nonlocal at
        at = tuple(page.evaluate(_PLACE, [key, x, y]))
        page.mouse.move(at[0] - 1, at[1])
        page.mouse.move(*at)
        page.wait_for_timeout(POLL_MS)
        return bool(page.evaluate(_HOVERED, key))

    comes_to(page, is_seen, expected=True)
    return at


def click_chart(page: Page, key: str, x: float, y: float | None = None) -> None:
    """Click a place of a chart; Plotly clicks on what it hovers."""
    page.mouse.click(*point_at(page, key, x, y))
    page.mouse.move(0, 0)  # else what is said about it stays
    wait_for_idle(page)


def hover(page: Page, key: str, x: float, y: float | None = None) -> str:
    """What is said of a place of a chart that the mouse points at."""
    point_at(page, key, x, y)
    label = page.locator(f".st-key-{key} .hoverlayer .hovertext").first
    expect(label).to_be_visible()
    return label.text_content() or ""


def drawn(page: Page, key: str) -> list[list[float | None]]:
    """The numbers of a map as the browser has them."""
    rows: list[list[float | None]] = page.locator(f".st-key-{key} .js-plotly-plot").evaluate(
        "chart => Array.from(chart.calcdata[0][0].z, row => Array.from(row))"
    )
    return rows


_OVERLAPS = """([where, [along, across]]) => {
  const boxes = [...document.querySelectorAll(where)].filter(text => text.textContent.trim())
    .map(text => text.getBoundingClientRect());
  const meet = (a, b) => Math.min(a.right, b.right) - along > Math.max(a.left, b.left)
    && Math.min(a.bottom, b.bottom) - across > Math.max(a.top, b.top);
  return [boxes.length, boxes.flatMap((a, i) => boxes.slice(0, i).flatMap((b, j) => meet(a, b) ? [[j, i]] : []))]; }"""


def overlaps(page: Page, texts: str, least: tuple[int, int]) -> tuple[int, list[tuple[int, int]]]:
    """How many texts there are, and those pairs that lie over each other by more than so many pixels."""
    count, pairs = page.evaluate(_OVERLAPS, [texts, list(least)])
    return count, [tuple(pair) for pair in pairs]


def table_rows(page: Page, key: str) -> list[list[str]]:
    """A table that is a canvas, as assistive technology reads it: a list of cells a row."""
    read = "lines => lines.map(line => [...line.querySelectorAll('[role=gridcell]')].map(cell => cell.textContent))"
    return [row for row in page.locator(f".st-key-{key} [role=row]").evaluate_all(read) if row]


def press_table(page: Page, key: str, row: int, x: float = 30, *, height: int = 35) -> None:
    """Click a row of such a table, counted from 0, or with -1 its heading."""
    wait_for_rest(page)
    box = page.locator(f".st-key-{key} canvas").first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + x, box["y"] + height * 1.5 + row * height)
    wait_for_idle(page)


def screenshot(page: Page, name: str, *, whole: bool = False, folder: str | None = SCREENSHOTS) -> Path | None:
    """Save what the page shows as `<name>.png` for people to look at; returns that path, None if nobody asked.

    `whole` shows all of a long page: Streamlit scrolls inside the page, so the window is made that high.
    """
    if not folder:
        return None
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder) / f"{re.sub(r'[^a-zA-Z0-9_.-]+', '-', name)}.png"
    size = page.viewport_size
    if whole and size:
        height = page.evaluate("document.querySelector('[data-testid=\"stMain\"]').scrollHeight")
        page.set_viewport_size({"width": size["width"], "height": max(size["height"], height)})
        wait_for_idle(page)
    page.screenshot(path=path)
    if whole and size:
        page.set_viewport_size(size)
    return path


def chart_menu(place: Page | Locator, entry: str) -> None:
    """Choose an entry of a chart's menu, such as "Show this chart large" or "CSV"."""
    place.get_by_role("button", name="Chart: expand, download…").first.click()
    place.get_by_role("menuitem", name=entry).filter(visible=True).click()


def menu_link(page: Page, name: str) -> Locator:
    """The link that leads to a page: in the menu, or among the tabs of the entry that is open."""
    return page.locator(".st-key-menu, .st-key-tabs").get_by_role("link", name=name, exact=True)


def saved(page: Page, place: Page | Locator, entry: str) -> tuple[bytes, str]:
    """What an entry of a chart's menu saves: the file's content and its name."""
    with page.expect_download() as coming:
        chart_menu(place, entry)
    return coming.value.path().read_bytes(), coming.value.suggested_filename
