"""Queries and keys, and two runs, in a real browser: a selection lights up everywhere and leads to its line."""

import pytest
from playwright.sync_api import expect

from glassformer.extensions.corpus.library.tables import CorpusOptions
from tests.browser.helpers import in_both_windows, open_page, screenshot, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import SETTLED_MS, address, expect_address
from tests.measured_corpus import measure
from tools.serve import serve

WORDS = ["abc", "cab", "glass", "noon", "letters", "abcdefgh", "backwards", "hello", "reverse", "words", "many"]
POINTS, HEADS, LINE = ".st-key-corpus_joined", ".st-key-corpus_joined_heads", ".st-key-corpus_line"
DIFFERENCES, LINES = ".st-key-corpus_beside", ".st-key-beside_lines"
CARD = "[class*='st-key-corpus_line']"
FIRST_ROW = 52  # pixels from a table's top
RINGS = "chart => chart._fullData.filter(trace => trace.marker.symbol === 'circle-open').length"
BRIGHT = "chart => chart._fullData.flatMap(t => t.hovertext ? [...t.marker.opacity] : []).filter(o => o === 1).length"


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
    return new_page(viewport={"width": 1280, "height": 2200})


def mark(page, chart, curve, place):
    """Where a mark of a curve, or a cell of a map's row, is on the page."""
    return page.locator(f"{chart} .js-plotly-plot").evaluate(
        """(chart, [curve, place]) => {
          const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect();
          const trace = chart._fullData[curve];
          const [x, y] = trace.type === "heatmap" ? place : [trace.x[place], trace.y[place]];
          return [box.left + xaxis._offset + xaxis.c2p(x), box.top + yaxis._offset + yaxis.c2p(y)];
        }""",
        [curve, place],
    )


def test_a_token_that_is_clicked_lights_up_in_all_heads_and_leads_to_its_map(with_two, tall):
    open_page(tall, f"{with_two.url}/corpus?model=reverse&corpus=joined&kind=cross&layer=2&head=1")
    expect(tall.locator(f"{HEADS} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(tall)
    tall.mouse.click(*mark(tall, POINTS, 1, 0))
    expect(tall.locator(LINE)).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(tall)
    line, side, _ = address(tall)["spot"].split(".")
    assert (side, address(tall)["line"]) == ("query", line)
    points, heads = (tall.locator(f"{one} .js-plotly-plot") for one in (POINTS, HEADS))
    assert (points.evaluate(RINGS), heads.evaluate(RINGS)) == (1, 4)
    assert heads.evaluate(BRIGHT) == 4 * points.evaluate(BRIGHT) > 0
    wait_for_rest(tall)
    tall.mouse.click(*mark(tall, HEADS, 6, 0))  # a key of the third head: two layers and a ring each
    expect_address(tall, head="3")
    wait_for_idle(tall)
    line, side, place = address(tall)["spot"].split(".")
    tall.locator(LINE).get_by_role("link", name="Open this head's map on Attention").click()
    expect(tall.get_by_role("heading", level=1)).to_have_text("Attention", timeout=SETTLED_MS)
    wait_for_idle(tall)
    expect_address(tall, src=WORDS[int(line) - 1], layer="2", head="3", panel="head", **{side: place})


def test_two_runs_fit_both_windows_and_a_line_opens_in_both(with_two, tall):
    open_page(tall, f"{with_two.url}/corpus?model=reverse&corpus=beside&over=entropy")
    expect(tall.locator(f"{DIFFERENCES} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(tall)
    tall.mouse.click(*mark(tall, DIFFERENCES, 0, [1, 1]))  # layer 2, head 2 of the first block
    expect_address(tall, corpus="beside", kind="encoder", layer="2", head="2")
    wait_for_idle(tall)
    wait_for_rest(tall)
    box = tall.locator(f"{LINES} canvas").first.bounding_box()
    tall.mouse.click(box["x"] + 30, box["y"] + FIRST_ROW)
    expect(tall.locator(CARD)).to_have_count(2, timeout=SETTLED_MS)
    wait_for_idle(tall)
    word = WORDS[int(address(tall)["line"]) - 1]
    for scheme, width in in_both_windows(tall):
        assert tall.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
        screenshot(tall, f"two-runs-{scheme}-{width}", whole=True)
    tall.get_by_role("link", name="Compare both runs of this line").click()
    expect(tall.get_by_role("heading", level=1)).to_have_text("Compare", timeout=SETTLED_MS)
    wait_for_idle(tall)
    there = address(tall)
    assert there["src"] == word
    assert "model%3Dreverse%401022" in there["b"] or "model=reverse@1022" in there["b"]
