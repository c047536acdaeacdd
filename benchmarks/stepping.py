"""How long a step takes in the browser, from the key press to the picture: from frames, and drawn by the server.

    python -m benchmarks.stepping            # 30 pieces on the Step page

Both in turns in one Chromium against one server, which draws each step if the browser may not fetch frames. A step is
complete when the visible chart of candidates has the new title at the next frame of the screen.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from urllib.parse import quote

from playwright.sync_api import Browser, Page, sync_playwright

from tools.browser import find_browser
from tools.serve import serve

SOURCE = (
    "我喜欢喝绿茶，但是他喜欢喝咖啡，我们都喜欢吃苹果，因为今天天气很好，我妹妹想在家里看书。"  # 30 pieces of output
)
GAP_MS = 400  # between keys that are timed one by one
SETTLED_MS = 3000
BURST, BURST_MS = 100, 50
TIMED = """
window.__times = [];
addEventListener("keydown", (event) => {
  if (!event.key.startsWith("Arrow")) return;
  const [began, was] = [performance.now(), document.glassformerStep];
  const look = () => {
    const wanted = document.glassformerStep + 1;
    const title = document.querySelector(".gf-plot .gtitle").textContent;
    if (document.glassformerStep === was) return;
    if (title.startsWith(`Step ${wanted}:`)) window.__times.push(performance.now() - began);
    else if (performance.now() - began < 5000) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}, true);
"""


def visit(browser: Browser, url: str, *, frames: bool) -> Page:
    """Open the Step page in a new context; without frames the browser cannot fetch them."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.add_init_script(TIMED)
    if not frames:
        page.route("**/frames/*", lambda route: route.abort())
    page.goto(f"{url}/step?model=zh-en&src={quote(SOURCE)}")
    page.locator(".gf-plot .gtitle").nth(3).wait_for(state="attached", timeout=60_000)
    page.wait_for_timeout(SETTLED_MS)
    return page


def step_times(page: Page, count: int) -> list[float]:
    """Press a key at a time, half of them on, then back; milliseconds until all charts have followed."""
    page.evaluate("() => { window.__times = []; }")
    for number in range(count):
        page.keyboard.press("ArrowRight" if number < count // 2 else "ArrowLeft")
        page.wait_for_timeout(GAP_MS)
    page.wait_for_timeout(SETTLED_MS)
    found: list[float] = page.evaluate("() => window.__times")
    return found


def burst(page: Page) -> tuple[int, int]:
    """Press many keys in seconds, from the first step; the steps on which the stepper and the charts then stand."""
    page.keyboard.press("Home")
    page.wait_for_timeout(SETTLED_MS)
    for number in range(BURST):  # 25 to the right, then to and fro
        page.keyboard.press("ArrowRight" if number < 25 or number % 2 else "ArrowLeft")
        page.wait_for_timeout(BURST_MS)
    page.wait_for_timeout(SETTLED_MS)
    title = page.locator(".gf-plot .gtitle").first.text_content() or ""
    return page.evaluate("() => document.glassformerStep + 1"), int(title.split()[1].strip(":"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=40, help="keys per turn")
    parser.add_argument("--turns", type=int, default=3)
    said = parser.parse_args(arguments)
    found: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder, serve(log=Path(folder) / "log") as server, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        pages = {frames: visit(browser, server.url, frames=frames) for frames in (True, False)}
        for _ in range(said.turns):
            for frames, page in pages.items():
                page.bring_to_front()
                found[frames] += step_times(page, said.keys)
        pages[True].bring_to_front()
        ends = burst(pages[True])
        browser.close()
    for frames, times in found.items():
        times.sort()
        p95 = times[int(0.95 * (len(times) - 1))]
        name = "from frames" if frames else "by the server"
        print(f"{name:14} {len(times)} of {said.keys * said.turns} keys, p50 {median(times):.0f}, p95 {p95:.0f} ms")
    print(f"frames take {median(found[True]) / median(found[False]):.2f} of the time")
    print(f"{BURST} keys {BURST_MS} ms apart: the stepper ends at step {ends[0]}, the charts at {ends[1]}")


if __name__ == "__main__":
    main()
