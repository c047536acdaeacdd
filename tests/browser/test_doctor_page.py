"""The Doctor examines by itself, keeps its report, leads to what shows a finding, and takes one's own sentences."""

import re

from playwright.sync_api import expect

from tests.browser.helpers import turn_to, wait_for_idle

DONE_MS = 180_000  # a busy machine lets others go first
VERDICT = re.compile("reverse is healthy: [0-9]+ tests found nothing wrong")


def test_it_examines_keeps_the_report_and_leads_on(server, page):
    turn_to(page, f"{server.url}/doctor?model=reverse")
    verdict = page.get_by_text(VERDICT).first
    expect(verdict).to_be_visible(timeout=DONE_MS)
    wait_for_idle(page)
    page.get_by_text(re.compile(r"Well: \d+ tests")).click()
    page.get_by_role("link", name="See it in Positions").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Positions")
    expect(page.get_by_role("combobox", name="Checkpoint")).to_have_value("Reverse letters (reverse)")
    page.go_back()
    expect(verdict).to_be_visible()
    page.get_by_text("Examine with your own sentences").click()
    page.get_by_role("textbox", name="Sentences").fill("abc => cba\nglass => ssalg")
    page.get_by_role("button", name="Examine with these").click()
    expect(page.get_by_text(re.compile("seconds, with 2 sentences that you provided"))).to_be_visible(timeout=DONE_MS)
    expect(verdict).to_be_visible()
