"""The Attention page without a browser: all heads, one map, and their controls."""

from __future__ import annotations

import numpy as np
import pytest
from streamlit.testing.v1.element_tree import Block

from glassformer.attention import attention_panels
from glassformer.attention import maps_panel as flow
from glassformer.attention.maps_panel import EXPLAIN
from glassformer.attention.one_weight import one_weight_panel as one_weight
from glassformer.maps import grid
from glassformer.runs import loading
from glassformer.runs.map_axes import KIND_NAMES
from glassformer.shared import controls
from glassformer.state import session
from tests.pages.conftest import ATTENTION, check
from tests.pages.reading import address, everything, figure, go_to, numbers, opened, payload, type_source
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


def press(test, key):
    return check(next(button for button in test.button if button.key == key).click().run())


def switch(test, key):
    toggle = next(toggle for toggle in test.toggle if toggle.key == key)
    return check(toggle.set_value(not toggle.value).run())


def the_map(test):
    return numbers(figure(test, "head_map")["data"][0]["z"])


# ---------------------------------------------------------------- all heads


def test_who_looks_at_the_same_shares_its_figures_at_every_step(attention, monkeypatch):
    made = []
    real = grid.grid_spec
    monkeypatch.setattr(grid, "grid_spec", lambda *args, **named: made.append(named["queries"]) or real(*args, **named))
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


def test_one_map_shows_what_is_chosen_among_all_heads(attention):
    test = attention(layer=2, head=1)
    frames = [shape for shape in figure(test, GRIDS["cross"])["layout"]["shapes"] if shape["type"] == "rect"]
    assert len(frames) == 1
    assert not [shape for shape in figure(test, GRIDS["encoder"])["layout"]["shapes"] if shape["type"] == "rect"]
    check(test.button_group(key="panel").set_value("head").run())
    assert figure(test, "head_map")["layout"]["title"]["text"] == "Cross-attention: layer 2, head 1"
    np.testing.assert_array_equal(the_map(test), trace_of(test).cross[1, 0])


def test_scales_are_those_of_the_whole_page(attention):
    test = switch(attention(), "own_scale")
    assert all("own scale" in figure(test, key)["layout"]["title"]["subtitle"]["text"] for key in GRIDS.values())
    assert address(test)["own"] == "1"
    check(test.button_group(key="panel").set_value("head").run())
    drawn = figure(test, "head_map")["data"][0]
    assert (drawn["zmin"], drawn["zmax"]) == pytest.approx((0, the_map(test).max()))
    test = switch(test, "own_scale")
    assert figure(test, "head_map")["data"][0]["zmax"] == 1


def test_guess_mode_hides_what_comes_in_every_grid(attention):
    for guess, rows in ((0, [7, 7, 7]), (1, [7, 2, 2])):
        test = attention(guess=guess, step=2, src="abcdef")
        packed = {kind: figure(test, key)["layout"]["meta"]["grid"] for kind, key in GRIDS.items()}
        assert [len(packed[kind]["queries"]) for kind in ("encoder", "decoder", "cross")] == rows
    assert packed["decoder"]["keys"] == ["1: <b>&#60;s&#62;</b>", "2: <b>f</b>"]
    assert packed["cross"]["queries"][-1] == "2: <b>f → ?</b>"


# ---------------------------------------------------------------- one map


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_map_is_the_traces(attention, kind):
    test = attention(panel="head", kind=kind, layer=1, head=4)
    drawn, trace = the_map(test), trace_of(test)
    allowed = trace.mask(kind)
    np.testing.assert_array_equal(drawn[allowed], trace.maps(kind)[0, 3][allowed])
    assert np.isnan(drawn[~allowed]).all()


def test_an_aggregate_is_chosen_and_says_whether_its_rows_sum_to_1(attention):
    test = attention(panel="head")
    for aggregate in attention_panels.AGGREGATES:
        check(test.selectbox(key="aggregate").set_value(aggregate).run())
        below = figure(test, "head_map")["layout"]["title"].get("subtitle", {}).get("text", "")
        assert ("do not sum to 1" in below) == (aggregate == "max")
        assert address(test).get("together", "mean") == aggregate


