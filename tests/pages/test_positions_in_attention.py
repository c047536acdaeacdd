"""The Positions page on models whose positions act inside attention: drawn as what they are."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from glassformer.positions import PositionsLook, position_controls
from glassformer.positions.in_attention import in_attention_panel as in_attention
from glassformer.runs import loading
from glassformer.state.view import SECOND
from tests.pages.conftest import POSITIONS, check
from tests.pages.reading import figure, keys_of, numbers, opened, told_or_noted, view
from tests.pages.test_pseudo_language import complaints, data_of_models
from tests.pages.test_two_slots import twice
from tests.pseudo_language import words_of
from tests.transformer.featured import featured
from transformer.analysis.rotations import distance_bias, turnings
from transformer.runs.replay import replay


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("in attention")
    for name in ("rotary", "windows", "relative", "alibi"):
        featured(name, made)
    return made


@pytest.fixture
def page(folder, open_page, monkeypatch):
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder))
    return lambda name, part="", **parameters: open_page(
        POSITIONS, model=name, src="ba lo mi", **({"positions": part} if part else {}), **parameters
    )


def test_rotary_positions_are_drawn_as_rotations(page):
    test = page("rotary")
    (one,) = turnings(opened("rotary").config, "decoder")
    drawn = figure(test, "rotary_rotations")
    np.testing.assert_allclose(numbers(drawn["data"][0]["z"]), np.cos(one.angles(24)), atol=1e-6)
    waves = figure(test, "rotary_waves")["data"]
    np.testing.assert_allclose(numbers(waves[0]["y"]), one.wavelengths, rtol=1e-6)
    assert numbers(waves[-1]["y"]).tolist() == [24, 24]  # the longest text, not before any scaling
    assert "makes one full turn in 6.283 positions" in told_or_noted(test)
    check(test.selectbox(key=position_controls.COUNT).set_value(16).run())
    assert numbers(figure(test, "rotary_rotations")["data"][0]["z"]).shape == (16, 2)


def test_layers_with_other_bases_are_chosen_and_the_one_that_does_not_turn_says_so(page):
    test = page("windows")
    assert "Without scaling for longer texts, pair i turns by 10,000^(−i/" in told_or_noted(test)
    assert list(test.selectbox(key=position_controls.LAYERS).options) == [
        "Layers 1, 3: window, base 10,000",
        "Layer 2: no rotation",
    ]
    check(test.selectbox(key=position_controls.LAYERS).set_value(1).run())
    assert "Layer 2 ignores positions" in told_or_noted(test)
    assert view(test).layer == 1


def test_a_pair_is_followed_around_its_circle(page):
    test = page("rotary", "pair")
    check(test.selectbox(key=in_attention.PAIR).set_value(1).run())
    assert view(test).of(PositionsLook).dims == (1, 3)
    (one,) = turnings(opened("rotary").config, "decoder")
    circle = figure(test, "rotary_circle")["data"][0]
    np.testing.assert_allclose(numbers(circle["x"]), np.cos(np.arange(24) * one.speeds[1]), atol=1e-6)
    np.testing.assert_allclose(numbers(circle["y"]), np.sin(np.arange(24) * one.speeds[1]), atol=1e-6)


@pytest.mark.parametrize("name", ["rotary", "windows"])
def test_the_score_of_the_sentence_stands_on_its_curve(page, name):
    test = page(name, "sentence", layer=3, head=2, query=3, key=2)
    checkpoint = opened(name)
    trace = checkpoint.run("ba lo mi")
    site = "decoder.2.self_attn.scores"
    own = float(replay(checkpoint, trace, [site])[site][1, 2, 1])
    curve, ring = figure(test, "rotary_scores")["data"]
    place = numbers(curve["x"]).tolist().index(-1)
    cap = checkpoint.config.score_cap
    before = own if cap is None else cap * np.arctanh(own / cap)
    assert numbers(curve["y"])[place] == pytest.approx(before, abs=1e-4)
    assert numbers(ring["y"])[0] == pytest.approx(before, abs=1e-4)
    assert ("soft cap" in told_or_noted(test)) == (cap is not None)


@pytest.mark.parametrize(("name", "side", "stack"), [("alibi", "target", "decoder"), ("relative", "source", "encoder")])
def test_a_bias_is_drawn_by_distance(page, name, side, stack):
    test = page(name, side=side, head=2, layer=1)
    found = distance_bias(opened(name).model, stack, most=23)
    drawn = figure(test, "bias_map")
    np.testing.assert_allclose(numbers(drawn["data"][0]["z"]), found.bias, atol=1e-6)
    front = figure(test, "bias_curves")["data"][-1]  # what is looked at comes last, on top
    assert front["name"] == "head 2"
    np.testing.assert_allclose(numbers(front["y"]), found.bias[1], atol=1e-6)
    assert ("bucket" in drawn["layout"]["meta"]["cells"]["columns"][0]) == (name == "relative")
    assert ("Cross-attention does not use positions" in told_or_noted(test)) == (name == "relative")


@pytest.mark.parametrize(
    ("name", "part", "why"),
    [
        ("rotary", "similarity", "compares rows of a table of positions"),
        ("alibi", "pair", "The chosen part is for rotary positions"),
    ],
)
def test_a_part_without_meaning_says_why(page, name, part, why):
    test = page(name, part)
    assert why in told_or_noted(test)
    assert view(test).of(PositionsLook).positions_panel == "table"


@pytest.mark.parametrize(
    ("name", "part"), [("windows", "rotations"), ("rotary", "pair"), ("windows", "sentence"), ("alibi", "distance")]
)
def test_what_is_spoken_is_spoken_whole(page, name, part):
    test = page(name, part, lang="qps")
    assert complaints(test, words_of(name, "ba lo mi t oxm") | data_of_models()) == []


@pytest.mark.parametrize(("name", "part"), [("windows", "rotations"), ("alibi", "sentence")])
def test_every_part_can_be_drawn_twice(folder, monkeypatch, name, part):
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder))
    test = AppTest.from_function(twice, args=("positions", {"positions_panel": part}), default_timeout=300)
    test.query_params["model"], test.query_params["src"] = name, "ba lo mi"
    check(test.run())
    keys = keys_of(test)
    first = {key for key in keys if not key.startswith(SECOND)}
    assert first
    assert {f"{SECOND}{key}" for key in first} == keys - first
