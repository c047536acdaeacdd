"""What matters and the table of heads show the numbers of the library, wait where that takes long, and cut an edge."""

import time
from dataclasses import replace

import numpy as np
import pytest

from glassformer.attention.head_table_panel import MEASURE
from glassformer.extensions.effects import heads_panel, path_pictures
from glassformer.extensions.effects.attribution.attribution_graph import attribution_graph, cut
from glassformer.extensions.effects.attribution.held_run import HeldRun
from glassformer.extensions.effects.attribution.occlusion import hiding
from glassformer.extensions.effects.attribution.target import ask, ask_each
from glassformer.extensions.what_if import head_effect_jobs
from glassformer.extensions.what_if.head_effects import head_effects
from glassformer.runs import loading, measurement_jobs
from glassformer.runs.open_run import seen
from glassformer.state.link import Link
from glassformer.state.view import Click, View
from tests.extensions.scripts import MATTERS
from tests.pages.conftest import ATTENTION, MAIN, check
from tests.pages.reading import (
    address,
    figure,
    go_to,
    keys_of,
    numbers,
    opened,
    payload,
    sentences,
    told_or_noted,
    view,
)
from transformer import run
from transformer.runs.array_records import whole

GLASS = {"model": "reverse", "src": "glass"}


def run_of(source):
    checkpoint = opened("reverse")
    return checkpoint, loading.runner().trace(checkpoint, checkpoint.query(source))


def rows_of(test, key):
    return figure(test, key)["layout"]["meta"]["table"]["rows"]


def until(test, is_there):
    """On a busy machine a measurement may not be there at once."""
    end = time.monotonic() + 60
    while time.monotonic() < end and not is_there(test):
        check(test.run())
    assert is_there(test)
    return test


# ---------------------------------------------------------------- what a step takes from each token


def column(test, name):
    place = figure(test, "matters_pieces")["layout"]["meta"]["table"]["columns"].index(name)
    return np.array([np.nan if row[place] is None else row[place] for row in rows_of(test, "matters_pieces")])


def test_the_table_has_what_was_measured_and_moves_with_the_step(open_page):
    test = open_page(MATTERS, **GLASS, matters="pieces", step=2)
    checkpoint, trace = run_of("glass")
    found = whole(hiding(ask_each(checkpoint, trace)))
    np.testing.assert_allclose(column(test, "Lost if hidden"), -found.probability_change(1), atol=1e-6)
    np.testing.assert_allclose(column(test, "Attention"), trace.maps("cross")[:, :, 1].mean(axis=(0, 1)), atol=1e-6)
    test = open_page(MATTERS, **GLASS, matters="pieces", step=4, layer=2, head=1)
    np.testing.assert_allclose(column(test, "Attention"), trace.maps("cross")[1, 0, 3], atol=1e-6)
    before = column(test, "Integrated")
    check(next(one for one in test.selectbox if one.key == "begin").set_value("mean").run())
    assert address(test)["begin"] == "mean"
    assert not np.allclose(column(test, "Integrated"), before)


def test_a_model_of_one_stack_explains_what_it_had_read(open_one_stack):
    test = open_one_stack("decoder", MATTERS, matters="pieces", step=2)
    assert np.isnan(column(test, "Lost if hidden")[-1])
    assert "This model is decoder-only" in payload(test, "matters_pieces")["caption"]
    test = open_one_stack("decoder", MATTERS, matters="logit", step=2)
    assert "cross-attention" not in told_or_noted(test).split("Direct contributions")[0]


def test_what_takes_long_waits_to_be_asked_for(open_page, monkeypatch):
    monkeypatch.setattr(measurement_jobs, "AT_ONCE", 0.0)
    test = open_page(MATTERS, model="reverse", src="noon", matters="pieces")
    assert np.isnan(column(test, "Lost if hidden")).all()
    assert not np.isnan(column(test, "Attention")).any()
    begin = [button for button in test.button if button.key.endswith("_begin")]
    assert len(begin) == 2
    check(begin[0].click().run())
    until(test, lambda test: not np.isnan(column(test, "Lost if hidden")).any())
    found = whole(hiding(ask_each(*run_of("noon"))))
    np.testing.assert_allclose(column(test, "Lost if hidden"), -found.probability_change(0), atol=1e-6)


