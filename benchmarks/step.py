"""A step: what it costs the server to be told of it, and the time from a key to the picture in Chromium.

The server is told once a reader has come to rest on a step, only for the address: its CPU is compared with a rerun of
an empty page. In the browser the Step page has 30 pieces, and a step is complete when the chart of candidates has the
new title at the next frame of the screen: from frames that the browser has fetched, in turns with a browser that may
not fetch them, so that the server draws each step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from urllib.parse import quote

from playwright.sync_api import Browser, Page

from benchmarks.harness import EMPTY_APP, Comparison, Settings, app, chromium, cpu_seconds, percentile, turns
from benchmarks.raw_client import RawClient, rest_on
from tools.serve import Server

SOURCE = "我喜欢喝绿茶，但是他喜欢喝咖啡，我们都喜欢吃苹果，因为今天天气很好，我妹妹想在家里看书。"  # 30 pieces
GAP_SECONDS = 0.05  # what a server still does after a run must count as its CPU
GAP_MS, SETTLED_MS, LATE_MS = 400, 3000, 5000
TIMED = f"""
window.__times = [];
addEventListener("keydown", (event) => {{
  if (!event.key.startsWith("Arrow")) return;
  const [began, was] = [performance.now(), document.glassformerStep];
  const look = () => {{
    const wanted = document.glassformerStep + 1, title = document.querySelector(".gf-plot .gtitle").textContent;
    const drawn = document.glassformerStep !== was && title.startsWith(`Step ${{wanted}}:`);
    if (drawn) window.__times.push(performance.now() - began);
    else if (performance.now() - began < {LATE_MS}) requestAnimationFrame(look);
  }};
  requestAnimationFrame(look);
}}, true);
"""


def measure(settings: Settings) -> Iterator[Comparison]:
    """The table."""
    with app() as (server, client), app(EMPTY_APP) as (empty, other):
        count = settings.n(40, 5)
        told = turns({
            "ours": lambda: _cpu_ms(server, lambda n: _report(client, n), count),
            "empty": lambda: _cpu_ms(empty, lambda _: other.rerun(), count),
        }, settings.n_turns(5), warm_up=1)  # fmt: skip
    yield Comparison(
        what="the server's CPU when a reader comes to rest on a step", ours=told["ours"], peer=told["empty"],
        peer_name="a rerun of an empty page", unit="ms", aim="at most 1.2 times",
    )  # fmt: skip
    with app() as (server, _), chromium() as browser:
        pages = {name: _opened(browser, server.url, frames=name == "frames") for name in ("frames", "server")}
        sides = {name: lambda page=page: _step_ms(page, settings.n(30, 4)) for name, page in pages.items()}
        found = turns(sides, settings.n_turns(3))
    for share, name, aim in ((0.5, "half of the steps", ""), (0.95, "95 of 100 steps", "at most 50 ms")):
        mine, drawn = ([percentile(times, share) for times in found[side]] for side in ("frames", "server"))
        yield Comparison(
            what=f"from a key to the picture: {name} take at most", ours=mine, peer=drawn,
            peer_name="drawn by the server", unit="ms", aim=aim, headline=share == 0.95,
        )  # fmt: skip


def _report(client: RawClient, number: int) -> None:
    """Report a step, as a browser does that has settled and whose charts have followed."""
    rest = rest_on(client.widgets, number, when=time.monotonic_ns())
    client.rerun(states=[rest.state], fragment_id=rest.fragment_id)


def _cpu_ms(server: Server, ask: Callable[[int], object], count: int) -> float:
    """Milliseconds of the server's CPU for each of several reruns."""
    before = cpu_seconds(server.pid)
    for number in range(count):
        ask(number)
        time.sleep(GAP_SECONDS)
    time.sleep(0.3)
    return 1000 * (cpu_seconds(server.pid) - before) / count


def _opened(browser: Browser, url: str, *, frames: bool) -> Page:
    """The Step page in a new context; without frames the browser cannot fetch them."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.add_init_script(TIMED)
    if not frames:
        page.route("**/frames/*", lambda route: route.abort())
    page.goto(f"{url}/step?model=zh-en&src={quote(SOURCE)}")
    page.locator(".gf-plot .gtitle").first.wait_for(state="attached", timeout=60_000)
    page.wait_for_timeout(SETTLED_MS)
    return page


def _step_ms(page: Page, count: int) -> list[float]:
    """Press a key at a time, half of them on, then back; milliseconds of each until the chart has followed."""
    page.bring_to_front()
    page.evaluate("() => { window.__times = []; }")
    for number in range(count):
        page.keyboard.press("ArrowRight" if number < count // 2 else "ArrowLeft")
        page.wait_for_timeout(GAP_MS)
    page.wait_for_timeout(SETTLED_MS)
    times: list[float] = page.evaluate("() => window.__times")
    return times + [float(LATE_MS)] * (count - len(times))  # one that was not answered counts as late
