"""The Attention page draws all heads and one map as the run has them; what is chosen stands in its address."""

from __future__ import annotations

import pytest

from glassformer.attention import map_pictures
from glassformer.attention.maps_panel import EXPLAIN
from glassformer.runs import loading
from glassformer.server import model_runner
from tests.pages.conftest import ATTENTION, check
from tests.pages.reading import address, figure, go_to, type_source

GRIDS = {kind: f"overview_{kind}" for kind in ("encoder", "decoder", "cross")}


@pytest.fixture
def attention(open_page):
    """A function that opens the Attention page on the model that reverses letters."""
    return lambda **parameters: open_page(ATTENTION, **{"model": "reverse", **parameters})


def switch(test, key):
    toggle = next(toggle for toggle in test.toggle if toggle.key == key)
    return check(toggle.set_value(not toggle.value).run())


# ---------------------------------------------------------------- all heads


def test_who_looks_at_the_same_shares_its_figures_at_every_step(attention, monkeypatch):
    made = []
    real = map_pictures.grid_spec
    monkeypatch.setattr(
        map_pictures, "grid_spec", lambda *args, **named: made.append(named["queries"]) or real(*args, **named)
    )
    first = attention(src="ebdacf")
    assert len(made) == len(GRIDS)
    before = {key: figure(first, key) for key in GRIDS.values()}
    go_to(first, 3)
    second = attention(src="ebdacf", step=2)
    assert len(made) == len(GRIDS)
    assert {key: figure(first, key) for key in GRIDS.values()} == before
    assert {key: figure(second, key) for key in GRIDS.values()} == before
    attention(src="ebdacf", own=1)
    assert len(made) == 2 * len(GRIDS)


# ---------------------------------------------------------------- one map


def test_the_cell_leads_to_how_it_came_to_be(attention):
    test = attention(panel="head", src="abcdef", query=2, key=4, layer=1, head=1)
    check(test.button(key=EXPLAIN).click().run())
    assert address(test)["panel"] == "walk"
    assert (address(test)["query"], address(test)["key"]) == ("2", "4")


# ---------------------------------------------------------------- controls


def test_another_sentence_forgets_the_cell(attention):
    test = type_source(attention(panel="head", query=2, key=4), "noon")
    assert "query" not in address(test)


def test_nothing_here_runs_the_model_again(attention):
    test = attention()
    ran = loading.runner().n_runs
    check(test.button_group(key="panel").set_value("head").run())
    for key in ("words", "hide_special", "log_scale", "own_scale"):
        switch(test, key)
    assert loading.runner().n_runs == ran


# ---------------------------------------------------------------- languages


# ---------------------------------------------------------------- long sentences

LONG = "如果明天下雨，我们就待在家里。" * 7


def scale(test):
    return figure(test, "head_map")["data"][0]["colorbar"]["title"]["text"]


def test_the_mean_of_a_long_sentence_is_logarithmic_until_the_reader_says_otherwise(attention):
    view = {"model": "zh-en", "panel": "head", "kind": "cross", "max": 12}
    test = attention(src=LONG, **view)
    assert "logarithmic" in scale(test)
    assert "log" not in address(test)
    switch(test, "log_scale")
    assert (scale(test), address(test)["log"]) == ("weight", "0")
    assert scale(attention(src=LONG, log=0, **view)) == "weight"
    assert scale(attention(src=LONG, layer=1, head=2, **view)) == scale(attention(src="我喜欢。", **view)) == "weight"


def test_of_a_run_that_is_too_long_for_its_maps_to_be_kept_the_same_is_drawn(attention, monkeypatch):
    view = {"src": "abcdef", "kind": "decoder", "layer": 1, "head": 2}

    def seen():
        loading.runner.clear()
        charts = (("head", "head_map"), ("table", "head_table_map"))
        return [figure(attention(panel=panel, **view), key)["data"] for panel, key in charts]

    kept = seen()
    monkeypatch.setattr(model_runner, "MAP_BYTES", 0)
    assert seen() == kept
    results = [one.result for one in loading.runner()._cache.values()]
    assert not any(trace.keeps_maps for trace in results if hasattr(trace, "keeps_maps"))
    loading.runner.clear()
