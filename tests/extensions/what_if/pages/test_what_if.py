"""A dialog or a link changes the model, the dialog says what that would do, and chips take it back with a click."""

from dataclasses import replace
from pathlib import Path

import pytest

from glassformer.extensions.what_if import head_effect_jobs, what_if_panels
from glassformer.extensions.what_if.head_effects import head_effects
from glassformer.extensions.what_if.interventions import KINDS
from glassformer.extensions.what_if.sweeps import costs_in_words
from glassformer.extensions.what_if.what_if_panels import CHANGES, FIELD, GROUPS, UNTOUCHED
from glassformer.runs import loading
from glassformer.shared import menu
from glassformer.state import session
from tests.pages.conftest import check
from tests.pages.reading import address, force, keys_of, opened, output, run_of, type_source
from transformer.runs.interventions import parse

APP = Path(__file__).parent / "what_if_app.py"
CHANGE = "zero-cross.2.1"
ALL_HEADS = "_".join(f"zero-cross.{layer}.{head}" for layer in (1, 2) for head in (1, 2, 3, 4))


def choose(test, name, value):
    return check(test.selectbox(key=f"{FIELD}{name}").set_value(value).run())


def make(test):
    return check(test.button(key=f"{FIELD}make").click().run())


def chips(test):
    """What the chips of a page say."""
    return [one.label.replace("\\", "") for one in test.button if (one.key or "").startswith(f"{CHANGES}_")]


def said(test):
    shown = [element.value for kind in ("markdown", "caption", "warning", "info") for element in test.get(kind)]
    return " ".join(shown).replace("\\", "")


def test_a_change_is_put_together_said_and_made(open_page):
    test = open_page(APP, model="reverse", src="glass")
    choose(test, "zero_layer", 1)
    choose(test, "zero_head", 3)
    assert "Cross-attention, layer 2, head 4: writes nothing" in said(test)
    make(test)
    assert address(test)["do"] == "zero-cross.2.4"
    make(test)
    assert address(test)["do"] == "zero-cross.2.4"  # the same once more is the same
    make(choose(test, "zero_head", 0))
    assert address(test)["do"] == "zero-cross.2.4_zero-cross.2.1"
    assert chips(test) == [f"Cross-attention, layer 2, head {head}: writes nothing" for head in (4, 1)]


def proposed(test):
    return [test.selectbox(key=f"{FIELD}zero_{name}").value for name in ("kind", "layer", "head")]


def test_what_is_looked_at_is_proposed_or_the_head_that_matters_most_which_is_one_click_away(open_page):
    assert proposed(open_page(APP, model="reverse", src="glass", layer="2", head="3")) == ["cross", 1, 2]
    checkpoint = opened("reverse")
    found = head_effects(checkpoint, loading.runner().trace(checkpoint, checkpoint.query("glass")))
    kind, layer, head = head_effect_jobs.matters_most(found)
    losses = {one: -effect.log_prob.sum(axis=2) for one, effect in found.of.items()}
    assert losses[kind][layer, head] == max(loss.max() for loss in losses.values())
    test = open_page(APP, model="reverse", src="glass", cover="part")  # no head is named while something is covered
    assert not [one for one in test.button if one.key == f"{FIELD}most"]
    assert proposed(test) == ["cross", 0, 0]
    test = open_page(APP, model="reverse", src="glass")
    assert proposed(test) == [kind, layer, head] != ["cross", 0, 0]
    check(test.button(key=f"{FIELD}most").click().run())
    assert address(test)["do"] == f"zero-{kind}.{layer + 1}.{head + 1}"


@pytest.mark.parametrize(("page", "group"), [("masks", "masks"), ("positions", "positions"), ("step", "heads")])
def test_it_opens_on_what_the_page_is_about(open_page, monkeypatch, page, group):
    monkeypatch.setattr(menu, "current", lambda: page)
    assert open_page(APP, model="reverse", src="glass").segmented_control(key=f"{FIELD}group").value == group


@pytest.mark.parametrize("group", GROUPS)
def test_every_kind_can_be_made_as_it_is_proposed_or_says_what_is_missing(open_page, group):
    test = open_page(APP, model="reverse", src="glass")
    config = opened("reverse").config
    test.segmented_control(key=f"{FIELD}group").set_value(group)
    check(test.run())
    for word, kind in KINDS.items():
        if kind.group != group:
            continue
        if (why := kind.unfit(config)) is not None:
            assert str(why) in said(test)
            continue
        choose(test, group, word)
        made = [one for one in test.button if one.key == f"{FIELD}make"]
        if not made:
            assert [one.value for one in test.warning], word
            continue
        make(test)
        changes = parse(address(test).get("do", ""))
        assert [one.word for one in changes] == [word] or not changes  # or it was said why it does not fit here
        check(test.run())
        test.session_state[session.STANDING] = session.SlotState()


