"""Queries and keys are points whose colour, mark, hover text and click say which token they are."""

import numpy as np

from glassformer.charts import joined, joined_heads, joined_heads_spec, joined_spec
from glassformer.charts.theme import SOURCE_COLOR, TARGET_COLOR
from glassformer.extensions.corpus.charts import Cloud

POINTS = np.arange(12, dtype=float).reshape(6, 2) ** 1.5
IS_QUERY = np.array([False, False, True, True, False, True])


def cloud(**changed):
    about = {"points": POINTS, "is_query": IS_QUERY, "pieces": ["a", "<b>", "c", "d", ",", "f"]}
    return Cloud(**about | {"lines": np.repeat([1, 2_000], 3), "places": np.array([1, 2, 1, 2, 1, 3])} | changed)


def drawn(one, **options):
    joined(one, shares=(0.5, 0.25), title="Joined", **options)  # in the pseudo-language, and checked by Plotly
    return joined_spec(one, shares=(0.5, 0.25), title="Joined", **options)


def test_sides_have_colours_and_shapes_of_their_own_and_axes_their_share():
    spec = drawn(cloud())
    keys, queries, *legend = spec["data"]
    assert [(str(one["name"]), one["x"]) for one in legend] == [("keys", [None]), ("queries", [None])]
    assert (keys["customdata"], queries["customdata"]) == ([0, 1, 4], [2, 3, 5])
    np.testing.assert_allclose(np.stack([queries["x"], queries["y"]], axis=1), POINTS[IS_QUERY], rtol=1e-6)
    assert (keys["marker"]["color"], queries["marker"]["color"]) == (SOURCE_COLOR, TARGET_COLOR)
    assert keys["marker"]["symbol"] != queries["marker"]["symbol"]
    assert "50&#37;" in spec["layout"]["xaxis"]["title"]["text"]
    assert keys["hovertext"][1] == "<b>&#60;b&#62;</b><br>key of token 2, line 1"
    assert queries["hovertext"][1] == "<b>d</b><br>query of token 2, line 2000"


def test_what_is_selected_is_drawn_over_what_is_pale():
    lit = np.array([True, False, False, True, False, False])
    keys, queries, ring, *_ = drawn(cloud(lit=lit, chosen=3))["data"]
    assert keys["customdata"] == [1, 4, 0]
    assert queries["customdata"] == [2, 5, 3]
    assert keys["marker"]["opacity"].tolist() == [0.13, 0.13, 1]
    assert (ring["x"], ring["y"], ring["hoverinfo"]) == ([POINTS[3, 0]], [POINTS[3, 1]], "skip")


def test_colours_go_by_place_or_by_group():
    keys, queries, *_ = drawn(cloud(), by="place")["data"]
    assert queries["marker"]["color"].tolist() == [1, 2, 3]
    assert keys["marker"]["showscale"]
    assert "showscale" not in queries["marker"]
    groups = ["special", "other", "other", "other", "punctuation", "other"]
    data = drawn(cloud(), by="group", groups=groups)["data"]
    assert [trace["customdata"] for trace in data[:4]] == [[1], [4], [0], [2, 3, 5]]
    colours = {str(one["name"]): one["marker"]["color"] for one in data[4:]}
    assert colours["punctuation"] == data[1]["marker"]["color"]
    assert len(set(colours.values())) == 4


def test_the_table_has_every_token():
    table = drawn(cloud(lit=IS_QUERY))["table"]()
    assert {len(column) for column in table.values()} == {6}
    assert list(table["side"]) == ["key", "key", "query", "query", "key", "query"]
    assert table["selected"].tolist() == [0, 0, 1, 1, 0, 1]


def test_heads_have_a_tile_each_and_a_click_says_which():
    clouds = {head: cloud(points=POINTS - 10 * head) for head in range(5)}
    joined_heads(clouds, chosen=4, title="Heads")
    spec = joined_heads_spec(clouds, chosen=4, title="Heads")
    spec["data"] = spec["data"][:-2]  # the legend
    assert [len(trace["x"]) for trace in spec["data"]] == [3] * 10
    assert spec["data"][8]["customdata"] == [[4, 0], [4, 1], [4, 4]]
    for place, trace in enumerate(spec["data"]):
        row, column = divmod(place // 2, 4)
        assert (abs(np.stack([trace["x"] - column, trace["y"] - row])) < 0.5).all()
    assert [shape["line"]["width"] > 1 for shape in spec["layout"]["shapes"]] == [False] * 4 + [True]


def test_a_tile_leaves_tokens_out_but_none_that_is_selected():
    n = 1000
    many = {"is_query": np.arange(n) % 2 == 0, "pieces": ["x"] * n, "lines": np.ones(n), "places": np.arange(n)}
    lit = np.arange(n) % 10 == 3
    spec = joined_heads_spec(
        {0: cloud(points=np.random.default_rng(0).normal(size=(n, 2)), lit=lit, **many)}, chosen=None, title="t"
    )
    there = {token for trace in spec["data"][:-2] for _, token in trace["customdata"]}
    assert set(np.flatnonzero(lit).tolist()) <= there
    assert 350 < len(there) <= 400
