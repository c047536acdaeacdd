"""Over a corpus a head, a token or a difference leads to its line, and from there to its map or to Compare."""

import pytest
from playwright.sync_api import expect

from glassformer.extensions.corpus.library.tables import CorpusOptions
from tests.browser.helpers import click_chart, comes_to, fits_both_windows, press_table, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import SETTLED_MS, address, expect_address
from tests.measured_corpus import measure
from tools.serve import serve

WORDS = ["abc", "cab", "glass", "noon", "letters", "abcdefgh", "backwards", "hello", "reverse", "words", "many"]
TALL = {"width": 1280, "height": 2200}
ALL_HEADS, LEAST, LINE = "corpus_heads", "corpus_least", ".st-key-corpus_line"
POINTS, HEADS, DIFFERENCES, LINES = "corpus_joined", "corpus_joined_heads", "corpus_beside", "beside_lines"
CARD = "[class*='st-key-corpus_line']"
RINGS = "chart => chart._fullData.filter(trace => trace.marker.symbol === 'circle-open').length"
BRIGHT = "chart => chart._fullData.flatMap(t => t.hovertext ? [...t.marker.opacity] : []).filter(o => o === 1).length"
MARK = "(chart, [curve, place]) => [chart._fullData[curve].x[place], chart._fullData[curve].y[place]]"


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


def plot(page, key):
    return page.locator(f".st-key-{key} .js-plotly-plot")


def opened(page, server, view, key):
    turn_to(page, f"{server.url}/corpus?model=reverse&{view}")
    expect(page.locator(f".st-key-{key} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(page)


def follow(page, name, title):
    page.locator(LINE).get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(title, timeout=SETTLED_MS)
    wait_for_idle(page)


def test_a_head_a_token_or_a_difference_leads_to_its_line_and_from_there_to_its_map(with_two, tall):
    opened(tall, with_two, "over=largest", ALL_HEADS)
    click_chart(tall, ALL_HEADS, 1, 1)  # layer 2, head 2 of the first block
    expect(tall.locator(f".st-key-{LEAST}")).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(tall)
    expect_address(tall, corpus="head", kind="encoder", layer="2", head="2", over="largest")
    press_table(tall, LEAST, 0)  # the first click
    expect(tall.locator(LINE)).to_contain_text("Encoder self-attention, layer 2, head 2: largest weight")
    wait_for_idle(tall)
    line, there = address(tall)["line"], tall.url
    follow(tall, "Open this line on Attention", "Attention")  # the second
    expect_address(tall, src=WORDS[int(line) - 1], kind="encoder", layer="2", head="2", panel="head")
    tall.go_back()
    comes_to(tall, lambda: tall.url, there)
    expect(tall.locator(LINE)).to_contain_text(f"Line {line}", timeout=SETTLED_MS)
    fits_both_windows(tall, "corpus")
    turn_to(tall, f"{with_two.url}/attention?model=reverse&src=noon&panel=table&kind=cross&layer=2&head=1")
    tall.get_by_role("link", name="See this head over the corpus").click()
    expect(tall.get_by_role("heading", level=1)).to_have_text("Over a corpus", timeout=SETTLED_MS)
    wait_for_idle(tall)
    expect_address(tall, corpus="head", kind=None, layer="2", head="1", src="noon")
    tall.set_viewport_size(TALL)
    a_token_lights_up_in_all_heads_and_a_difference_opens_its_line_in_both_runs(with_two, tall)


def a_token_lights_up_in_all_heads_and_a_difference_opens_its_line_in_both_runs(with_two, tall):
    opened(tall, with_two, "corpus=joined&kind=cross&layer=2&head=1", HEADS)
    click_chart(tall, POINTS, *plot(tall, POINTS).evaluate(MARK, [1, 0]))
    expect(tall.locator(LINE)).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(tall)
    line, side, _ = address(tall)["spot"].split(".")
    assert (side, address(tall)["line"]) == ("query", line)
    assert [plot(tall, key).evaluate(RINGS) for key in (POINTS, HEADS)] == [1, 4]
    assert plot(tall, HEADS).evaluate(BRIGHT) == 4 * plot(tall, POINTS).evaluate(BRIGHT) > 0
    wait_for_rest(tall)
    # A key of the third head, whose panel has axes of its own: two layers and a ring each.
    tall.mouse.click(*plot(tall, HEADS).evaluate(
        """chart => {
          const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect(), trace = chart._fullData[6];
          return [box.left + xaxis._offset + xaxis.c2p(trace.x[0]), box.top + yaxis._offset + yaxis.c2p(trace.y[0])];
        }"""
    ))  # fmt: skip
    expect_address(tall, head="3")
    wait_for_idle(tall)
    line, side, place = address(tall)["spot"].split(".")
    follow(tall, "Open this line on Attention", "Attention")
    expect_address(tall, src=WORDS[int(line) - 1], layer="2", head="3", panel="head", **{side: place})

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
