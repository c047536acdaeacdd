"""The first picture in a browser: a page of the app against an empty Streamlit page with one Plotly chart.

    python -m benchmarks.first_picture                      # `/` and `/step`, with and without a cache and a network
    python -m benchmarks.first_picture --turns 9 --pages step
    python -m benchmarks.first_picture --other PATH             # also the app of another checkout, in the same turns
    python -m benchmarks.first_picture --list                   # what a cold page asks for, in its order

In turns in one Chromium, 1280 x 900: from the request to the frame in which the first chart is painted in the window.
"Cold" is a new profile, "warm" the second visit of one. The slow network lets 1.5 Mbit/s through and waits 40 ms.
Bytes are those on the wire, of all requests until nothing more comes. Not measured: another machine between browser
and server, a server that has to decode a sentence for the first time.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from tools.browser import find_browser
from tools.serve import ROOT, serve

EMPTY = """
import plotly.graph_objects as go
import streamlit as st

st.plotly_chart(go.Figure(go.Heatmap(z=[[1, 2], [3, 4]])))
"""
SLOW = {"offline": False, "latency": 40, "downloadThroughput": 187_500, "uploadThroughput": 187_500}
CHART_MS = 180_000
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
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifts.push(one.value);
  }).observe({ type: "layout-shift", buffered: true });
})()"""


@dataclass
class Visit:
    """What one visit took: seconds until the first chart, the sum of layout shifts, each request and its bytes."""

    seconds: float = 0.0
    shift: float = 0.0
    requests: list[tuple[float, str, str]] = field(default_factory=list)  # when, after the first; priority; address
    bytes_of: dict[str, int] = field(default_factory=dict)

    @property
    def kilobytes(self) -> float:
        """Kilobytes on the wire."""
        return sum(self.bytes_of.values()) / 1000


def visit(page: Page, address: str, *, slow: bool) -> Visit:
    """Open an address and wait for the first chart, then until nothing more comes."""
    found, session = Visit(), page.context.new_cdp_session(page)
    _count(session, found)
    if slow:
        session.send("Network.emulateNetworkConditions", SLOW)
    page.goto(address, wait_until="commit")
    page.wait_for_function("window.firstChart", timeout=CHART_MS)
    found.seconds = page.evaluate("window.firstChart") / 1000
    known = -1
    while known != (known := sum(found.bytes_of.values())):
        page.wait_for_timeout(4000 if slow else 1000)
    found.shift = page.evaluate("window.shifts.reduce((sum, one) => sum + one, 0)")
    session.detach()
    return found


def _count(session: CDPSession, found: Visit) -> None:
    """Keep each request, and the bytes that come back, messages of the WebSocket included."""

    def asked(event: dict[str, Any]) -> None:
        request = event["request"]
        found.requests.append((event["timestamp"], request.get("initialPriority", ""), request["url"]))

    def add(event: dict[str, Any]) -> None:
        found.bytes_of[event["requestId"]] = int(event["encodedDataLength"])

    def frame(event: dict[str, Any]) -> None:
        payload = event["response"]["payloadData"]
        n_bytes = len(payload) * 3 // 4 if event["response"]["opcode"] == 2 else len(payload)
        found.bytes_of[event["requestId"]] = found.bytes_of.get(event["requestId"], 0) + n_bytes

    session.send("Network.enable")
    session.on("Network.requestWillBeSent", asked)
    session.on("Network.loadingFinished", add)
    session.on("Network.webSocketFrameReceived", frame)


def both_visits(browser: Browser, address: str, *, slow: bool) -> tuple[Visit, Visit]:
    """A visit of a new profile, and the next one of the same."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en")
    context.add_init_script(WATCH)
    made = []
    for _ in range(2):
        page = context.new_page()
        made.append(visit(page, address, slow=slow))
        page.close()
    context.close()
    return made[0], made[1]


def report(visits: dict[str, list[Visit]], setting: str) -> None:
    """Print a row for each page; the first is what the others are measured by."""
    base = median(one.seconds for one in next(iter(visits.values())))
    for name, found in visits.items():
        seconds = [one.seconds for one in found]
        numbers = f"{median(seconds):7.2f} s  {min(seconds):6.2f}-{max(seconds):.2f}"
        n_bytes, shift = median(one.kilobytes for one in found), median(one.shift for one in found)
        n_requests = int(median(len(one.requests) for one in found))
        print(f"{setting:12} {name:22} {numbers:26} {median(seconds) / base:5.2f} x {n_requests:4} {n_bytes:8.0f} KB"
              f"  shift {shift:.3f}  n={len(found)}", flush=True)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--pages", nargs="+", default=["", "step"], help="paths of the app")
    parser.add_argument("--other", type=Path, help="another checkout, whose app is measured as well")
    parser.add_argument("--speeds", nargs="+", choices=["full", "slow"], default=["full", "slow"])
    parser.add_argument("--list", action="store_true", help="print each request of the cold visits at full speed")
    options = parser.parse_args(arguments)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d')}")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "empty.py").write_text(EMPTY, encoding="utf-8")
        addresses = {"empty page": stack.enter_context(serve(folder / "empty.py", log=folder / "empty.log")).url}
        places = {"": ROOT} | ({"other ": options.other.resolve()} if options.other else {})
        for prefix, place in places.items():
            url = stack.enter_context(serve(log=folder / f"{prefix}app.log", folder=place)).url
            addresses |= {f"{prefix}/{page}": f"{url}/{page}" for page in options.pages}
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        for speed in options.speeds:
            kept: dict[str, dict[str, list[Visit]]] = {"cold": {}, "warm": {}}
            for turn in range(options.turns + 1):  # the first decodes what the others find in the cache
                for name, address in addresses.items():
                    visits = both_visits(browser, address, slow=speed == "slow") if turn or speed == "full" else ()
                    for kind, one in zip(kept, visits, strict=False):
                        if turn:
                            kept[kind].setdefault(name, []).append(one)
            for kind, found in kept.items():
                report(found, f"{kind}, {speed}")
            if options.list and speed == "full":
                for name, (first, *_) in kept["cold"].items():
                    print(f"\n{name}")
                    for when, priority, address in first.requests:
                        print(f"{when - first.requests[0][0]:6.2f} {priority:9} {address.rpartition('//')[2]}")


if __name__ == "__main__":
    main()
