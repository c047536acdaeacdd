"""A strip of maps holds every moment on one scale, with what its mask closes, and is small enough to send."""

import json
from functools import partial

import numpy as np
import pytest

from glassformer import charts
from glassformer.charts.theme import literal
from glassformer.components.plotly_component import figure_json
from glassformer.extensions.snapshots.charts import GAP, moment_in_film
from glassformer.extensions.snapshots.snapshot_slider import Stop, moments_view, moved
from tests.glassformer.components.test_components import ignore, sends_what_its_type_names

NAMES = [(f"Step {n}", f"loss {n}.0") for n in range(8)]
QUERIES, KEYS = ["<b>", "x", "y"], ["k0", "k1", "k2", "k3"]


def maps(count=8):
    return np.random.default_rng(5).random((count, len(QUERIES), len(KEYS))).astype(np.float32)


def draw(drawn, **options):
    asked = {"names": NAMES[: len(drawn)], "queries": QUERIES, "keys": KEYS, "title": "One head", "allowed": None}
    return charts.film_spec(drawn, **asked | options)


def tile(spec, at, trace=0):
    """The cells of a moment, as they lie on the sheet."""
    row, column = divmod(at, spec["layout"]["meta"]["film"]["columns"])
    height, width = len(QUERIES) + 1, len(KEYS) + 1
    cells = spec["data"][trace]["z"][row * height : (row + 1) * height, column * width : (column + 1) * width]
    assert np.isnan(cells[-1]).all(), "an empty row stands between tiles"
    assert np.isnan(cells[:, -1]).all()
    return cells[:-1, :-1]


def test_each_moment_is_a_tile_on_one_scale():
    drawn = maps()
    spec = draw(drawn)
    for at, one in enumerate(drawn):
        np.testing.assert_allclose(tile(spec, at), one, atol=1e-3)
    weights = spec["data"][0]
    assert (weights["zmin"], weights["zmax"]) == (0, 1)
    assert (len(weights["y"]), len(weights["x"])) == tuple(n + 1 for n in weights["z"].shape)
    np.testing.assert_allclose(weights["x"][[0, 4, 5, 9]], [0, 1, 1 + GAP, 2 + GAP])
    assert len(spec["data"]) == 1


def test_what_the_mask_closes_is_drawn_as_closed_in_every_tile():
    allowed = np.tri(3, 4, 1, dtype=bool)
    spec = draw(maps(), allowed=allowed, mask_reason="because")
    for at in range(8):
        np.testing.assert_array_equal(np.isnan(tile(spec, at)), ~allowed)
        np.testing.assert_array_equal(np.isnan(tile(spec, at, trace=1)), allowed)
    assert "<i>because</i>" in spec["data"][1]["hovertemplate"]


def test_a_table_has_every_cell_with_its_moment():
    drawn, allowed = maps(2), np.tri(3, 4, 1, dtype=bool)
    table = {str(name): list(column) for name, column in draw(drawn, allowed=allowed)["table"]().items()}
    assert table["moment"] == ["Step 0"] * 12 + ["Step 1"] * 12
    assert table["Query"][:4] == ["<b>"] * 4
    np.testing.assert_array_equal(np.isfinite(table["weight"]), np.tile(allowed.ravel(), 2))
    assert [weight for weight in table["weight"] if np.isfinite(weight)] == drawn[:, allowed].ravel().tolist()


def test_pieces_are_text_and_blocks_are_named_by_their_first():
    film = draw(maps(), block=3)["layout"]["meta"]["film"]
    assert film["queries"] == [f"1: <b>{literal('<b>')}</b>", "4: <b>x</b>", "7: <b>y</b>"]
    assert "Pooled" in draw(maps(), block=3)["layout"]["title"]["subtitle"]["text"]


def test_a_figure_for_notebooks_names_every_cell():
    figure = charts.film(maps(), names=NAMES, queries=QUERIES, keys=KEYS, title="One head", allowed=None)
    labels = figure.data[0].customdata
    assert tuple(labels[0][0]) == ("Step 0<br>loss 0.0", f"1: <b>{literal('<b>')}</b>", "1: <b>k0</b>")
    assert tuple(labels[5][6]) == ("Step 7<br>loss 7.0", "2: <b>x</b>", "2: <b>k1</b>")


@pytest.mark.parametrize(("index", "moment"), [((0, 0), 0), ((3, 2), 0), ((4, 0), 1), ((31, 3), 7), ((4,), None)])
def test_a_click_is_read_as_the_moment_of_its_tile(index, moment):
    assert moment_in_film(index, len(QUERIES)) == moment


def test_24_maps_of_30_pieces_are_a_few_bytes():
    names, pieces = [(f"Step {n}", "") for n in range(24)], [f"token {n}" for n in range(48)]
    spec = draw(np.random.default_rng(1).random((24, 48, 48)), names=names, queries=pieces, keys=pieces)
    assert len(figure_json(spec)) < 250_000
    assert json.loads(figure_json(spec))["layout"]["meta"]["film"]["least"] > 150  # wider tiles for more pieces


@pytest.mark.parametrize("wrong", [{"names": NAMES[:3]}, {"keys": KEYS[:2]}, {"allowed": np.ones((2, 2), bool)}])
def test_sizes_that_do_not_fit_are_refused_and_no_map_is_an_empty_picture(wrong):
    with pytest.raises(ValueError, match="for"):
        draw(maps(), **wrong)
    assert draw(maps(0), names=[])["data"] == []


STOPS = [Stop(0, "a", "b"), Stop(None, "c", "d")]
DRAWN = {"MomentsPayload": partial(moments_view, STOPS, of="m", at=1, revision=2, on_move=ignore)}


@pytest.mark.parametrize(("interface", "draw"), DRAWN.items())
def test_the_types_of_a_payload_name_what_python_sends(monkeypatch, interface, draw):
    sends_what_its_type_names(monkeypatch, interface, draw)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({"of": "m", "step": 5, "passing": False}, (5, False)),
        ({"of": "m", "step": None, "passing": True}, (None, True)),
        ({"of": "other", "step": 5}, None),
        ({"of": "m", "step": -1}, None),
        ({"of": "m", "step": "5"}, None),
        ({"of": "m", "step": True}, None),
        ("m", None),
        (None, None),
    ],
)
def test_only_a_stop_of_this_checkpoint_is_a_move(monkeypatch, said, found):
    monkeypatch.setattr("streamlit.session_state", {"k": {"move": said}})
    assert moved("k", of="m") == found