def test_what_a_change_would_do_is_said_before_it_is_made(open_page):
    test = open_page(APP, model="reverse", src="glass")
    checkpoint = opened("reverse")
    for layer, head in ((0, 0), (1, 3)):
        choose(choose(test, "zero_layer", layer) and test, "zero_head", head)
        query = replace(checkpoint.query("glass"), interventions=parse(f"zero-cross.{layer + 1}.{head + 1}"))
        after = loading.runner().trace(checkpoint, query).output_text
        said_so = "The output stays “ssalg”" if after == "ssalg" else f"Output: “ssalg” → “{after}”"
        assert said_so in said(test)
    assert "do" not in address(test)


def test_the_error_by_the_amount_and_what_is_saved_stand_with_the_change_and_nothing_is_told_while_something_is_covered(
    open_page, monkeypatch
):
    test = open_page(APP, model="reverse", src="glass")
    test.segmented_control(key=f"{FIELD}group").set_value("attention")
    choose(check(test.run()), "attention", "features")
    assert f"{FIELD}error" in keys_of(test)
    assert "operations" in said(test)
    checkpoint = opened("reverse")
    trace = loading.runner().trace(checkpoint, checkpoint.query("glass"))
    (change,) = parse("features-all.64.0")
    assert str(costs_in_words(change, trace, checkpoint.config)) in said(test)
    choose(test, "attention", "twice")  # it has no amount
    assert f"{FIELD}error" not in keys_of(test)
    monkeypatch.setattr(what_if_panels, "AT_ONCE", 0.0)  # as of a large model
    test = open_page(APP, model="reverse", src="unseen")  # nothing was measured of it yet
    test.segmented_control(key=f"{FIELD}group").set_value("attention")
    choose(check(test.run()), "attention", "projected")
    assert f"{FIELD}error" not in keys_of(test)
    check(test.button(key=f"{FIELD}sweep").click().run())
    assert f"{FIELD}error" in keys_of(test)
    check(test.run())  # what was made once is there
    assert f"{FIELD}error" in keys_of(test)
    test = open_page(APP, model="reverse", src="glass", cover="part")
    test.segmented_control(key=f"{FIELD}group").set_value("attention")
    choose(check(test.run()), "attention", "features")
    assert f"{FIELD}error" not in keys_of(test)
    assert "operations" not in said(test)


def test_a_head_is_taken_away_and_put_back_with_a_click(reverse):
    test = reverse(src="glass", layer="2", head="4")
    check(test.button(key="take_head").click().run())
    assert address(test)["do"] == "zero-cross.2.4"
    check(test.button(key="take_head").click().run())
    assert "do" not in address(test)


# By a link


def test_a_link_changes_the_model_and_one_click_drops_that(reverse):
    test, checkpoint = reverse(src="abcdef", do=ALL_HEADS), opened("reverse")
    query = checkpoint.query("abcdef", interventions=parse(ALL_HEADS))
    assert output(test) == loading.runner().trace(checkpoint, query).output_text != "fedcba"
    assert ALL_HEADS in address(test)["do"]
    assert chips(test)[0] == "Cross-attention, layer 1, head 1: writes nothing"
    assert len(chips(test)) == 8
    test.button(key=f"{CHANGES}_0").click()
    check(test.run())
    assert address(test)["do"] == ALL_HEADS.partition("_")[2]
    test.button(key=UNTOUCHED).click()
    check(test.run())
    assert output(test) == "fedcba"
    assert not chips(test)
    assert "do" not in address(test)


def test_forced_pieces_beams_and_another_sentence_keep_a_change_and_another_model_drops_it(reverse):
    test = force(reverse(src="abcdef", do=CHANGE, how="beam", beam=2), "a")
    assert CHANGE in address(test)["do"]
    assert run_of(test)["target"][0]["piece"].endswith("a")
    query = test.session_state[session.STANDING].last_query
    assert (query.forced, query.decoding.size) == ((run_of(test)["target"][0]["id"],), 2)
    assert query.interventions == parse(CHANGE)
    test = type_source(test, "abc")
    assert CHANGE in address(test)["do"]
    check(test.sidebar.selectbox(key=session.MODEL).set_value("en-fr").run())
    assert "do" not in address(test)
    assert not chips(test)
