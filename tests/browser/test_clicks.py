"""On each page a click on a mark, a bar, a cell or a row of a picture goes into the address, and charts follow it."""

from dataclasses import dataclass

import pytest
from playwright.sync_api import expect

from glassformer.attention import one_weight_pictures as pictures
from glassformer.attention.one_weight_panel import TABLE
from tests.browser.helpers import click_chart, comes_to, in_both_windows, press_table, turn_to
from tests.browser.made_up import NAME
from tests.browser.story import SETTLED_MS, charts_are_drawn, expect_address, wait_for_charts

TALL = {"width": 1280, "height": 2600}  # high enough to hold everything
# The middle of a bar, or a mark, in the units of the axes, and what it carries.
MARK = """(chart, [curve, place]) => {
  const { type, orientation, customdata, x, y } = chart._fullData[curve];
  const { b, s, p0, p1 } = chart.calcdata[curve][place];
  const at = type !== "bar" ? [x[place], y[place]] : [b + s / 2, (p0 + p1) / 2];
  return [...(type === "bar" && orientation === "v" ? at.reverse() : at), customdata?.[place]]; }"""


@dataclass(frozen=True)
class Mark:
    curve: int
    place: int


@dataclass(frozen=True)
class Row:
    """Of a table that is a canvas."""

    row: int
    height: int


@dataclass(frozen=True)
class Key:
    """Pressed for the steps, after which the page follows those again."""

    key: str
    said: str


HEAD_MAP, SCORES, VALUES, LENGTHS = (
    one.key for one in (pictures.head_map, pictures.scores, pictures.values, pictures.lengths)
)
# What is looked at afterwards, by the fields of the address; {id} is what the mark carries, counted from 1.
CLICKS = {
    "attention?model=reverse&src=glasss&panel=head&layer=2&head=2&log=1&hide=1": [
        ("head_map", (3, 2), {"query": "3", "key": "4"})
    ],
    "masks?model=reverse&mask=decoder": [("mask_bool", (8, 2), {"query": "3", "key": "9"})],
    "masks?model=reverse&mask=decoder&masks=one_row&query=3": [("mask_row", Mark(1, 0), {"query": "3", "key": "{id}"})],
    "positions?model=reverse&src=abcdef&positions=sentence": [("embedding_strengths", Mark(1, 3), {"key": "4"})],
    "forcing?model=reverse&src=fedcba&ref=abcxef": [
        ("forcing_shift", (2, 0.8), {"at": "3", "ref": "abcxef", "step": "3"}),
        ("stepper", Key("ArrowRight", "Token 4: candidates"), {"step": "4"}),
    ],
    "inside?model=reverse&src=abcdef&inside=lens": [("lens_map", (3.3, 1.3), {"step": "4"})],
    "inside?model=reverse&src=abcdef&inside=stream": [("stream_norm", Mark(1, 2), {"key": "3"})],
    "inside?model=reverse&src=abcdef&inside=ffn&side=target": [
        ("ffn_shares", (3, 1), {"layer": "2", "step": "4"}),
        ("ffn_active", Mark(0, 2), {"neuron": "{id}"}),
        ("ffn_map", (0, 0), {"step": None}),
    ],
    "inside?model=reverse&src=abcdef&inside=pieces": [
        ("piece_neighbours", Mark(0, 1), {"piece": "shared.{carried}"}),
        ("piece_map", Mark(0, 3), {"piece": "shared.{carried}"}),
    ],
    "matters?model=reverse&src=glass&matters=logit&step=2": [("matters_parts", (4, 2), {"layer": "2", "head": "1"})],
    "matters?model=zh-en&matters=heads&effect=kl&effect_at=step&step=3": [
        ("matters_effects", (0, 10), {"kind": None, "layer": "3", "head": "1"}),
        ("matters_effects", (1, 0), {"kind": "encoder", "layer": "1", "head": "2"}),
    ],
    "doctor?model=zh-en&doctor=parameters&names=encoder+weight": [
        ("parameters", Row(1, 29), {"tensor": "encoder.layers.0.self_attn.k_proj.weight"})
    ],
    "attention?model=reverse&src=glass&panel=walk&layer=2&head=1&step=6": [
        (SCORES, (1,), {"key": "2"}),
        (VALUES, (3, 2), {"key": "3"}),
        (HEAD_MAP, (2, 4), {"query": "5", "key": "3"}),
        (LENGTHS, (2,), {"head": "3", "query": "5"}),
        ("stepper", Key("ArrowLeft", "the query l → g gives the key"), {"step": "5", "head": "3"}),
    ],
}


def framed(page, key):
    """Where the last frame of a chart is."""
    return page.locator(f".st-key-{key} .js-plotly-plot").first.evaluate(
        "chart => { const { x0, x1 } = chart.layout.shapes.at(-1); return (x0 + x1) / 2; }"
    )


@pytest.mark.parametrize("where", CLICKS)
def test_a_click_goes_into_the_address(server, new_page, where):
    page = new_page(viewport=TALL)
    turn_to(page, f"{server.url}/{where}")
    for key, place, expected in CLICKS[where]:
        charts_are_drawn(page)
        carried = None
        if isinstance(place, Key):
            page.keyboard.press(place.key)
            expect(page.get_by_test_id("stMain")).to_contain_text(place.said, timeout=SETTLED_MS)
        elif isinstance(place, Row):
            expect(page.locator(f".st-key-{key} [role=row]").nth(place.row + 1)).to_be_attached(timeout=SETTLED_MS)
            press_table(page, key, place.row, 60, height=place.height)
        elif isinstance(place, Mark):
            chart = page.locator(f".st-key-{key} .js-plotly-plot")
            *at, carried = chart.evaluate(MARK, [place.curve, place.place])
            click_chart(page, key, *at)
        else:
            click_chart(page, key, *place)
        ids = {"carried": carried, "id": (carried or 0) + 1}
        expect_address(page, **{name: value and value.format(**ids) for name, value in expected.items()})
        if key == SCORES:
            for other in (SCORES, HEAD_MAP, pictures.weights.key):
                comes_to(page, lambda other=other: framed(page, other), pytest.approx(1))


# What is wider than its place.
WIDE = """() => [...document.querySelectorAll(
  '[data-testid="stMain"], .katex-display, [class*="st-key-walk"]'
)].filter(part => part.clientWidth && part.scrollWidth > part.clientWidth + 1).map(part => part.className)"""


def test_markup_in_pieces_is_shown_letter_by_letter_and_nothing_overflows(own_server, page):
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    src = "%3Cimg/src=x/onerror=alert(1)%3E$x%5E2$%60c%60:red[x]**b**"
    options = f"model={NAME}&src={src}&max=60&layer=1&head=1&step=20&panel=walk&kind=encoder&lang=en"
    turn_to(page, f"{own_server.url}/attention?{options}")
    wait_for_charts(page)
    said = page.locator(f".st-key-{TABLE}").inner_text().replace("\u2060", "")
    for piece in ("<img/src=x/onerror=alert(1)>", "**b**", "$x^2$", "`c`", ":red[x]"):
        assert f": {piece}" in said
    assert not dialogs
    products = page.locator(f".st-key-{pictures.products.key} .js-plotly-plot")
    for _ in in_both_windows(page):
        assert page.evaluate(WIDE) == []
        assert page.locator(".katex-error").count() == 0
        assert products.evaluate("chart => chart.clientHeight") <= 300
