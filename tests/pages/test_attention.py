"""The Attention page draws all heads and one map as the run has them; what is chosen stands in its address."""

from __future__ import annotations

import numpy as np
import pytest

from glassformer.attention import map_pictures
from glassformer.attention import one_weight_panel as one_weight
from glassformer.attention.maps_panel import EXPLAIN
from glassformer.runs import loading
from glassformer.server import model_runner
from glassformer.shared import controls
from glassformer.state import session
from tests.pages.conftest import ATTENTION, check
from tests.pages.reading import address, everything, figure, go_to, numbers, opened, type_source
from tests.pages.test_pseudo_language import complaints, data_of_models, told_by_models
from tests.pseudo_language import words_of

GRIDS = {kind: f"overview_{kind}" for kind in ("encoder", "decoder", "cross")}


@pytest.fixture
def attention(open_page):
    """A function that opens the Attention page on the model that reverses letters."""
    return lambda **parameters: open_page(ATTENTION, **{"model": "reverse", **parameters})


def trace_of(test):
    checkpoint = opened(test.session_state[session.MODEL])
    source = test.text_input(key=session.SOURCE).value
    return loading.runner().trace(checkpoint, checkpoint.query(source))


def switch(test, key):
    toggle = next(toggle for toggle in test.toggle if toggle.key == key)
    return check(toggle.set_value(not toggle.value).run())


def the_map(test):
    return numbers(figure(test, "head_map")["data"][0]["z"])


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
    guessing = [attention(src="ebdacf", guess=1, step=step) for step in (2, 4)]
    rows = [len(figure(test, GRIDS["decoder"])["layout"]["meta"]["grid"]["queries"]) for test in guessing]
    assert rows[0] < rows[1] < len(before[GRIDS["decoder"]]["layout"]["meta"]["grid"]["queries"])


def test_the_selectors_open_any_head(attention):
    test = attention(query=1, key=1)
    for key, choice in (("kind", "encoder"), ("layer", 1), ("head", 2)):
        check(test.selectbox(key=key).set_value(choice).run())
    check(test.button_group(key="panel").set_value("head").run())
    shown = address(test)
    assert (shown["panel"], shown["kind"], shown["layer"], shown["head"]) == ("head", "encoder", "2", "3")
    assert "query" not in shown  # another attention has other cells
    np.testing.assert_array_equal(the_map(test), trace_of(test).encoder_self[1, 2])


def test_guess_mode_hides_what_comes_in_every_grid(attention):
    for guess, rows in ((0, [7, 7, 7]), (1, [7, 2, 2])):
        test = attention(guess=guess, step=2, src="abcdef")
        packed = {kind: figure(test, key)["layout"]["meta"]["grid"] for kind, key in GRIDS.items()}
        assert [len(packed[kind]["queries"]) for kind in ("encoder", "decoder", "cross")] == rows
    assert packed["decoder"]["keys"] == ["1: <b>&#60;s&#62;</b>", "2: <b>f</b>"]
    assert packed["cross"]["queries"][-1] == "2: <b>f → ?</b>"
    test = attention(panel="head", guess=1, step=2, src="abcdef", words=1, query=5, key=1)
    assert the_map(test).shape == (2, 2)
    assert "→ ?" in everything(test)
    assert not [text for text in test.markdown if "Selected: " in text.value]


# ---------------------------------------------------------------- one map


def test_the_cell_is_framed_and_a_step_is_framed_by_the_browser(attention):
    test = attention(panel="head", src="abcdef", step=3, query=2, key=4)
    before = figure(test, "head_map")
    (cell,) = before["layout"]["shapes"]
    assert (cell["y0"], cell["y1"], cell["x0"], cell["x1"]) == (0.5, 1.5, 2.5, 3.5)
    weight = trace_of(test).cross.mean(axis=(0, 1))[1, 3]
    assert f"weight **{weight:.4f}**" in next(text.value for text in test.markdown if "Selected: " in text.value)
    assert before["layout"]["meta"]["follow"]["rows"] == list(range(7))
    assert address(go_to(test, 4))["step"] == "4"
    assert figure(test, "head_map") == before  # so nothing is sent: the browser moves the frame


def test_the_cell_leads_to_how_it_came_to_be(attention):
    test = attention(panel="head", src="abcdef", query=2, key=4, layer=1, head=1)
    check(test.button(key=EXPLAIN).click().run())
    assert address(test)["panel"] == "walk"
    assert (address(test)["query"], address(test)["key"]) == ("2", "4")


# ---------------------------------------------------------------- controls


def test_another_attention_forgets_the_cell_and_another_sentence_too(attention):
    test = attention(panel="head", query=2, key=4)
    check(test.selectbox(key="kind").set_value("decoder").run())
    assert "query" not in address(test)
    test = type_source(attention(panel="head", query=2, key=4), "noon")
    assert "query" not in address(test)


def test_there_is_no_head_of_all_layers(attention):
    test = attention(panel="head", layer=2, head=3)
    check(test.selectbox(key="head").set_value(0).run())
    assert address(test)["head"] == "1"
    check(test.selectbox(key="layer").set_value(controls.NONE).run())
    assert not {"layer", "head"} & address(test).keys()
    assert test.selectbox(key="head").disabled


def test_nothing_here_runs_the_model_again(attention):
    test = attention()
    ran = loading.runner().n_runs
    check(test.button_group(key="panel").set_value("head").run())
    for key in ("words", "hide_special", "log_scale", "own_scale"):
        switch(test, key)
    assert loading.runner().n_runs == ran


# ---------------------------------------------------------------- languages

CHOSEN = [
    {"panel": "head", "query": 1, "key": 3, "kind": "decoder", "layer": 1, "together": "rollout", "words": 1},
    {"panel": "flow", "words": 1, "hide": 1},
    {"panel": "walk", "layer": 2, "head": 1, "kind": "decoder", "query": 2, "key": 4},
    {"panel": "table", "layer": 1, "head": 2, "kind": "decoder", "hide": 1, "guess": 1, "step": 3},
]


@pytest.mark.parametrize("chosen", CHOSEN)
def test_what_is_said_of_a_choice_is_said_whole(attention, chosen):
    test = attention(src="abcdef", lang="qps", **chosen)
    test.session_state[one_weight.VECTORS] = True
    check(test.run())
    found = complaints(test, words_of("reverse", "abcdef", "fedcba") | data_of_models(), set(told_by_models()))
    assert not found, "\n".join(found)


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


@pytest.fixture
def no_room(monkeypatch):
    """No run has room for its maps."""
    monkeypatch.setattr(model_runner, "MAP_BYTES", 0)
    loading.runner.clear()
    yield
    loading.runner.clear()


def test_of_a_run_that_is_too_long_for_its_maps_to_be_kept_the_same_is_drawn(attention, request):
    def seen():
        view = {"src": "abcdef", "kind": "decoder"}
        table, walk = (attention(panel=panel, **view) for panel in ("table", "walk"))
        grids = attention(**view)
        return (
            figure(attention(panel="head", layer=1, head=2, **view), "head_map")["data"],
            [figure(grids, key)["layout"]["meta"] for key in GRIDS.values()],
            figure(table, "head_table_map")["data"],
            [one.value for one in walk.markdown],
        )

    kept = seen()
    assert all(kept)
    request.getfixturevalue("no_room")
    assert seen() == kept
    traces = [one.result for one in loading.runner()._cache.values() if hasattr(one.result, "keeps_maps")]
    assert traces
    assert not any(trace.keeps_maps for trace in traces)
