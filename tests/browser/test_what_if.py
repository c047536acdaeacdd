"""Changing the model in a browser: a click takes a head away, the dialog changes the rest, chips take it back."""

from playwright.sync_api import expect

from tests.browser.helpers import open_page, turn_to, wait_for_idle
from tests.browser.story import expect_address, output

CHIP = "Cross-attention, layer 1, head 2: writes nothing"
HEAD = "/attention?model=reverse&src=glass&panel=head&layer=1&head=2&step=6"


def chip(page):
    return page.get_by_role("button", name=CHIP)


def test_a_head_is_taken_away_from_its_view_and_the_link_shows_the_same_elsewhere(server, new_page):
    page = new_page()
    open_page(page, f"{server.url}{HEAD}")
    page.get_by_role("button", name="Take this head away").click()
    expect(chip(page)).to_be_visible()
    expect_address(page, do="zero-cross.1.2")
    wait_for_idle(page)
    there = page.url
    page.reload()
    expect(chip(page)).to_be_visible()
    chip(page).click()
    expect(chip(page)).to_have_count(0)
    expect_address(page, do=None)
    page.go_back()
    expect(chip(page)).to_be_visible()
    other = new_page(fresh=True)
    open_page(other, there.replace("/attention?", "/step?"))
    expect(chip(other)).to_be_visible()
    assert output(other) != "ssalg"


def test_the_dialog_makes_a_change_and_closes(server, page):
    open_page(page, f"{server.url}/step?model=reverse&src=glass")
    page.get_by_role("button", name="What if …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("writes nothing").last).to_be_visible()
    dialog.get_by_role("button", name="Change it", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="writes nothing")).to_be_visible()
    page.get_by_role("button", name="Show the unchanged run").click()
    expect(page.get_by_role("button", name="writes nothing")).to_have_count(0)


def test_forged_changes_give_a_note_and_the_unchanged_run(server, tab):
    for forged, said in (
        ("zero-cross.9.1", "names layer 9"),
        ("zero-cross.1.1_zero-cross.1.1", "is already made"),
        ("nothing-at-all", "nothing-at-all"),
    ):
        turn_to(tab, f"{server.url}/step?model=reverse&src=glass&step=6&do={forged}")
        expect(tab.get_by_text(said)).to_be_visible()
        expect(tab.get_by_text("The unchanged run is shown")).to_be_visible()
        assert output(tab) == "ssalg"
