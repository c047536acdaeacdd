"""The Attention page draws heads, a map, its flow and how one weight came to be; what is chosen is in its address."""

from functools import partial

import numpy as np
import pytest

from glassformer.attention import map_pictures, maps_panel
from glassformer.attention import one_weight_panel as one_weight
from glassformer.attention.map_pictures import FLOW
from glassformer.runs import loading
from glassformer.server import model_runner
from glassformer.shared.controls import NONE
from tests.pages.conftest import ATTENTION, check
from tests.pages.reading import (
    address,
    choose,
    controls,
    figure,
    go_to,
    keys_of,
    opened,
    payload,
    press,
    told,
    type_source,
    view,
    z_of,
)
from tests.transformer.made_up_changes import made_up_changes as made_up_changes
from transformer.analysis.one_weight import worth_seeing
from transformer.runs import running

GRIDS = {kind: f"overview_{kind}" for kind in ("encoder", "decoder", "cross")}
CELL = (one_weight.QUERY_CHOICE, one_weight.KEY_CHOICE)
LONG = "如果明天下雨，我们就待在家里。" * 7
text = partial(told, kinds=("markdown",))


@pytest.fixture
def attention(open_page):
    """A function that opens the Attention page on the model that reverses letters."""
    return lambda **parameters: open_page(ATTENTION, **{"model": "reverse", **parameters})


@pytest.fixture
def flow(attention):
    return partial(attention, panel="flow", src="abcd", layer=1)


@pytest.fixture
def walking(attention):
    return lambda **parameters: attention(panel="walk", **{"src": "glass", "kind": "cross"} | parameters)


@pytest.fixture
def glass():
    """The checkpoint that the walk is of, and its run."""
    checkpoint = opened("reverse")
    return checkpoint, running.run(checkpoint, checkpoint.query("glass"))


# ---------------------------------------------------------------- all heads, and one map


def test_who_looks_at_the_same_shares_its_figures_at_every_step(attention, monkeypatch):
    made, real = [], map_pictures.grid_spec
    monkeypatch.setattr(
        map_pictures, "grid_spec", lambda *args, **named: made.append(named["queries"]) or real(*args, **named)
    )
    first = attention(src="ebdacf")
    assert len(made) == len(GRIDS)
    before = {key: figure(first, key) for key in GRIDS.values()}
    for test in (go_to(first, 3), attention(src="ebdacf", step=2)):
        assert {key: figure(test, key) for key in GRIDS.values()} == before
    assert len(made) == len(GRIDS)
    attention(src="ebdacf", own=1)
    assert len(made) == 2 * len(GRIDS)


def test_the_cell_leads_to_how_it_came_to_be_and_another_sentence_forgets_it(attention):
    test = attention(panel="head", src="abcdef", query=2, key=4, layer=1, head=1)
    press(test, maps_panel.EXPLAIN)
    assert address(test).items() >= {"panel": "walk", "query": "2", "key": "4"}.items()
    assert "query" not in address(type_source(test, "noon"))


def test_nothing_here_runs_the_model_again(attention):
    test = attention()
    ran = loading.runner().n_runs
    check(test.button_group(key="panel").set_value("head").run())
    for key in ("words", "hide_special", "log_scale", "own_scale"):
        choose(test, key, not controls(test)[key].value)
    assert loading.runner().n_runs == ran


def scale(test):
    return figure(test, "head_map")["data"][0]["colorbar"]["title"]["text"]


def test_the_mean_of_a_long_sentence_is_logarithmic_until_the_reader_says_otherwise(attention):
    chinese = partial(attention, model="zh-en", panel="head", kind="cross", max=12)
    test = chinese(src=LONG)
    assert "logarithmic" in scale(test)
    assert "log" not in address(test)
    choose(test, "log_scale", False)
    assert (scale(test), address(test)["log"]) == ("weight", "0")
    assert scale(chinese(src=LONG, log=0)) == "weight"
    assert scale(chinese(src=LONG, layer=1, head=2)) == scale(chinese(src="我喜欢。")) == "weight"


def test_of_a_run_that_is_too_long_for_its_maps_to_be_kept_the_same_is_drawn(attention, monkeypatch):
    def seen():
        loading.runner.clear()
        charts = (("head", "head_map"), ("table", "head_table_map"))
        view = {"src": "abcdef", "kind": "decoder", "layer": 1, "head": 2}
        return [figure(attention(panel=panel, **view), key)["data"] for panel, key in charts]

    kept = seen()
    monkeypatch.setattr(model_runner, "MAP_BYTES", 0)
    assert seen() == kept
    results = [one for one, _ in loading.runner()._cache.values()]
    assert not any(trace.keeps_maps for trace in results if hasattr(trace, "keeps_maps"))
    loading.runner.clear()


