"""The part Why this token draws the graph of the library, cuts what is clicked, and says what it cannot explain."""

import numpy as np
import pytest

from glassformer.extensions.effects import path_pictures as pictures
from glassformer.extensions.effects.attribution.attribution_graph import attribution_graph
from glassformer.extensions.effects.attribution.held_run import HeldRun
from glassformer.extensions.effects.attribution.path_patching import cut
from glassformer.extensions.effects.attribution.target import ask
from glassformer.runs import loading
from glassformer.runs.open_run import seen
from glassformer.state.link import Link
from glassformer.state.view import Click, View
from tests.extensions.effects.pages.test_matters_credit import run_of
from tests.extensions.scripts import MATTERS
from tests.pages.conftest import check
from tests.pages.reading import address, figure, opened, told_or_noted


def rows_of(test):
    return figure(test, "matters_paths")["layout"]["meta"]["table"]["rows"]


@pytest.fixture
def asked(open_page):
    """A page at a step, and the step itself."""
    test = open_page(MATTERS, model="reverse", src="glass", matters="paths", step=2)
    checkpoint, trace = run_of(test, "glass")
    return test, ask(checkpoint, trace, 1)


def test_it_draws_the_strongest_edges_and_a_choice_cuts_one(asked):
    test, step = asked
    found = attribution_graph(step)
    kept = found.strongest(0.8)
    order = kept[np.argsort(-found.influence[kept], kind="stable")]
    np.testing.assert_allclose([row[2] for row in rows_of(test)], found.value[order], atol=1e-5)
    np.testing.assert_allclose([row[3] for row in rows_of(test)], found.influence[order], atol=1e-5)
    menu = next(one for one in test.selectbox if one.key == "cut")
    menu.select_index(2)
    check(test.run())
    edge = [one for one in order.tolist() if found.source[one]][1]
    source, target = found.ends_of(edge)
    numbers = [found.parts.index(source[0]), source[1], found.parts.index(target[0]), target[1]]
    assert address(test)["cut"] == ".".join(map(str, numbers))
    effect = cut(HeldRun(step), source, target)
    said = f"{-found.value[edge]:+.3f} predicted, {effect.change(step.piece):+.3f} true".replace("-", "−")
    assert said in told_or_noted(test).replace("\\", "").replace("-", "−")


def test_a_click_on_a_dot_means_its_edge():
    checkpoint = opened("reverse")
    link = Link(model="reverse", source="glass", view=View().but(matters_panel="paths", step=1))
    trace = loading.runner().trace(checkpoint, link.query(checkpoint.content_hash))
    scene = pictures.open_paths(seen(checkpoint, link, trace)[0])
    clicked = pictures.graph.plot(scene).clicked
    assert clicked(Click(0, (0,), 3)) == {"cut": scene.cutting(int(scene.edges[3]))}
    assert clicked(Click(0, (0,), len(scene.edges))) is None
    assert clicked(Click(0, (0,), None)) is None


@pytest.mark.parametrize("cut", ["1.2.3", "0", "999999.1.2.3", "-1.x", "1.1.1.1.1.1", "5.0.4.0"])
def test_an_edge_that_is_none_is_said_to_be_none(open_page, cut):
    test = open_page(MATTERS, model="reverse", src="glass", matters="paths", cut=cut)
    said = told_or_noted(test)
    assert "This graph has no edge like the one that was cut" in said or "could not be read and was ignored" in said


def test_each_kind_of_model_has_a_graph_or_says_why_not(open_one_stack, open_page):
    assert rows_of(open_one_stack("decoder", MATTERS, matters="paths", step=2))
    assert rows_of(open_page(MATTERS, model="palindrome", src="abccba", matters="paths"))
    test = open_one_stack("encoder", MATTERS, matters="paths")
    assert "fills no gaps, so it has no logits to explain" in told_or_noted(test)


def test_a_changed_run_has_a_graph_too(open_page):
    test = open_page(MATTERS, model="reverse", src="glass", matters="paths", do="zero-cross.2.1")
    assert rows_of(test)


def test_a_step_that_is_to_be_guessed_is_covered(open_page):
    test = open_page(MATTERS, model="reverse", src="glass", matters="paths", guess=1)
    assert "give the answer away" in told_or_noted(test)