def test_words_and_back_is_the_same_map(attention):
    test = attention(panel="head", src="abcdef")
    before = figure(test, "head_map")
    assert the_map(switch(test, "words")).shape == (2, 2)
    assert figure(switch(test, "words"), "head_map") == before


def test_hidden_pieces_are_said_with_their_weight(attention):
    test = switch(attention(panel="head", src="abcdef", kind="encoder"), "hide_special")
    weights = trace_of(test).encoder_self.mean(axis=(0, 1))
    share = weights[:6, 6].mean()
    assert (
        f"on average, they get {share:.2f} of a row's weight"
        in figure(test, "head_map")["layout"]["title"]["subtitle"]["text"]
    )
    np.testing.assert_allclose(the_map(test), weights[:6, :6], rtol=1e-6)


def test_a_row_of_words_says_which_steps_it_is_the_mean_of(attention):
    said = {kind: payload(attention(panel="flow", kind=kind, words=1), flow.FLOW)["caption"] for kind in KIND_NAMES}
    written = "the others read pieces of the word itself"
    assert {kind: written in caption for kind, caption in said.items()} == {
        "encoder": False, "decoder": True, "cross": True,
    }  # fmt: skip
    assert "for a word among the queries, they are averaged" in said["encoder"]


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
    test = press(attention(panel="head", src="abcdef", query=2, key=4, layer=1, head=1), EXPLAIN)
    assert address(test)["panel"] == "walk"
    assert (address(test)["query"], address(test)["key"]) == ("2", "4")


def test_guess_mode_hides_what_comes_in_the_map(attention):
    test = attention(panel="head", guess=1, step=2, src="abcdef", words=1, query=5, key=1)
    assert the_map(test).shape == (2, 2)
    assert "→ ?" in everything(test)
    assert not [text for text in test.markdown if "Selected: " in text.value]


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


def options(test):
    """What the menu of rarely changed options is called; None without one."""
    labels = [getattr(getattr(block.proto, "popover", None), "label", "") for block in blocks(test.main)]
    return next((label for label in labels if label.startswith("Options")), None)


def blocks(block):
    """All blocks in a block."""
    for child in getattr(block, "children", {}).values():
        if isinstance(child, Block):
            yield child
            yield from blocks(child)


def test_the_menu_of_options_says_how_many_are_not_as_at_first(attention):
    assert options(attention()) == "Options"
    assert options(attention(panel="head", log=1, words=1, together="max")) == "Options · 3"
    assert options(attention(panel="head", layer=1, head=1, log=1, words=1, together="max")) == "Options · 2"
    assert options(attention(panel="flow", log=1, hide=1)) == "Options · 1"  # lines have no colour scale
    assert options(switch(attention(), "own_scale")) == "Options · 1"


def test_nothing_here_runs_the_model_again(attention):
    test = attention()
    ran = loading.runner().n_runs
    check(test.button_group(key="panel").set_value("head").run())
    for key in ("words", "hide_special", "log_scale", "own_scale"):
        switch(test, key)
    assert loading.runner().n_runs == ran


def test_the_sentence_takes_little_room_here(attention, open_page):
    assert payload(attention(), session.STEPPER)["compact"] is True
    assert payload(open_page(model="reverse"), session.STEPPER)["compact"] is False


# ---------------------------------------------------------------- languages

CHOSEN = [
    {"panel": "overview", "layer": 2, "own": 1, "log": 1},
    {"panel": "head", "query": 2, "key": 3, "hide": 1, "together": "max"},
    {"panel": "head", "query": 1, "key": 3, "kind": "decoder", "layer": 1, "together": "rollout", "words": 1},
    {"panel": "flow", "words": 1, "hide": 1},
    {"panel": "walk", "layer": 1, "head": 1},
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


def test_words_in_a_formula_are_said_in_the_language_too(attention):
    test = attention(src="abcdef", lang="qps", panel="walk", layer=1, head=1)
    formulas = "\n".join(element.value for element in test.markdown if "$$" in element.value)
    assert r"\ \text{⟦(13 ootheer teerms)" in formulas
    assert r"\text{⟦weeiight" in formulas