# ---------------------------------------------------------------- the flow: the weights of the run, and what is asked


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ({"heads": "1.3", "follow": 1}, {"shown": [0, 2], "following": True, "pin": None}),
        ({}, {"following": False, "heard": None}),
        ({"heads": "1.3", "head": 2}, {"shown": [1]}),
        ({"heads": "1.90"}, {"shown": [0]}),
        ({"head": 3, "query": 2, "key": 1}, {"shown": [2], "pin": {"side": "query", "index": 1}}),
        ({"key": 4}, {"pin": {"side": "key", "index": 3}}),
        ({"key": 400}, {"pin": None}),
    ],
)
def test_the_address_chooses_the_heads_and_the_pinned_piece_of_the_flow(flow, asked, sent):
    test = flow(**asked)
    assert payload(test, FLOW).items() >= sent.items()
    if "follow" in asked:
        assert (address(test)["heads"], address(test)["follow"]) == ("1.3", "1")


def test_the_browser_hears_which_of_its_reports_has_arrived(flow):
    test = flow()
    test.session_state[FLOW] = {"pin": {"side": "query", "index": 1, "stamp": "x 1"}}
    assert payload(check(test.run()), FLOW)["heard"] == "x 1"
    assert view(test).query is None  # only a report that has just come is taken


def test_the_callback_that_a_session_keeps_holds_no_weights(flow, monkeypatch):
    given = {}
    monkeypatch.setattr(maps_panel, "flow_view", lambda _, **options: given.update(options))
    flow()
    held = [cell.cell_contents for cell in given["on_choice"].__closure__]
    assert held
    assert all(isinstance(value, int | str | tuple) for value in held)


# ---------------------------------------------------------------- how one weight came to be


def cell(test):
    return tuple(test.selectbox(key=key).value for key in CELL)


def test_without_a_choice_it_follows_the_step_and_the_strongest_key(walking, glass):
    test, (_, trace) = walking(layer=1, head=1), glass
    for step in (0, 3):
        go_to(test, step + 1)
        strongest = int(trace.cross[0, 0, step].argmax())
        assert cell(test) == (NONE, NONE)
        assert f"the key **{trace.src_tokens[strongest]}**" in text(test)
        assert f"the query **{trace.row_label(step)}**" in text(test).replace("\u2060", "")
        assert "query" not in address(test)


def test_a_chosen_cell_stays_and_menus_give_it_back(walking):
    test = go_to(walking(layer=1, head=1, query=4, key=2), 2)
    assert cell(test) == (3, 1)  # it does not follow the step
    for menu in CELL:
        choose(test, menu, NONE)
    assert cell(test) == (NONE, NONE)
    assert not {"query", "key"} & address(test).keys()


def test_a_head_that_is_chosen_then_keeps_the_row_that_was_seen(walking, glass):
    telling = worth_seeing(glass[1], "cross")
    other = (telling.head + 1) % 4
    test = choose(walking(), "one_head", other)
    assert (view(test).layer, view(test).head, view(test).query) == (telling.layer, other, telling.query)
    assert "so here is one to start with" not in told(test)


def test_one_replay_serves_a_layer(walking, monkeypatch):
    test = walking(layer=2, head=1, src="lass")
    monkeypatch.setattr(running, "replay", lambda *_: pytest.fail("the model runs again"))
    for place in (0, 4):
        choose(test, one_weight.KEY_CHOICE, place)
    go_to(test, 4)


@pytest.mark.usefixtures("made_up_changes")
def test_a_change_within_the_steps_is_said_and_one_elsewhere_is_not(walking):
    within = walking(layer=1, head=2, do="silent-cross.1.2")
    assert "something inside this attention sub-layer was changed" in within.warning[0].value
    assert not walking(layer=1, head=2, do="silent-cross.2.1").warning


def test_vectors_of_all_tokens_are_those_of_the_head_and_drawn_when_they_are_asked_for(walking, glass):
    test, site = walking(layer=2, head=3), "decoder.1.cross_attn"
    charts = {"walk_all_q": "queries", "walk_all_k": "keys", "walk_all_v": "values"}
    assert not charts.keys() & keys_of(test)
    test.session_state[one_weight.VECTORS] = True
    check(test.run())
    found = running.replay(*glass, [f"{site}.*"])
    for chart, name in charts.items():
        np.testing.assert_allclose(z_of(test, chart), found[f"{site}.{name}"][2], atol=1e-5, rtol=1e-5)
