"""Feed-forward and embeddings of the Inside page in a real browser: clicks, the address, both themes, a phone."""

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import comes_to, in_both_windows, screenshot, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.made_up import HOSTILE, NAME
from tests.browser.story import address, expect_address, wait_for_charts

PARTS = {
    "ffn": ("ffn_shares", "ffn_histogram", "ffn_active", "ffn_tokens", "ffn_map"),
    "pieces": ("piece_neighbours", "piece_map"),
}
LONG = "我喜欢喝咖啡你能帮我一下吗他每天坐公共汽车去学校如果明天下雨我们就待在家里" * 3
_PLACE = """([key, x, y]) => { const chart = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect();
  return [box.left + xaxis._offset + xaxis.d2p(x), box.top + yaxis._offset + yaxis.d2p(y)]; }"""
_POINTS = """key => document.querySelector(`.st-key-${key} .js-plotly-plot`)._fullData.flatMap(trace =>
  Array.from(trace.x, (x, i) => ({ id: trace.customdata[i], x, y: trace.y[i], piece: trace.hovertext[i] })))"""
# Pairs of labels of the map that lie over each other, by the room that they really take.
_OVERLAPS = """key => { const boxes = [...document.querySelectorAll(`.st-key-${key} .textpoint text`)]
    .filter(text => text.textContent.trim()).map(text => [text.textContent, text.getBoundingClientRect()]);
  const meet = (a, b) => Math.min(a.right, b.right) - 2 > Math.max(a.left, b.left)
    && Math.min(a.bottom, b.bottom) - 4 > Math.max(a.top, b.top);
  return [boxes.length, boxes.flatMap(([one, a], i) =>
    boxes.slice(0, i).filter(([, b]) => meet(a, b)).map(([other]) => [one, other]))]; }"""


def open_part(page, server, part, query=""):
    turn_to(page, f"{server.url}/inside?inside={part}{query}")
    wait_for_charts(page)


def chart(page, key):
    return page.locator(f".st-key-{key}")


def click_at(page, key, x, y):
    chart(page, key).scroll_into_view_if_needed()
    wait_for_rest(page)
    place = page.evaluate(_PLACE, [key, x, y])
    page.mouse.move(*place)
    expect(chart(page, key).locator(".hoverlayer .hovertext").first).to_be_visible()  # a click is of what is hovered
    page.mouse.click(*place)
    page.mouse.move(0, 0)
    wait_for_idle(page)


def test_clicks_choose_token_layer_neuron_and_piece_and_stay_in_the_address(server, new_page):
    page = new_page(viewport={"width": 1280, "height": 2600})
    open_part(page, server, "ffn", "&model=reverse&src=abcdef&side=target")
    click_at(page, "ffn_shares", 3, 1)
    expect(chart(page, "ffn_active")).to_contain_text("Most active neurons at d → c")
    expect_address(page, layer="2", step="4")
    third = page.evaluate(_POINTS, "ffn_active")[2]
    click_at(page, "ffn_active", third["x"] / 2, third["y"])
    neuron = str(third["id"] + 1)
    expect(chart(page, "ffn_tokens")).to_contain_text(f"What drives neuron {neuron} of layer 2")
    expect_address(page, neuron=neuron)
    click_at(page, "ffn_tokens", 3, page.evaluate(_POINTS, "ffn_tokens")[3]["y"] / 2)
    click_at(page, "ffn_map", 0, 0)
    comes_to(page, lambda: address(page).get("step", "1"), "1")
    chosen = address(page)["neuron"]
    page.reload()
    wait_for_idle(page)
    expect(chart(page, "ffn_tokens")).to_contain_text(f"What drives neuron {chosen} of layer 2")

    open_part(page, server, "pieces", "&model=reverse&src=abcdef")
    nearest = page.evaluate(_POINTS, "piece_neighbours")[1]
    click_at(page, "piece_neighbours", nearest["x"] / 2, nearest["y"])
    name = nearest["piece"].removeprefix("<b>").partition("</b>")[0]
    expect(chart(page, "piece_neighbours")).to_contain_text(f"Nearest to {name}")
    own = next(point for point in page.evaluate(_POINTS, "piece_map") if "<b>d</b>" in point["piece"])
    click_at(page, "piece_map", own["x"], own["y"])
    expect(chart(page, "piece_neighbours")).to_contain_text("Nearest to d")


@pytest.mark.parametrize(
    ("part", "query"),
    [
        ("ffn", f"&side=target&src={LONG}"),
        pytest.param("pieces", "&model=en-fr&side=target", marks=pytest.mark.deep),
        ("pieces", f"&src={LONG}"),
    ],
)
def test_nothing_overflows_or_overlaps(server, tab, part, query):
    open_part(tab, server, part, query)
    for scheme, width in in_both_windows(tab):
        assert tab.get_by_test_id("stMain").evaluate("main => main.scrollWidth <= main.clientWidth")
        for key in PARTS[part]:
            box = chart(tab, key).locator(".main-svg").first.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        if part == "pieces":
            labels, overlaps = tab.evaluate(_OVERLAPS, "piece_map")
            assert labels > 20
            assert overlaps == []
        screenshot(tab, f"inside-{part}-{'en-fr' in query}-{width}-{scheme}", whole=True)


def test_markup_in_pieces_is_shown_letter_by_letter(own_server, page):
    query = f"&model={NAME}&src={'%20'.join(['ba', '%3Cb%3Ex%3C/b%3E', '$x^2$', '%25{y}'])}&side=target"
    open_part(page, own_server, "ffn", query)
    expect(chart(page, "ffn_effect")).to_be_visible()
    written = [chart(page, "ffn_effect").locator(".ytick text").all_text_contents()]
    open_part(page, own_server, "pieces", query)
    written.append(chart(page, "piece_neighbours").locator(".ytick text").all_text_contents())
    written.append([text for text in chart(page, "piece_map").locator(".textpoint text").all_text_contents() if text])
    for texts in written:
        assert any(text.rstrip("…") and any(piece.startswith(text.rstrip("…")) for piece in HOSTILE) for text in texts)
    assert page.locator(".gf-chart b, .gf-chart img, .gf-chart script, .gf-chart a").count() == 0
