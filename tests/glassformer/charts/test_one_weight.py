"""The charts of a walk: a row over the keys, q and k with their products, heads' lengths, rows of signed numbers."""

import numpy as np
import plotly.graph_objects as go
import pytest

from glassformer import charts
from glassformer.charts.theme import DARK_COLORS, SIGNED_SCALE, literal
from tests.glassformer.charts.test_positions import colours

MARKUP = "<b>$x$</b>"
KEYS = ["▁a", MARKUP, "▁a"]


def key_row(values=(1.5, -2.0, 0.25), **options):
    return charts.key_row_spec(
        np.array(values), KEYS, title="Scores", **({"value_name": "score", "chosen": 1} | options)
    )


def specs():
    q, k = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    yield charts.query_times_key_spec(q, k, title="t", query="a", key="b")
    yield key_row(before=("q · k", np.array([3.0, -4.0, 0.5])), closed=["", "", "padding"])


@pytest.mark.parametrize("place", range(2))
def test_plotly_takes_the_figure_and_every_colour_has_a_dark_twin(place):
    spec = list(specs())[place]
    assert colours(spec["data"]) | colours(spec["layout"]) <= DARK_COLORS.keys()
    assert spec["layout"]["height"] == 260
    assert spec["layout"]["title"]["text"]
    go.Figure({"data": spec["data"], "layout": spec["layout"]})


def test_the_scale_of_signed_numbers_has_zero_in_its_middle_and_is_darkest_at_its_ends():
    shades = [shade for _, shade in SIGNED_SCALE]
    light = [sum(int(shade[i : i + 2], 16) for i in (1, 3, 5)) for shade in shades]
    assert light[:5] == sorted(light[:5])
    assert light[4:] == sorted(light[4:], reverse=True)
    assert [place for place, _ in SIGNED_SCALE][4] == 0.5


def test_q_and_k_share_a_scale_and_the_bars_are_their_products():
    q, k = np.array([1.0, -2.0, 0.5]), np.array([3.0, 4.0, -8.0])
    figure = charts.query_times_key(q, k, title="q and k", query=MARKUP, key="b")
    strips, bars = figure.data
    assert np.array_equal(strips.z, [q, k])
    assert (strips.zmin, strips.zmax) == (-8, 8)
    assert bars.y.tolist() == [3, -8, -4]
    assert bars.x.tolist() == [0, 1, 2]  # dimensions are counted from 0, as on every page
    assert bars.marker.color[0] != bars.marker.color[1] == bars.marker.color[2]
    assert strips.customdata[0, 1].tolist() == [f"q of {literal(MARKUP)}", "dimension 1"]
    assert figure.layout.meta["table"]["rows"] == [[0, 1, 3, 3], [1, -2, 4, -8], [2, 0.5, -8, -4]]
    with pytest.raises(ValueError, match="one length"):
        charts.query_times_key(q, k[:2], title="", query="", key="")


def test_a_row_over_the_keys_shows_each_number_and_frames_the_chosen_key():
    spec = key_row(before=("q · k", np.array([3.0, -4.0, 0.5])))
    pale, dark, whole = spec["data"]
    assert (pale["y"].tolist(), dark["y"].tolist()) == ([3, -4, 0.5], [1.5, -2, 0.25])
    assert pale["width"] > dark["width"]
    low, high = spec["layout"]["yaxis"]["range"]
    assert low < -4
    assert high > 3
    assert whole["customdata"] == [0, 1, 2]
    assert whole["base"] == low
    assert whole["hovertext"][1] == f"2: <b>{literal(MARKUP)}</b><br>q · k <b>−4</b><br>score <b>−2</b>"
    frame = spec["layout"]["shapes"][0]
    assert frame["x0"] < 1 < frame["x1"]
    labels = spec["layout"]["meta"]["ticks"]["xaxis"]["labels"]
    assert labels == ["▁a", f"<b>{literal(MARKUP)}</b>", "▁a"]
    assert spec["layout"]["meta"]["table"] == {
        "columns": ["number", "Key", "q · k", "score", "note"],
        "rows": [[1, "▁a", 3, 1.5, ""], [2, MARKUP, -4, -2, ""], [3, "▁a", 0.5, 0.25, ""]],
    }


def test_closed_keys_are_hatched_and_say_why_and_their_number_is_nowhere():
    spec = key_row((0.25, 77.0, 0.75), closed=["", "−∞, padding", ""], limits=(0, 1))
    bars, hatched, whole = spec["data"]
    assert np.isnan(bars["y"][1])
    assert hatched["x"].tolist() == [1]
    assert hatched["marker"]["pattern"]["shape"] == "/"
    assert whole["hovertext"][1] == f"2: <b>{literal(MARKUP)}</b><br><i>−∞, padding</i>"
    assert spec["layout"]["meta"]["table"]["rows"][1] == [2, MARKUP, None, "−∞, padding"]
    assert "77" not in str(whole["hovertext"])
    assert spec["layout"]["yaxis"]["range"] == [0, 1]


@pytest.mark.parametrize(
    ("values", "within"),
    [
        ((1.0, 2.0, 3.0), (0, 3)),
        ((-1.0, -2.0, -3.0), (-3, 0)),
        ((0.0, 0.0, 0.0), (0, 0)),
        ((np.nan, np.inf, 2.0), (0, 2)),
    ],
)
def test_the_axis_holds_zero_and_all_numbers(values, within):
    low, high = key_row(values)["layout"]["yaxis"]["range"]
    assert low <= within[0] <= within[1] <= high
    assert low < high
    assert np.isfinite([low, high]).all()


def test_nothing_to_draw_and_wrong_sizes():
    none = np.zeros(0)
    assert charts.key_row_spec(none, [], title="t", value_name="v", chosen=0)["data"] == []
    with pytest.raises(ValueError, match="for 3 keys"):
        key_row((1.0, 2.0))
