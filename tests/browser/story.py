"""The Step page as a person sees it: what tests of its story read and press."""

from __future__ import annotations

from urllib.parse import parse_qs, quote, urlsplit

from playwright.sync_api import Locator, Page, expect

from tests.browser.helpers import comes_to, turn_to, wait_for_idle
from tests.browser.idle import POLL_MS, wait_for_rest
from tools.serve import Server

SETTLED_MS = 60_000
OUTPUTS = ":is(.st-key-result_choice, .st-key-branch_choice) [role=radiogroup] label"
FIFTEEN = quote("如果明天不下雨，我们就和朋友一起去公园里玩吧。")  # 15 pieces, and 14 come out
_REACHED = "text => [...text.childNodes].map(one => one.className === 'gf-coming' ? '' : one.textContent)"


def open_step(page: Page, server: Server, address: str = "?model=reverse") -> Page:
    """Come to the Step page and wait until its charts are drawn."""
    turn_to(page, f"{server.url}/step?{address.partition('?')[2]}")
    expect(page.locator(".gf-stepper")).to_be_visible()
    wait_for_charts(page)
    return page


def wait_for_charts(page: Page) -> None:
    """Return once every chart in the page has its plot."""
    page.wait_for_function(
        """() => { const charts = [...document.querySelectorAll(".gf-chart")];
          return charts.length > 1 && charts.every(chart => chart.querySelector(".main-svg")
            || chart.querySelector(".gf-chart-note:not([hidden])")); }""",
        polling=POLL_MS,
        timeout=SETTLED_MS,
    )


def charts_are_drawn(page: Page) -> None:
    """Wait until every chart of a page that has at least one is drawn, and nothing more comes."""
    page.wait_for_function(
        """() => { const charts = [...document.querySelectorAll(".gf-chart")];
          return charts.length && charts.every(chart => chart.querySelector(".main-svg")); }""",
        polling=POLL_MS,
        timeout=SETTLED_MS,
    )
    wait_for_idle(page)


def chart_is_on_the_first_screen(page: Page, chart: str) -> None:
    """Compare where a chart ends with the lower edge of a window of 1280 x 720."""
    expect(page.locator(chart).first).to_be_visible(timeout=SETTLED_MS)
    wait_for_rest(page)
    box = page.locator(chart).first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 720
    assert box["height"] >= 200


def model_runs(server: Server) -> int:
    """How often the model ran since the server started."""
    return server.log_text().count("model run ")


def browser_step(page: Page) -> int:
    """The step the stepper shows, from 1."""
    return int(page.locator(".gf-stepper").get_attribute("data-step") or -1) + 1


def arrive(page: Page, step: int) -> None:
    """Wait until the charts are about a step, from 1."""
    title = page.locator(".st-key-candidates")
    expect(title).to_contain_text(f"Step {step}:", timeout=SETTLED_MS)
    wait_for_idle(page)


def output(page: Page) -> str:
    """The output up to the step, without what is grey."""
    return "".join(page.locator(".gf-text").first.evaluate(_REACHED)).strip()


def source_box(page: Page) -> Locator:
    """The box that the sentence is typed into."""
    return page.locator(".st-key-source input")


def type_source(page: Page, text: str) -> None:
    """Type a sentence as a person does."""
    source_box(page).fill(text)
    source_box(page).press("Enter")
    wait_for_idle(page)
    page.evaluate("document.activeElement.blur()")


def outputs(page: Page) -> list[str]:
    """The listed outputs: branches, or results of beam search."""
    return [text.strip() for text in page.locator(f"{OUTPUTS} p").all_inner_texts()]


def choose_output(page: Page, place: int) -> None:
    """Click one of the listed outputs."""
    page.locator(OUTPUTS).nth(place).click()
    wait_for_idle(page)


def click_candidate(page: Page, place: int, *, key: str = "candidates") -> None:
    """Click the row of a candidate, counted from 0 at the top, where a thin bar has no ink."""
    chart = page.locator(f".st-key-{key} .js-plotly-plot")
    chart.scroll_into_view_if_needed()
    wait_for_rest(page)
    x, y = chart.evaluate(
        """(chart, place) => {
          const { xaxis, yaxis } = chart._fullLayout;
          const box = chart.getBoundingClientRect();
          return [box.left + xaxis._offset + 60, box.top + yaxis._offset + yaxis.c2p(place)];
        }""",
        place,
    )
    page.mouse.move(x, y)
    page.mouse.click(x, y)
    page.mouse.move(0, 0)  # else what is said about the bar stays
    wait_for_idle(page)


def decode(page: Page, way: str) -> None:
    """Choose a way of decoding, in the line that says it."""
    page.locator(".st-key-decoding_menu summary").click()
    page.get_by_role("radio", name=way, exact=True).click()
    wait_for_idle(page)
    page.locator(".st-key-decoding_menu summary").click()
    expect(page.locator(".st-key-decoding_menu")).to_contain_text(f"{way}, up to")
    wait_for_rest(page)  # what is below moves up while it folds
    page.evaluate("document.activeElement.blur()")


def switch_guessing(page: Page) -> None:
    """Have the next token hidden until it is guessed, or no longer."""
    page.get_by_text("Hide candidates until I guess", exact=True).click()
    wait_for_idle(page)
    page.evaluate("document.activeElement.blur()")


def address(page: Page) -> dict[str, str]:
    """The parameters in the address bar."""
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query, keep_blank_values=True).items()}


def expect_address(page: Page, **wanted: str | None) -> None:
    """Wait until the address has these parameters; None stands for one that it has not."""
    comes_to(page, lambda: {name: address(page).get(name) for name in wanted}, wanted)