# ---------------------------------------------------------------- what the output loses without a head

HEADS = {"panel": "table", "measure": "log_prob"}


def until_measured(test):
    return until(test, lambda test: "matters_effects" in keys_of(test))


def drawn(test):
    """[row, head] of the map: encoder, decoder and cross, an empty row between two."""
    return numbers(figure(test, "matters_effects")["data"][0]["z"])


@pytest.fixture(scope="module")
def losses():
    """Change of each step's log-probability without each head of cross-attention [layer, head, step]."""
    return head_effects(*run_of("abcdef")).of["cross"].log_prob


def test_one_step_and_other_measures_come_from_the_same_measurement(open_page, losses, monkeypatch):
    test = until_measured(open_page(ATTENTION, model="reverse", src="abcdef", **HEADS, layer=2, head=4))
    assert drawn(test)[7, 3] == pytest.approx(losses[1, 3].sum(), abs=1e-4)
    begun = []
    monkeypatch.setattr(head_effect_jobs, "measuring", lambda *of: begun.append(of))
    check(test.button_group(key="effect_at").set_value("step").run())
    check(go_to(test, 3))
    assert drawn(test)[7, 3] == pytest.approx(losses[1, 3][2], abs=1e-4)
    check(test.selectbox(key=MEASURE).set_value("pieces").run())
    assert set(np.unique(drawn(test)[~np.isnan(drawn(test))])) <= {0.0, 1.0}
    assert not begun


def test_a_large_model_is_measured_when_it_is_asked_for(open_page, monkeypatch):
    monkeypatch.setattr(measurement_jobs, "SMALL", 0)
    test = open_page(ATTENTION, model="reverse", src="stop", **HEADS)
    assert "matters_effects" not in keys_of(test)
    assert "kl" not in test.dataframe[0].value
    assert "parameters, so this may take" in sentences(test)
    until_measured(check(test.button(key=heads_panel.MEASURE).click().run()))
    assert drawn(test).shape == (8, 4)


def test_hidden_steps_are_not_summed(open_page, losses):
    asked = {"model": "reverse", "src": "abcdef", "kind": "cross", "guess": 1, "layer": 1, "head": 1}
    test = check(go_to(open_page(ATTENTION, **HEADS, **asked), 3))
    assert "matters_effects" not in keys_of(test)  # it would tell about the piece
    until_measured(check(test.button(key="matters_heads_reveal").click().run()))
    assert drawn(test)[6, 0] == pytest.approx(losses[0, 0, :3].sum(), abs=1e-4)
    assert len(numbers(figure(test, "matters_steps")["data"][0]["y"])) == 3
    assert view(test).step == 2


@pytest.mark.parametrize(("stack", "measure"), [("decoder", "log_prob"), ("encoder", "vectors")])
def test_a_model_of_one_stack_has_a_block_for_its_attention(open_one_stack, stack, measure):
    """An encoder alone writes nothing: its vectors move."""
    test = until_measured(open_one_stack(stack, ATTENTION, panel="table", measure=measure, layer=1, head=2))
    checkpoint = opened(f"{stack} alone")
    effect = getattr(head_effects(checkpoint, run(checkpoint, checkpoint.query("ba lo mi"))).of[stack], measure)
    expected = effect.sum(-1) if stack == "decoder" else effect.mean(-1)
    np.testing.assert_allclose(drawn(test), expected, atol=1e-5)
    assert ("effect_at" in {one.key for one in test.button_group}) == (stack == "decoder")
    table = test.dataframe[0].value
    assert [name for name in ("log_prob", "probability", "kl", "pieces", "vectors") if name in table] == [measure]
    np.testing.assert_allclose(table[measure], expected.ravel(), atol=1e-4)
    np.testing.assert_allclose(numbers(figure(test, "matters_steps")["data"][0]["y"]), effect[0, 1], atol=1e-5)
    is_said = "This encoder-only model generates no output" in payload(test, "matters_effects")["caption"]
    assert is_said == (stack == "encoder")


