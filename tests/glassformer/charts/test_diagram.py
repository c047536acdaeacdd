"""The diagram of a model draws every block where it belongs, none over another."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.diagram import DiagramBlock, DiagramLayer, Stack, Sublayer, block_table
from glassformer.charts.theme import literal


def block(place, kind="edge", **changes):
    said = {"text": place, "name": place, "role": "Does.", "shape": "[2]", "leads_to": "x"}
    return DiagramBlock(**({"place": place, "kind": kind} | said | changes))


def stack(side, *, pre=True, n_layers=2, subs=("attn", "ffn")):
    def sublayer(layer, sub):
        place = f"{side}.{layer}.{sub}"
        kind = {"attn": "attention", "cross": "cross", "ffn": "linear"}[sub]
        return Sublayer(block(place, kind), block(f"{place}.norm", "norm"), block(f"{place}.plus"))

    layers = tuple(DiagramLayer(f"Layer {k}", tuple(sublayer(k, sub) for sub in subs)) for k in range(n_layers))
    ends = (block(f"{side}.final", "norm"), block(f"{side}.end"))
    inputs = [block(f"{side}.{name}") for name in ("ids", "mask", "embedding", "positions")]
    return Stack(side, pre, *inputs, layers, ends)


def drawn(**changes):
    decoder = stack("target", subs=("attn", "cross", "ffn"), **changes)
    return charts.model_diagram(stack("source", **changes), decoder, title="A <model>")


def boxes(figure):
    """Each block's box: left, right, bottom, top."""
    bars = figure.data[0]
    return {
        place: (base, base + width, y - height / 2, y + height / 2)
        for place, base, width, y, height in zip(bars.customdata, bars.base, bars.x, bars.y, bars.width, strict=True)
    }


def alone(side, **changes):
    return charts.model_diagram(stack(side, **changes), title="A <model>")


@pytest.mark.parametrize("pre", [True, False])
@pytest.mark.parametrize(("draw", "count"), [(drawn, 2 * 6 + 2 * 2 * 2 + 2 * 3 * 2), (partial(alone, "source"), 14)])
def test_no_block_overlaps_another_and_norms_stand_in_the_branch_or_on_the_stream_behind_the_sum(draw, count, pre):
    figure = draw(pre=pre)
    found = boxes(figure)
    assert len(found) == count
    x0, x1, y0, y1 = np.transpose([*found.values()])
    assert ((x0 >= 0) & (x0 < x1) & (x1 <= 100)).all()
    assert ((y0 > 0) & (y0 < y1) & (y1 < figure.layout.yaxis.range[1])).all()
    over = (x0[:, None] < x1) & (x1[:, None] > x0) & (y0[:, None] < y1) & (y1[:, None] > y0)
    np.testing.assert_array_equal(over, np.eye(count, dtype=bool))
    plus = dict(zip(figure.data[1].customdata, figure.data[1].y, strict=True))
    stream = figure.data[1].x[list(plus).index("source.0.attn.plus")]
    left, right, bottom, top = found["source.0.attn.norm"]
    assert (left <= stream <= right) == (not pre)
    if pre:
        assert top < found["source.0.attn"][2] < plus["source.0.attn.plus"]
    else:
        assert found["source.0.attn"][3] < plus["source.0.attn.plus"] < bottom


def test_the_memory_goes_to_every_cross_attention_and_nowhere_else():
    figure = drawn()
    found = boxes(figure)
    heads = [note for note in figure.layout.annotations if note.showarrow and note.ax == 50]
    middles = [(found[f"target.{k}.cross"][2] + found[f"target.{k}.cross"][3]) / 2 for k in range(2)]
    assert [note.y for note in heads] == middles
    assert {note.x for note in heads} == {found["target.0.cross"][0]}
    memory = (found["source.end"][2] + found["source.end"][3]) / 2
    assert any((line.x0, line.y0, line.x1) == (found["source.end"][1], memory, 50) for line in figure.layout.shapes)


def test_text_is_literal_hover_says_the_counts_and_the_table_has_each_block_once():
    encoder, decoder = stack("source"), stack("target")
    odd = block("source.ids", text="<b>", name="<i>", parameters=1234, multiply_adds=0)
    figure = charts.model_diagram(replace(encoder, ids=odd), decoder, title="A <model>")
    assert figure.layout.title.text == literal("A <model>")
    place = list(figure.data[0].customdata).index("source.ids")
    assert figure.data[0].text[place] == literal("<b>")
    lines = figure.data[0].hovertext[place].split("<br>")
    assert lines[0] == f"<b>{literal('<i>')}</b>"
    assert lines[1:] == ["Does.", "[2]", "Parameters <b>1,234</b>", "Multiply-adds <b>0</b>", "Click: x"]
    blocks = [block("a", parameters=3), block("b"), block("a", parameters=3)]
    assert block_table(blocks)["rows"] == [["a", "Does.", "[2]", 3, None], ["b", "Does.", "[2]", None, None]]
