"""The page What goes wrong as a person sees it: walk through all cards, go to Compare, come back by the link."""

import re

import pytest
from playwright.sync_api import expect

from glassformer.extensions.effects.wrong.mistake_cards import CARDS
from tests.browser.helpers import in_both_windows, screenshot, turn_to, wait_for_idle
from tests.browser.idle import POLL_MS
from tests.browser.story import expect_address

CHARTS_DRAWN = """
() => { const charts = [...document.querySelectorAll(".gf-chart")];
  return charts.length && charts.every(chart => chart.querySelector(".main-svg")); }
"""


# Texts of more than a line, with the width that they have.
LONG = "all => all.filter(one => one.textContent.length > 40).map(one => [one.textContent, one.clientWidth])"


def numbers(page):
    return page.get_by_test_id("stMetricValue").all_inner_texts()


def test_every_card_can_be_walked_to_and_shows_an_effect(server, tab):
    turn_to(tab, f"{server.url}/wrong?model=reverse&src=glass")
    for place, card in enumerate(CARDS, start=1):
        named = re.escape(f"{place} of {len(CARDS)}: {card.said.title}")
        shown = re.compile(f"^{named}( – changes nothing in this sentence)?$")
        expect(tab.get_by_role("combobox", name="Mistake")).to_have_value(shown)
        wait_for_idle(tab)
        tab.wait_for_function(CHARTS_DRAWN, polling=POLL_MS)
        right, wrong = numbers(tab)
        assert right != wrong, card.mistake
        assert tab.get_by_test_id("stCode").count() == 2
        assert tab.get_by_role("alert").count() == 0, card.mistake
        screenshot(tab, f"wrong-{card.mistake}", whole=True)
        after = tab.get_by_role("button", name="Next mistake")
        if place < len(CARDS):
            after.click()
        else:
            expect(after).to_be_disabled()
    expect_address(tab, mistake=CARDS[-1].mistake, model="reverse")


def test_a_card_leads_to_compare_with_its_change_and_back(server, tab):
    turn_to(tab, f"{server.url}/wrong?model=reverse&src=glass&mistake=scale")
    tab.get_by_role("link", name="Compare both runs, step by step").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Compare")
    wait_for_idle(tab)
    expect_address(tab, do="scale-all.off.1", src="glass")
    expect(tab.get_by_text("The first difference is piece 3")).to_be_visible()
    tab.go_back()
    expect(tab.get_by_role("heading", level=1)).to_have_text("What goes wrong")
    expect(tab.get_by_text(re.compile("From piece 3 on, the output is different"))).to_be_visible()


def test_the_leak_is_compared_with_the_model_that_was_trained_with_the_mask(server, tab):
    turn_to(tab, f"{server.url}/wrong?model=reverse&src=glass")
    tab.get_by_role("link", name="Compare both runs, step by step").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Compare")
    wait_for_idle(tab)
    assert tab.get_by_role("alert").count() == 0
    expect_address(tab, b="model=reverse-leak&rev=")


@pytest.mark.parametrize("mistake", ["residual", "inverted", "leak"])
def test_a_card_fits_into_both_windows_and_no_text_is_in_a_narrow_column(server, tab, mistake):
    turn_to(tab, f"{server.url}/wrong?model=reverse&src=glass&mistake={mistake}")
    for theme, width in in_both_windows(tab):
        texts = tab.get_by_test_id("stMain").locator("[data-testid=stMarkdown] p, [data-testid=stCaptionContainer] p")
        narrow = [one for one in texts.evaluate_all(LONG) if one[1] < 260]
        assert narrow == [], (theme, width)
        tab.wait_for_function(CHARTS_DRAWN, polling=POLL_MS)
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        screenshot(tab, f"wrong-{theme}-{width}", whole=True)
