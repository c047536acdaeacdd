"""The charts of one weight show q, k and their products, and a row over the keys, closed ones as closed."""

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.theme import literal

MARKUP = "<b>$x$</b>"
KEYS = ["▁a", MARKUP, "▁a"]


def key_row(values=(1.5, -2.0, 0.25), **options):
    return charts.key_row_spec(
        np.array(values), KEYS, title="Scores", **({"value_name": "score", "chosen": 1} | options)
    )


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
    assert whole["customdata"] == [0, 1, 2]
    assert whole["base"] == spec["layout"]["yaxis"]["range"][0] < -4
    assert whole["hovertext"][1] == f"2: <b>{literal(MARKUP)}</b><br>q · k <b>−4</b><br>score <b>−2</b>"
    frame = spec["layout"]["shapes"][0]
    assert frame["x0"] < 1 < frame["x1"]
    labels = spec["layout"]["meta"]["ticks"]["xaxis"]["labels"]
    assert labels == ["▁a", f"<b>{literal(MARKUP)}</b>", "▁a"]
    rows = spec["layout"]["meta"]["table"]["rows"]
    assert rows == [[1, "▁a", 3, 1.5, ""], [2, MARKUP, -4, -2, ""], [3, "▁a", 0.5, 0.25, ""]]


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
    with pytest.raises(ValueError, match="for 3 keys"):
        key_row((1.0, 2.0))
