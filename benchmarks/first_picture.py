"""The first picture in a browser: a page of the app against an empty Streamlit page with one Plotly chart.

In turns in one Chromium, 1280 x 900: from the request to the frame in which the first chart is painted in the window.
"Cold" is a new profile, "warm" the second visit of one. The slow network lets 1.5 Mbit/s through and waits 40 ms.
Bytes are those on the wire, of all requests until nothing more comes. `--only` takes / and /step. Not measured: another
machine between browser and server, a server that has to decode a sentence for the first time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page

from benchmarks.harness import Comparison, Settings, app, chromium, turns

EMPTY = """
import plotly.graph_objects as go
import streamlit as st

st.plotly_chart(go.Figure(go.Heatmap(z=[[1, 2], [3, 4]])))
"""
SLOW = {"offline": False, "latency": 40, "downloadThroughput": 187_500, "uploadThroughput": 187_500}
PAGES, CHART_MS = ("/", "/step"), 180_000
# Looks at every frame for a chart with a drawn trace in the window; the time is that of the frame after.
WATCH = """(() => {
  const drawn = "svg .heatmaplayer image, svg .barlayer .point, svg .scatterlayer path, svg .scatterlayer text";
  const seen = (one) => {
    const box = one.getBoundingClientRect();
    return box.width > 0 && box.top < innerHeight && box.bottom > 0
      && one.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  };
  const look = () => {
    if (![...document.querySelectorAll(drawn)].some(seen)) return requestAnimationFrame(look);
    requestAnimationFrame(() => { window.firstChart = performance.now(); });
  };
  requestAnimationFrame(look);
})()"""
FIGURES = (("time", "s", 0), ("requests", "requests", 1), ("bytes", "KB", 2))
Visit = tuple[float, float, float]  # seconds until the first chart, requests, kilobytes on the wire


def measure(settings: Settings) -> Iterator[Comparison]:
    """The table."""
    with app() as (server, _), app(EMPTY) as (empty, _), chromium() as browser:
        pages = settings.chosen(PAGES)
        addresses = {page: server.url + page for page in pages} | {"empty": empty.url}
        for slow in (False,) if settings.quick else (False, True):  # the slow network, which takes minutes, once
            sides = {name: partial(_visits, browser, address, slow=slow) for name, address in addresses.items()}
            found = turns(sides, 1 if slow else settings.n_turns(3), warm_up=not slow)
            for page, (place, kind) in ((page, kind) for page in pages for kind in enumerate(("cold", "warm"))):
                for what, unit, i in FIGURES[: 1 if slow else 3]:
                    mine, theirs = ([turn[place][i] for turn in found[name]] for name in (page, "empty"))
                    yield Comparison(
                        what=f"the first picture of {page}, {kind}{', 1.5 Mbit/s' * slow}: {what}", ours=mine,
                        peer=theirs, peer_name="an empty page with a chart", unit=unit,
                        aim="at most 1.3 times" if not i else "",
                        headline=(page, kind, slow, what) == ("/step", "cold", False, "time"),
                    )  # fmt: skip


def _visits(browser: Browser, address: str, *, slow: bool) -> tuple[Visit, Visit]:
    """A visit of a new profile, and the next one of the same."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en")
    context.add_init_script(WATCH)
    made = [_visit(context.new_page(), address, slow=slow) for _ in range(2)]
    context.close()
    return made[0], made[1]


def _visit(page: Page, address: str, *, slow: bool) -> Visit:
    """Open an address and wait for the first chart, then until nothing more comes."""
    requests, bytes_of, session = list[str](), dict[str, int](), page.context.new_cdp_session(page)
    _count(session, requests, bytes_of)
    if slow:
        session.send("Network.emulateNetworkConditions", SLOW)
    page.goto(address, wait_until="commit")
    page.wait_for_function("window.firstChart", timeout=CHART_MS)
    seconds, known = page.evaluate("window.firstChart") / 1000, -1
    while known != (known := sum(bytes_of.values())):
        page.wait_for_timeout(4000 if slow else 1000)
    page.close()
    return seconds, len(requests), known / 1000


def _count(session: CDPSession, requests: list[str], bytes_of: dict[str, int]) -> None:
    """Keep each request, and the bytes that come back, messages of the WebSocket included."""

    def frame(event: dict[str, Any]) -> None:
        payload = event["response"]["payloadData"]
        n_bytes = len(payload) * 3 // 4 if event["response"]["opcode"] == 2 else len(payload)
        bytes_of[event["requestId"]] = bytes_of.get(event["requestId"], 0) + n_bytes

    session.send("Network.enable")
    session.on("Network.requestWillBeSent", lambda event: requests.append(event["requestId"]))
    session.on("Network.loadingFinished", lambda e: bytes_of.update({e["requestId"]: int(e["encodedDataLength"])}))
    session.on("Network.webSocketFrameReceived", frame)
