"""Over a corpus a head or a difference of two runs leads to its line, and from there to its map or to Compare."""

import pytest
from playwright.sync_api import expect

from glassformer.extensions.corpus.library.tables import CorpusOptions
from tests.browser.helpers import click_chart, comes_to, press_table, turn_to, wait_for_idle
from tests.browser.story import SETTLED_MS, address, expect_address
from tests.measured_corpus import measure
from tools.serve import serve

WORDS = ["abc", "cab", "glass", "noon", "letters", "abcdefgh", "backwards", "hello", "reverse", "words", "many"]
TALL = {"width": 1280, "height": 2200}
ALL_HEADS, LEAST, LINE = "corpus_heads", "corpus_least", ".st-key-corpus_line"
DIFFERENCES, LINES = "corpus_beside", "beside_lines"
CARD = "[class*='st-key-corpus_line']"


@pytest.fixture(scope="module")
def with_two(tmp_path_factory):
    """The app with two corpus runs over one file: of the model that reverses letters, and of its training."""
    folder, texts = tmp_path_factory.mktemp("corpora"), "".join(f"{word}\t{word[::-1]}\n" for word in WORDS)
    for model in ("reverse", "reverse@1022"):
        measure(texts, folder, CorpusOptions(shard=8), model=model)
    with serve(log=folder / "app.log", arguments=["--corpora", str(folder)]) as running:
        yield running


@pytest.fixture
def tall(new_page):
    """A page that is high enough to hold everything: marks and rows are clicked by place."""
    return new_page(viewport=TALL)


def opened(page, server, view, key):
    turn_to(page, f"{server.url}/corpus?model=reverse&{view}")
    expect(page.locator(f".st-key-{key} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(page)


def test_a_head_or_a_difference_leads_to_its_line_and_from_there_to_its_map_or_to_compare(with_two, tall):
    opened(tall, with_two, "over=largest", ALL_HEADS)
    click_chart(tall, ALL_HEADS, 1, 1)  # layer 2, head 2 of the first block
    expect(tall.locator(f".st-key-{LEAST}")).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(tall)
    expect_address(tall, corpus="head", kind="encoder", layer="2", head="2", over="largest")
    press_table(tall, LEAST, 0)  # the first click
    expect(tall.locator(LINE)).to_contain_text("Encoder self-attention, layer 2, head 2: largest weight")
    wait_for_idle(tall)
    line, there = address(tall)["line"], tall.url
    tall.locator(LINE).get_by_role("link", name="Open this line on Attention").click()  # the second
    expect(tall.get_by_role("heading", level=1)).to_have_text("Attention", timeout=SETTLED_MS)
    wait_for_idle(tall)
    expect_address(tall, src=WORDS[int(line) - 1], kind="encoder", layer="2", head="2", panel="head")
    tall.go_back()
    comes_to(tall, lambda: tall.url, there)
    expect(tall.locator(LINE)).to_contain_text(f"Line {line}", timeout=SETTLED_MS)

    opened(tall, with_two, "corpus=beside&over=entropy", DIFFERENCES)
    click_chart(tall, DIFFERENCES, 1, 1)  # layer 2, head 2 of the first block
    expect_address(tall, corpus="beside", kind="encoder", layer="2", head="2")
    wait_for_idle(tall)
    press_table(tall, LINES, 0)
    expect(tall.locator(CARD)).to_have_count(2, timeout=SETTLED_MS)
    wait_for_idle(tall)
    word = WORDS[int(address(tall)["line"]) - 1]
    tall.get_by_role("link", name="Compare both runs of this line").click()
    expect(tall.get_by_role("heading", level=1)).to_have_text("Compare", timeout=SETTLED_MS)
    wait_for_idle(tall)
    expect_address(tall, src=word)
    assert "reverse@1022" in address(tall)["b"].replace("%40", "@")
