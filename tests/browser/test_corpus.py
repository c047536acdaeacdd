"""The page Over a corpus in a real browser: from all heads to one, from its worst line to that line's map."""

import pytest
from playwright.sync_api import expect

from glassformer.extensions.corpus.library.tables import CorpusOptions
from tests.browser.helpers import comes_to, in_both_windows, open_page, screenshot, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import SETTLED_MS, address, expect_address
from tests.measured_corpus import measure
from tools.serve import serve

LETTERS = ["abc", "cab", "glass", "noon", "letters", "abcdefgh", "backwards", "hello", "reverse", "words", "many"]
HEADS, LEAST, LINE = ".st-key-corpus_heads", ".st-key-corpus_least", ".st-key-corpus_line"
FIRST_ROW = 52  # pixels from a table's top


@pytest.fixture(scope="module")
def with_corpus(tmp_path_factory):
    """The app with a corpus run of the model that reverses letters."""
    folder = tmp_path_factory.mktemp("corpora")
    measure("".join(f"{word}\t{word[::-1]}\n" for word in LETTERS), folder, CorpusOptions(shard=8))
    with serve(log=folder / "app.log", arguments=["--corpora", str(folder)]) as running:
        yield running


@pytest.fixture
def tall(new_page):
    """A page that is high enough to hold everything: the tables are canvases, clicked by place."""
    return new_page(viewport={"width": 1280, "height": 1600})


def test_a_heads_worst_line_is_two_clicks_from_its_map(with_corpus, tall):
    open_page(tall, f"{with_corpus.url}/corpus?model=reverse&over=largest")
    chart = tall.locator(f"{HEADS} .js-plotly-plot")
    expect(chart.locator(".main-svg").first).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(tall)
    x, y = chart.evaluate(
        """chart => {
          const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect();
          return [box.left + xaxis._offset + xaxis.c2p(1), box.top + yaxis._offset + yaxis.c2p(1)];
        }"""
    )
    tall.mouse.click(x, y)  # layer 2, head 2 of the first block
    expect(tall.locator(LEAST)).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(tall)
    expect_address(tall, corpus="head", kind="encoder", layer="2", head="2", over="largest")
    wait_for_rest(tall)
    box = tall.locator(f"{LEAST} canvas").first.bounding_box()
    tall.mouse.click(box["x"] + 30, box["y"] + FIRST_ROW)  # the first click
    expect(tall.locator(LINE)).to_contain_text(
        "Encoder self-attention, layer 2, head 2: largest weight", timeout=SETTLED_MS
    )
    wait_for_idle(tall)
    line, there = address(tall)["line"], tall.url
    tall.locator(LINE).get_by_role("link", name="Open this head's map on Attention").click()  # the second
    expect(tall.get_by_role("heading", level=1)).to_have_text("Attention", timeout=SETTLED_MS)
    expect(tall.get_by_test_id("stMain")).to_contain_text("Selected:", timeout=SETTLED_MS)
    wait_for_idle(tall)
    expect_address(tall, src=LETTERS[int(line) - 1], kind="encoder", layer="2", head="2", panel="head")
    tall.go_back()
    comes_to(tall, lambda: tall.url, there)
    expect(tall.locator(LINE)).to_contain_text(f"Line {line}", timeout=SETTLED_MS)


def test_the_page_fits_both_windows_and_attention_leads_back(with_corpus, page):
    open_page(page, f"{with_corpus.url}/attention?model=reverse&src=noon&panel=table&kind=cross&layer=2&head=1")
    page.get_by_role("link", name="See this head over the corpus").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Over a corpus", timeout=SETTLED_MS)
    expect(page.locator(".st-key-corpus_spread .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(page)
    expect_address(page, corpus="head", kind=None, layer="2", head="1", src="noon")
    for scheme, width in in_both_windows(page):
        assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
        screenshot(page, f"corpus-{scheme}-{width}", whole=True)
