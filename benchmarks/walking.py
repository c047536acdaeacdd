"""Server CPU of a reader's steps in a browser, against a rerun of an empty page.

    python -m benchmarks.walking            # 30 pieces on the Step page, its frames fetched

A walk is 20 steps at two per second; then the reader clicks on an empty place, and the server is told their step. The
cost of an idle page for the same time is subtracted. The server collects garbage soon after it has drawn something
(`glassformer/server/render_lock.py`), so a walk with a click also pays for one collection; the script waits for it in
between.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import median

from playwright.sync_api import Page, sync_playwright

from benchmarks.app import EMPTY_APP, by_query, cpu_seconds, measure, running, table
from benchmarks.stepping import visit
from tools.browser import find_browser
from tools.serve import Server

STEPS, GAP_MS = 20, 500
REST_MS = 1000
LOOKED_MS = 6000  # until the server has looked for garbage


def used(server: Server, page: Page, *, steps: bool, clicks: bool) -> float:
    """Step on and back, and click where nothing is, or not; milliseconds of the server's CPU meanwhile."""
    page.wait_for_timeout(LOOKED_MS)
    before = cpu_seconds(server.pid)
    for number in range(STEPS):
        if steps:
            page.keyboard.press("ArrowRight" if number < STEPS // 2 else "ArrowLeft")
        page.wait_for_timeout(GAP_MS)
    if clicks:
        page.locator("h1").click()
    page.wait_for_timeout(REST_MS)
    return 1000 * (cpu_seconds(server.pid) - before)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    turns = parser.parse_args(arguments).turns
    empty, stands, walk, heard = "empty page, one rerun", "page that stands", "walk", "walk and a click"
    rows: dict[str, list[float]] = {name: [] for name in (empty, stands, walk, heard)}
    with running("app.py") as (app, _), running(EMPTY_APP) as (other, client), sync_playwright() as play:
        browser = play.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        page = visit(browser, app.url, frames=True)
        for _ in range(turns):
            rows[empty].append(measure(other, client, by_query(page="", query=""), STEPS).cpu_ms)
            for name in (stands, walk, heard):
                rows[name].append(used(app, page, steps=name != stands, clicks=name == heard))
        browser.close()
    table(list(rows.items()), unit="ms")
    for name in (walk, heard):
        step = (median(rows[name]) - median(rows[stands])) / STEPS
        print(f"{name}: {step:.2f} ms a step, {step / median(rows[empty]):.2f} times an empty page's rerun")


if __name__ == "__main__":
    main()
