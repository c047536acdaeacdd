"""How one weight came to be is drawn for the chosen cell, for a telling one, or for that of the step."""

from functools import partial

import numpy as np
import pytest

from glassformer.attention import one_weight_panel as one_weight
from glassformer.shared.controls import NONE
from tests.pages.conftest import ATTENTION, ROOT, check
from tests.pages.reading import address, figure, go_to, keys_of, numbers, told, view
from tests.transformer.made_up_changes import made_up_changes as made_up_changes
from transformer.analysis.one_weight import worth_seeing
from transformer.checkpoint.load import load
from transformer.runs import running as replay_module
from transformer.runs.running import run

text = partial(told, kinds=("markdown",))


@pytest.fixture
def walking(open_page):
    """A function that opens the walk: `walking(kind="encoder", layer=1, head=2)`."""

    def open_one(**parameters):
        return open_page(ATTENTION, **({"model": "reverse", "src": "glass", "panel": "walk"} | parameters))

    return open_one


@pytest.fixture(scope="module")
def reverse():
    return load(ROOT / "checkpoints" / "reverse")


def chosen(test):
    return tuple(test.selectbox(key=key).value for key in (one_weight.QUERY_CHOICE, one_weight.KEY_CHOICE))


def test_without_a_choice_it_follows_the_step_and_the_strongest_key(walking, reverse):
    test = walking(kind="cross", layer=1, head=1)
    trace = run(reverse, reverse.query("glass"))
    for step in (0, 3):
        check(go_to(test, step + 1))
        strongest = int(trace.cross[0, 0, step].argmax())
        assert chosen(test) == (NONE, NONE)
        assert f"the key **{trace.src_tokens[strongest]}**" in text(test)
        assert f"the query **{trace.row_label(step)}**" in text(test).replace("\u2060", "")
        assert "query" not in address(test)


def test_a_chosen_cell_stays_and_menus_give_it_back(walking):
    test = check(go_to(walking(kind="cross", layer=1, head=1, query=4, key=2), 2))
    assert chosen(test) == (3, 1)  # it does not follow the step
    for widget in (one_weight.QUERY_CHOICE, one_weight.KEY_CHOICE):
        check(test.selectbox(key=widget).set_value(NONE).run())
    assert chosen(test) == (NONE, NONE)
    assert not {"query", "key"} & address(test).keys()


def test_a_head_that_is_chosen_then_keeps_the_row_that_was_seen(walking, reverse):
    test = walking(kind="cross")
    cell = worth_seeing(run(reverse, reverse.query("glass")), "cross")
    other = (cell.head + 1) % 4
    check(test.selectbox(key="one_head").set_value(other).run())
    assert (view(test).layer, view(test).head, view(test).query) == (cell.layer, other, cell.query)
    assert "so here is one to start with" not in told(test)


def test_one_replay_serves_a_layer(walking, monkeypatch):
    test = walking(kind="cross", layer=2, head=1, src="lass")
    monkeypatch.setattr(replay_module, "replay", lambda *_: pytest.fail("the model runs again"))
    for place in (0, 2, 4):
        check(test.selectbox(key=one_weight.KEY_CHOICE).set_value(place).run())
    check(go_to(test, 4))


@pytest.mark.usefixtures("made_up_changes")
def test_a_change_within_the_steps_is_said_and_one_elsewhere_is_not(walking):
    within = walking(kind="cross", layer=1, head=2, do="silent-cross.1.2")
    assert "something inside this attention sub-layer was changed" in within.warning[0].value
    assert not walking(kind="cross", layer=1, head=2, do="silent-cross.2.1").warning


def test_vectors_of_all_tokens_are_those_of_the_head_and_drawn_when_they_are_asked_for(walking, reverse):
    test, site = walking(kind="cross", layer=2, head=3), "decoder.1.cross_attn"
    charts = {"walk_all_q": "queries", "walk_all_k": "keys", "walk_all_v": "values"}
    assert not charts.keys() & keys_of(test)
    test.session_state[one_weight.VECTORS] = True
    check(test.run())
    found = replay_module.replay(reverse, run(reverse, reverse.query("glass")), [f"{site}.*"])
    for chart, name in charts.items():
        drawn = numbers(figure(test, chart)["data"][0]["z"])
        assert np.allclose(drawn, found[f"{site}.{name}"][2], atol=1e-5)
