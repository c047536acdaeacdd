"""The Checkpoints page in a real browser: its charts, in both themes and in a small window."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import menu_link, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.made_up import IMAGE, NAME
from tests.browser.story import SETTLED_MS

LOSSES = ".st-key-training_losses"
CHARTS = (LOSSES, ".st-key-training_scores", ".st-key-training_rates")


def open_checkpoints(page, own_server, model="reverse"):
    turn_to(page, f"{own_server.url}/checkpoints?model={model}")
    page.locator(f"{LOSSES} .main-svg").first.wait_for(timeout=SETTLED_MS)
    return page


def unfold(page):
    counted = page.locator("details").filter(has_text="How each score was computed")
    if counted.get_attribute("open") is None:
        counted.locator("summary").click()


def test_the_curves_are_drawn_and_hover_names_the_epoch(own_server, tab):
    page = open_checkpoints(tab, own_server)
    for chart in CHARTS:
        expect(page.locator(f"{chart} .main-svg").first).to_be_visible()
        picture = page.locator(f"{chart} [role=img]")
        assert re.search(r"The marked epoch is \d+ \(kept\)", picture.get_attribute("aria-label"))
        expect(page.locator(chart)).to_contain_text("kept: epoch")
    plot = page.locator(f"{LOSSES} .js-plotly-plot")
    plot.scroll_into_view_if_needed()
    wait_for_rest(page)
    x, y = plot.evaluate(
        """chart => {
          const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect(), line = chart.calcdata[0];
          return [box.left + xaxis._offset + xaxis.c2p(line[1].x), box.top + yaxis._offset + yaxis.c2p(line[1].y)];
        }"""
    )
    page.mouse.move(x, y)
    hover = page.locator(f"{LOSSES} .hoverlayer")
    expect(hover).to_contain_text("Epoch 2, step ")
    expect(hover).to_contain_text("target pieces")


def test_the_chosen_checkpoint_stays_on_the_way_to_the_step_page(own_server, tab):
    page = open_checkpoints(tab, own_server)
    menu_link(page, "Step through decoding").click()
    expect(page.locator(".gf-stepper")).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(page)
    page.get_by_role("button", name="Examples").click()
    expect(page.get_by_role("button", name="aabbcc")).to_be_visible()


def test_a_card_of_markup_is_shown_letter_by_letter(own_server, tab):
    page = open_checkpoints(tab, own_server, NAME)
    unfold(page)
    main = page.get_by_test_id("stMain")
    for text in (f"Data {IMAGE}", "**none** $x^2$", IMAGE, "<b>key</b>", "<i>value</i>", f"train {IMAGE}"):
        expect(main).to_contain_text(text)
    assert main.locator("td img, td script, td b, td i, td .katex, td a").count() == 0


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_nothing_is_wider_than_the_window(own_server, new_page, width, scheme):
    touch = {"visitor": "mobile", "has_touch": True, "is_mobile": True} if width < 600 else {"shared": True}
    page = new_page(viewport={"width": width, "height": 720}, color_scheme=scheme, **touch)
    open_checkpoints(page, own_server)
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(
        """() => { const main = document.querySelector('[data-testid=stMain]');
          return main.scrollWidth <= main.clientWidth; }"""
    )
    for chart in CHARTS:
        # Both in one look: what unfolds pushes the charts down for a while.
        right, title, legend = page.locator(chart).evaluate(
            """chart => {
              const box = (part) => chart.querySelector(part)?.getBoundingClientRect(), title = box(".gtitle");
              return [title.right, title.bottom, box(".legend")?.top ?? Infinity];
            }"""
        )
        assert right <= width
        assert legend >= title - 2
