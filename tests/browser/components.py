"""What the tests of our components share: the app they drive, and how to reach its parts."""

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.helpers import comes_to, open_page, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tools.serve import Server

APP = Path(__file__).parent / "component_app.py"
FIRST_CHART_MS = 60_000  # Plotly's script is 1.5 MB, and the machine may be busy
CELLS = ".gf-chart:has([aria-label='An attention map.'])"


def choose_run(page: Page, name: str) -> None:
    page.locator("[data-testid=stSidebar]").get_by_text(name, exact=True).click()
    expect(page.get_by_text(re.compile(f"python: {name} step"))).to_be_visible()
    page.evaluate("document.activeElement.blur()")
    wait_for_idle(page)


def switch(page: Page, label: str) -> None:
    page.locator("[data-testid=stSidebar] label").filter(has_text=label).last.click()
    wait_for_idle(page)


def at_the_beginning(page: Page, app: Server, path: str) -> None:
    """Show the stepper as at first: in a tab that has it, switches and keys take back what was done."""
    if page.url != f"{app.url}/{path}":
        turn_to(page, f"{app.url}/{path}")
        return
    page.keyboard.press("Escape")  # a dialog
    if page.get_by_text(re.compile("^python: plain step")).count() != 1:  # another run
        open_page(page, f"{app.url}/{path}")
        return
    for button in page.get_by_role("button", name="Reset zoom").all():
        if button.is_visible():
            button.click()
    if page.get_by_role("checkbox", name="guess").or_(page.get_by_role("switch", name="guess")).is_checked():
        switch(page, "guess")
    page.evaluate("document.activeElement.blur()")
    comes_to(page, lambda: _back(page), expected=True)  # once more, if it had not come to rest before
    page.locator(".gf-speed").select_option("1")
    wait_for_idle(page)
    page.evaluate("document.activeElement.blur()")


def _back(page: Page) -> bool:
    """Go to the first step; tells whether the script and Python are both there."""
    page.locator(".gf-stepper").focus()
    for key in ("Escape", "Home"):  # a picked piece, the first step
        page.keyboard.press(key)
    wait_for_idle(page)
    return page.get_by_text("python: plain step 0", exact=True).is_visible() and browser_step(page) == 0


def browser_step(page: Page) -> int:
    return int(page.locator(".gf-stepper").get_attribute("data-step"))


def expect_step(page: Page, step: int) -> None:
    """Wait for a step: what Python sends reaches the script a moment after the text beside it."""
    expect(page.locator(".gf-stepper")).to_have_attribute("data-step", str(step))


def runs(page: Page) -> int:
    return int(page.get_by_text(re.compile(r"^runs: \d+$")).inner_text().split()[1])


def plot(page: Page, alt: str) -> Locator:
    return page.get_by_role("img", name=alt)


def cell_centre(page: Page, row: int, column: int) -> tuple[float, float]:
    """Where a cell of the first map is on the screen."""
    plot(page, "An attention map.").scroll_into_view_if_needed()
    wait_for_rest(page)
    return tuple(page.evaluate(
        """([row, column]) => {
          const chart = document.querySelector("[aria-label='An attention map.']");
          const { xaxis, yaxis } = chart._fullLayout;
          const box = chart.getBoundingClientRect();
          return [box.left + xaxis._offset + xaxis.c2p(column), box.top + yaxis._offset + yaxis.c2p(row)];
        }""",
        [row, column],
    ))  # fmt: skip


def open_figures(page: Page, app: Server) -> Page:
    """Show every kind of chart with hostile labels (figures.py)."""
    open_page(page, f"{app.url}/figures")
    expect(plot(page, "stated").locator(".main-svg").first).to_be_visible(timeout=FIRST_CHART_MS)
    wait_for_idle(page)
    return page


def frame(page: Page, key: str) -> Locator:
    """A chart with its buttons and its sentence."""
    return page.locator(f".gf-chart-frame:has([role=img][aria-label='{key}'])")
