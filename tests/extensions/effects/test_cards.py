"""Each card of What goes wrong changes what it says it changes, and each outcome has its words."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch

from glassformer.extensions.effects import mistake_panels
from glassformer.extensions.effects.effects_look import Mistake
from glassformer.extensions.effects.mistake_cards import CARDS, PADS
from glassformer.extensions.effects.mistake_figures import MistakeResult, Outcome, Side, happened
from glassformer.runs import loading
from transformer.errors import NotFiniteError
from transformer.runs.interventions import parse
from transformer.runs.query import Beam, Sampling
from transformer.runs.running import run

SHOWN = ("reverse", "zh-en")
ROUNDING = 1e-4
BY_NAME = {card.mistake: card for card in CARDS}
OUTCOMES = get_args(Outcome)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def sides():
    """A run of the first example on each of the two checkpoints."""
    found = {}
    for name in SHOWN:
        checkpoint = loading.open_checkpoint(loading.usable()[name])
        found[name] = Side(checkpoint, checkpoint.query(checkpoint.card.first_example()))
    return found


@pytest.fixture(scope="module")
def looks(sides):
    """What every card comes to on each checkpoint on which it can be shown."""
    return {
        (card.mistake, name): mistake_panels.look(card, side)
        for card in CARDS
        for name, side in sides.items()
        if mistake_panels.why_not(card, side) is None
    }


def of(looks, name):
    return {where: found for (card, where), found in looks.items() if card == name}


def test_there_is_a_card_for_each_mistake_in_the_order_of_the_address():
    assert ("auto", *(card.mistake for card in CARDS)) == get_args(Mistake)


@pytest.mark.parametrize("name", BY_NAME)
def test_each_card_has_an_effect_on_a_shipped_checkpoint_and_words_for_each_outcome(looks, name):
    card = BY_NAME[name]
    numbers = [card.measure.numbers(found) for found in of(looks, name).values()]
    assert any(abs(wrong - right) > ROUNDING for right, wrong in numbers)
    found, said = next(iter(of(looks, name).values())), set()
    for outcome in OUTCOMES:
        here = replace(found, outcome=outcome, site="decoder.0.output", problem="It cannot be.")
        said.add(happened(here))
        assert (mistake_panels.meaning_of(card, here) is None) == (outcome == "refused")
    assert len(said) == len(OUTCOMES)
    texts = card.said.outcomes
    assert len(set(texts.values())) == len(texts)


def test_what_became_of_an_output_is_computed(sides):
    side = sides["reverse"]
    right = run(side.checkpoint, side.query)
    ended = {"stop_reason": "end of sentence"}
    other = run(side.checkpoint, side.checkpoint.query("abcdef"))
    cut = run(side.checkpoint, replace(side.query, max_new=3))
    nothing = replace(right, tgt_ids=right.tgt_ids[-1:], tgt_tokens=right.tgt_tokens[-1:], texts=("",), **ended)
    expected = {"same": right, "changed": other, "endless": cut, "nothing": nothing}
    assert {name: mistake_panels.outcome_of(right, wrong) for name, wrong in expected.items()} == {
        name: name for name in expected
    }


@pytest.mark.parametrize("changes", [{}, {"decoding": Sampling(temperature=1.5, seed=3), "max_new": 3},
                                     {"decoding": Beam(size=2)}], ids=str)  # fmt: skip
def test_what_changes_an_output_is_known_without_the_whole_run(sides, changes):
    side = sides["reverse"]
    side = replace(side, query=replace(side.query, **changes))
    for card in CARDS:
        changed = mistake_panels.look(card, side).outcome != "same"
        assert mistake_panels.changes(card, side) == changed, card.mistake


def test_the_page_opens_on_the_first_mistake_that_changes_the_output(sides, looks, monkeypatch):
    there = [card for card in CARDS if (card.mistake, "zh-en") in looks]
    first = next(card for card in there if looks[card.mistake, "zh-en"].outcome != "same")
    assert first is not there[0]
    assert mistake_panels.opening(sides["zh-en"]) is first
    monkeypatch.setattr(mistake_panels, "changes", lambda *_: False)
    assert mistake_panels.opening(sides["zh-en"]) is there[0]
    monkeypatch.setattr(mistake_panels, "why_not", lambda *_: "no")
    assert mistake_panels.opening(sides["zh-en"]) is CARDS[0]


@pytest.mark.parametrize(
    ("do", "card"),
    [("causal-off", "leak"), ("causal-peek", "inverted"), ("unplaced-all", "positions"), ("zero-cross.1.1", "")],
)
def test_the_page_opens_on_the_card_of_what_is_changed(sides, do, card):
    side = sides["zh-en"]
    found = mistake_panels.of_changes(side.changed(parse(do)))
    assert (found.mistake if found else "") == card
    if found:
        assert mistake_panels.opening(side.changed(parse(do))) is found


def test_the_first_difference_is_that_of_the_pieces(looks):
    found = looks["scale", "reverse"]
    pairs = list(zip(found.right.tgt_ids, found.wrong.tgt_ids, strict=False))
    assert found.first == next(place for place, (one, other) in enumerate(pairs) if one != other)
    assert MistakeResult(found.sides, found.right, None, "refused").first is None
    assert looks["shifted", "reverse"].outcome == "same"
    assert looks["shifted", "reverse"].first is None
    for found in of(looks, "nan").values():
        assert (found.outcome, found.first, found.wrong) == ("not_finite", None, None)
        assert found.site == "decoder.0.self_attn.weights"
        assert "decoder.0.self_attn.weights" in happened(found)
    assert mistake_panels.site_of(NotFiniteError("Nothing is known.")) == ""


def test_the_numbers_of_padding_of_an_inverted_mask_and_of_a_large_embedding(sides, looks):
    for found in of(looks, "axis").values():
        assert found.right.src_ids[-PADS:] == (found.sides.right.checkpoint.config.pad_id,) * PADS
        right, wrong = BY_NAME["axis"].measure.numbers(found)
        assert right == 0
        assert wrong > 0.01
    for found in of(looks, "inverted").values():
        assert BY_NAME["inverted"].measure.numbers(found) == (0, pytest.approx(1, abs=1e-5))
        weights = found.read_wrong.values["decoder.0.self_attn.weights"]
        assert np.tril(weights[:, :-1]).max() == 0
        # For the last row every key is closed: all scores are the same number, and so are all weights.
        np.testing.assert_allclose(weights[:, -1], 1 / weights.shape[-1], rtol=1e-6)
    for where, found in of(looks, "embedding").items():
        right, wrong = BY_NAME["embedding"].measure.numbers(found)
        assert wrong / right == pytest.approx(sides[where].checkpoint.config.d_model ** 0.5, rel=1e-4)


def test_only_the_two_models_of_one_task_show_the_leak_if_both_are_there(sides, looks, monkeypatch):
    leak = loading.open_checkpoint(loading.usable()["reverse-leak"])
    side = Side(leak, leak.query("glass"))
    assert mistake_panels.why_not(BY_NAME["leak"], sides["reverse"]) is None
    assert mistake_panels.why_not(BY_NAME["leak"], side) is None
    assert all(mistake_panels.why_not(card, side) for card in CARDS if card.mistake != "leak")
    found = looks["leak", "reverse"]
    assert found.read_right.mean_loss < 1e-3
    assert found.read_wrong.mean_loss > 1
    assert found.wrong.output_text != found.right.output_text == "ssalg"
    assert "reverse-leak" in mistake_panels.why_not(BY_NAME["leak"], sides["zh-en"])
    there = {name: entry for name, entry in loading.usable().items() if name != "reverse-leak"}
    monkeypatch.setattr(loading, "usable", lambda: there)
    missing = "reverse and reverse-leak; at least one of them is missing here"
    assert missing in mistake_panels.why_not(BY_NAME["leak"], sides["reverse"])


@pytest.mark.parametrize(
    ("name", "features"),
    [
        ("axis", {"pad_id": None}),
        ("scale", {"score_scale": 1.0}),
        ("positions", {"positions": "none"}),
        ("shifted", {"positions": "rotary"}),
        ("heads", {"positions": "rotary"}),
        ("norms", {"norm": "both"}),
        ("residual", {"residual": False}),
        ("embedding", {"positions": "rotary"}),
    ],
)
def test_a_model_without_what_a_mistake_is_about_says_why(sides, name, features):
    side = sides["zh-en"]
    other = replace(side, checkpoint=replace(side.checkpoint, config=replace(side.checkpoint.config, **features)))
    assert mistake_panels.why_not(BY_NAME[name], other)


def test_a_change_that_a_run_refuses_is_said_and_the_rest_is_shown(sides):
    side = sides["reverse"]
    longest = replace(side, query=side.checkpoint.query("abcdefghijkl"))
    refused = replace(BY_NAME["residual"], change=lambda config: parse("noresidual-all.9.all"))
    found = mistake_panels.look(refused, longest)
    assert found.outcome == "refused"
    assert "layer 9" in found.problem
    assert found.read_right is not None
    assert found.read_wrong is None
    assert refused.measure.numbers(found)[1] is None
    assert refused.charts(found)