def test_an_old_address_of_the_heads_leads_to_the_table(open_page):
    test = open_page(MAIN)
    test.switch_page(str(MATTERS.relative_to(MAIN.parent)))
    for name, value in {**GLASS, "matters": "heads", "effect": "kl", "layer": "1"}.items():
        test.query_params[name] = value
    check(test.run())
    assert test.button_group(key="panel").value == "table"
    assert test.selectbox(key=MEASURE).value == "kl"
    assert view(test).layer == 0


# ---------------------------------------------------------------- why this token


def test_the_strongest_edges_are_drawn_and_a_choice_cuts_one(open_page):
    test = open_page(MATTERS, **GLASS, matters="paths", step=2)
    step = ask(*run_of("glass"), 1)
    found = attribution_graph(step)
    kept = found.strongest(0.8)
    order = kept[np.argsort(-found.influence[kept], kind="stable")]
    np.testing.assert_allclose([row[2] for row in rows_of(test, "matters_paths")], found.value[order], atol=1e-5)
    np.testing.assert_allclose([row[3] for row in rows_of(test, "matters_paths")], found.influence[order], atol=1e-5)
    next(one for one in test.selectbox if one.key == "cut").select_index(2)
    check(test.run())
    edge = [one for one in order.tolist() if found.source[one]][1]
    source, target = found.ends_of(edge)
    ends = [found.parts.index(source[0]), source[1], found.parts.index(target[0]), target[1]]
    assert address(test)["cut"] == ".".join(map(str, ends))
    effect = cut(HeldRun(step), source, target)
    said = f"{-found.value[edge]:+.3f} predicted, {effect.change(step.piece):+.3f} true".replace("-", "−")
    assert said in told_or_noted(test).replace("\\", "").replace("-", "−")


def test_a_click_on_a_dot_means_its_edge():
    checkpoint, trace = run_of("glass")
    link = Link(model="reverse", source="glass", view=View().but(matters_panel="paths", step=1))
    query = link.query(checkpoint.content_hash)
    scene = path_pictures.open_paths(seen(checkpoint, link, replace(trace, query=query))[0])
    clicked = path_pictures.graph.plot(scene).clicked
    assert clicked(Click(0, (0,), 3)) == {"cut": scene.cutting(int(scene.edges[3]))}
    assert clicked(Click(0, (0,), len(scene.edges))) is None
    assert clicked(Click(0, (0,), None)) is None


@pytest.mark.parametrize("edge", ["1.2.3", "0", "999999.1.2.3", "-1.x", "1.1.1.1.1.1", "5.0.4.0"])
def test_an_edge_that_is_none_is_said_to_be_none(open_page, edge):
    said = told_or_noted(open_page(MATTERS, **GLASS, matters="paths", cut=edge))
    assert "This graph has no edge like the one that was cut" in said or "could not be read and was ignored" in said


def test_each_kind_of_model_and_run_has_a_graph_or_says_why_not(open_one_stack, open_page):
    assert rows_of(open_one_stack("decoder", MATTERS, matters="paths", step=2), "matters_paths")
    assert rows_of(open_page(MATTERS, **GLASS, matters="paths", do="zero-cross.2.1"), "matters_paths")
    assert rows_of(open_page(MATTERS, model="palindrome", src="abccba", matters="paths"), "matters_paths")
    test = open_one_stack("encoder", MATTERS, matters="paths")
    assert "fills no gaps, so it has no logits to explain" in told_or_noted(test)
    test = open_page(MATTERS, **GLASS, matters="paths", guess=1)
    assert "give the answer away" in told_or_noted(test)
