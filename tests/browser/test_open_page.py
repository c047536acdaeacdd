"""A model of another program is opened from its file, and stepped through, in under a minute."""

import os
import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.helpers import turn_to
from tests.browser.story import SETTLED_MS

STARTS_MS = 180_000  # the process that opens a pickle imports torch, beside whatever else runs here
PAIRS = "\n".join(f"{word} => {word[::-1]}" for word in ("abcdef", "glass", "letters", "something", "qwerty"))
NEXT = "Next step"


def processor_seconds(server):
    """What a server and the processes that it started took of the processor: a user waits for that on any machine.

    The clock on the wall also counts the work of whatever else runs here.
    """
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def choose(page, label, option):
    page.get_by_role("combobox", name=label, exact=True).click()
    page.get_by_role("option", name=option, exact=True).click()


def fill(page, label, text, key="Enter"):
    box = page.get_by_role("textbox", name=label, exact=True)
    box.fill(text)
    box.press(key)


def test_a_tutorials_file_with_its_questions(own_server, page):
    before = processor_seconds(own_server)
    turn_to(page, f"{own_server.url}/open")
    choose(page, "File or folder", "lesson.pt")
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("questions still need an answer", timeout=STARTS_MS)
    choose(page, "Tokenizer", "letters.model")
    expect(main).to_contain_text("6 questions still need an answer", timeout=SETTLED_MS)
    fill(page, "Sentences", PAIRS, "Control+Enter")
    page.get_by_role("button", name="Compare the choices", exact=True).click()
    expect(main).to_contain_text("The answers were ranked by trying", timeout=STARTS_MS)
    page.get_by_role("button", name="Use the best-ranked answers").click()
    expect(main).to_contain_text("Every question is answered", timeout=SETTLED_MS)
    fill(page, "Sentence", "transformer")
    expect(main).to_contain_text("remrofsnart", timeout=SETTLED_MS)
    main.get_by_role("link", name="Translate", exact=True).click()
    expect(page.get_by_role("button", name=NEXT)).to_be_visible(timeout=SETTLED_MS)
    assert processor_seconds(own_server) - before < 60
    expect(page).to_have_url(re.compile(r"model=lesson\.pt&answers=pieces%3Dletters\.model%2C.*n_heads%3D4"))


def test_the_way_to_the_questions_ends_at_them(own_server, page):
    page.set_viewport_size({"width": 1280, "height": 480})  # they are below this at the top of the page
    turn_to(page, f"{own_server.url}/doctor?model=lesson.pt")
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("from its tensors alone", timeout=STARTS_MS)
    main.get_by_role("link", name="Answer the questions").click()
    expect(page.get_by_role("heading", name="Questions that the files leave open")).to_be_in_viewport()
