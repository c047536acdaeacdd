"""A head is taken away by a click or the dialog, chips put it back, and a link shows the same change elsewhere."""

from playwright.sync_api import expect

from tests.browser.helpers import comes_to, turn_to, wait_for_idle
from tests.browser.story import charts_are_drawn, expect_address, output

CHIP = "Cross-attention, layer 1, head 2: writes nothing"
HEAD = "/attention?model=reverse&src=glass&panel=head&layer=1&head=2&step=6"
# Texts of more than a line, with the width that they have.
LONG = "all => all.filter(one => one.textContent.length > 40).map(one => [one.textContent, one.clientWidth])"


def test_a_change_is_made_taken_back_and_carried_to_another_page_and_mistakes_lead_to_compare(server, page):
    turn_to(page, f"{server.url}{HEAD}")
    chip = page.get_by_role("button", name=CHIP)
    page.get_by_role("button", name="Take this head away").click()
    expect(chip).to_be_visible()
    expect_address(page, do="zero-cross.1.2")
    wait_for_idle(page)
    there = page.url
    chip.click()
    expect(chip).to_have_count(0)
    expect_address(page, do=None)
    page.go_back()
    expect(chip).to_be_visible()
    turn_to(page, there.replace("/attention?", "/step?"))
    expect(chip).to_be_visible()
    assert output(page) != "ssalg"
    page.get_by_role("button", name="Show the unchanged run").click()
    comes_to(page, lambda: output(page), "ssalg")
    wait_for_idle(page)
    page.get_by_role("button", name="What if …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("writes nothing").last).to_be_visible()
    dialog.get_by_role("button", name="Change it", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="writes nothing")).to_be_visible()
    wait_for_idle(page)
    cards_of_mistakes_have_room_for_their_text_and_lead_to_compare(server, page)


def cards_of_mistakes_have_room_for_their_text_and_lead_to_compare(server, page):
    turn_to(page, f"{server.url}/wrong?model=reverse&src=glass&mistake=scale")
    charts_are_drawn(page)
    found = page.get_by_test_id("stMain").locator("[data-testid=stMarkdown] p, [data-testid=stCaptionContainer] p")
    assert [one for one in found.evaluate_all(LONG) if one[1] < 260] == []
    page.get_by_role("link", name="Compare both runs, step by step").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare")
    wait_for_idle(page)
    expect_address(page, do="scale-all.number.1", src="glass")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("What goes wrong")
