"""The cards of the page What goes wrong: what they compute, and that each outcome has its words."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch

from glassformer.extensions.effects.effects_look import Mistake
from glassformer.extensions.effects.wrong import mistake_panels
from glassformer.extensions.effects.wrong.mistake_cards import CARDS, PADS, other_heads
from glassformer.extensions.effects.wrong.mistake_figures import MistakeResult, Outcome, Side, happened
from glassformer.extensions.what_if.interventions import KINDS
from glassformer.runs import loading
from transformer.checkpoint.load import load
from transformer.errors import NotFiniteError
from transformer.model.masks import padding_mask
from transformer.runs.interventions import parse, write
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
def test_each_card_has_an_effect_on_a_shipped_checkpoint(looks, name):
    card, moved = BY_NAME[name], []
    for found in of(looks, name).values():
        right, wrong = card.measure.numbers(found)
        assert right is not None
        assert wrong is not None
        moved.append(abs(wrong - right) > ROUNDING)
    assert any(moved)


@pytest.mark.parametrize("name", BY_NAME)
def test_each_card_has_a_chart_of_both_sides(looks, name):
    for found in of(looks, name).values():
        drawn = BY_NAME[name].charts(found)
        assert drawn
        for chart in drawn:
            assert chart.spec["data"]
            assert chart.alt
            assert chart.how_to_read


@pytest.mark.parametrize("name", BY_NAME)
def test_each_change_stands_in_an_address_and_tells_what_it_does(sides, name):
    for side in sides.values():
        change = BY_NAME[name].change(side.checkpoint.config)
        assert change
        assert parse(write(change)) == change
        assert all(type(one) is KINDS[one.word] for one in change)


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_each_outcome_of_each_card_has_its_words(looks, name, outcome):
    found = next(iter(of(looks, name).values()))
    here = replace(found, outcome=outcome, site="decoder.0.output", problem="It cannot be.")
    assert len(happened(here)) > 20
    meaning = mistake_panels.meaning_of(BY_NAME[name], here)
    assert (meaning is None) == (outcome == "refused")
    if outcome == "not_finite":
        assert "decoder.0.output" in happened(here)
    texts = BY_NAME[name].said.outcomes
    assert len(set(texts.values())) == len(texts)


def test_the_outcomes_tell_each_other_apart(looks):
    said = {outcome: happened(replace(looks["scale", "reverse"], outcome=outcome)) for outcome in OUTCOMES}
    assert len(set(said.values())) == len(OUTCOMES)


def test_what_became_of_an_output_is_computed(sides):
    side = sides["reverse"]
    right = run(side.checkpoint, side.query)
    ended = {"stop_reason": "end of sentence"}
    assert mistake_panels.outcome_of(right, right) == "same"
    other = run(side.checkpoint, side.checkpoint.query("abcdef"))
    assert mistake_panels.outcome_of(right, other) == "changed"
    cut = run(side.checkpoint, replace(side.query, max_new=3))
    assert mistake_panels.outcome_of(right, cut) == "endless"
    nothing = replace(right, tgt_ids=right.tgt_ids[-1:], tgt_pieces=right.tgt_pieces[-1:], texts=("",), **ended)
    assert mistake_panels.outcome_of(right, nothing) == "nothing"


def test_what_changes_an_output_is_known_without_the_whole_run(sides, looks):
    for (name, where), found in looks.items():
        assert mistake_panels.changes(BY_NAME[name], sides[where]) == (found.outcome != "same"), (name, where)


@pytest.mark.parametrize("decoding", [Sampling(temperature=1.5, seed=3), Beam(size=2)])
@pytest.mark.parametrize("most", [None, 3])
def test_what_changes_an_output_does_not_hang_on_how_pieces_are_chosen(sides, decoding, most):
    side = sides["reverse"]
    side = replace(side, query=replace(side.query, decoding=decoding, max_new=most or side.query.max_new))
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


def test_the_first_difference_is_that_of_the_pieces(looks):
    found = looks["scale", "reverse"]
    assert found.outcome == "changed"
    pairs = list(zip(found.right.tgt_ids, found.wrong.tgt_ids, strict=False))
    assert found.first == next(place for place, (one, other) in enumerate(pairs) if one != other)
    assert looks["shifted", "reverse"].outcome == "same"
    assert looks["shifted", "reverse"].first is None
    assert looks["nan", "reverse"].first is None


def test_what_is_not_finite_names_its_site(looks):
    for found in of(looks, "nan").values():
        assert found.outcome == "not_finite"
        assert found.site == "decoder.0.self_attn.weights"
        assert found.wrong is None
    assert mistake_panels.site_of(NotFiniteError("Nothing is known.")) == ""


# ---------------------------------------------------------------- numbers by hand


def attention_by_hand(checkpoint, trace, *, scale=1.0, times=1):
    """The encoder's first weights, computed from its parameters."""
    model, config = checkpoint.model, checkpoint.config
    layer = model.encoder.layers[0]
    x = model.encoder.embedding(torch.tensor([trace.src_ids]), model.src_table)
    x = layer.self_attn_residual.norm(x)
    q, k = (proj(x)[0].view(len(trace.src_ids), config.n_heads, -1).transpose(0, 1)
            for proj in (layer.self_attn.q_proj, layer.self_attn.k_proj))  # fmt: skip
    weights = q @ k.transpose(1, 2) * scale
    for _ in range(times):
        weights = weights.softmax(dim=-1)
    return weights.detach().numpy()


def test_weights_without_the_scale_and_with_two_softmaxes(sides, looks):
    side = sides["reverse"]
    site, root = "encoder.0.self_attn.weights", side.checkpoint.config.d_head**-0.5
    for name, how in (("scale", {"scale": 1.0}), ("twice", {"scale": root, "times": 2})):
        found = looks[name, "reverse"]
        assert found.read_right.values[site] == pytest.approx(
            attention_by_hand(side.checkpoint, found.right, scale=root), abs=1e-5
        )
        assert found.read_wrong.values[site] == pytest.approx(
            attention_by_hand(side.checkpoint, found.right, **how), abs=1e-5
        )


def test_the_number_of_the_leak_is_its_loss_with_and_without_the_mask(looks):
    found = looks["leak", "reverse"]
    leak = load(loading.SHIPPED / "reverse-leak")
    src, tgt = torch.tensor([found.right.src_ids]), torch.tensor([found.right.read_ids])
    memory, src_mask = leak.model.encode(src), leak.model.source_mask(src)
    n = tgt.size(1)
    for read, mask in (
        (found.read_right, padding_mask(tgt, pad_id=leak.config.pad_id).expand(1, 1, n, n)),
        (found.read_wrong, torch.ones(1, 1, n, n, dtype=torch.bool).tril()),
    ):
        hidden = leak.model.decoder(tgt, leak.model.target_table, memory, mask, src_mask)
        log_probs = leak.model.project(hidden)[0].log_softmax(-1)
        expected = -log_probs[range(n), list(found.right.tgt_ids)].mean()
        assert read.mean_loss == pytest.approx(float(expected), abs=1e-5)
    assert found.read_right.mean_loss < 1e-3
    assert found.read_wrong.mean_loss > 1
    assert found.wrong.output_text != found.right.output_text == "ssalg"


def test_padding_alone_changes_nothing_and_on_the_wrong_axis_it_is_read(looks):
    for found in of(looks, "axis").values():
        assert found.right.src_ids[-PADS:] == (found.sides.right.checkpoint.config.pad_id,) * PADS
        right, wrong = BY_NAME["axis"].measure.numbers(found)
        assert right == 0
        assert wrong > 0.01


def test_an_inverted_mask_shows_later_tokens_only(looks):
    for found in of(looks, "inverted").values():
        assert BY_NAME["inverted"].measure.numbers(found) == (0, pytest.approx(1, abs=1e-5))
        weights = found.read_wrong.values["decoder.0.self_attn.weights"]
        assert np.tril(weights[:, :-1]).max() == 0
        # For the last row every key is closed: all scores are the same number, and so are all weights.
        np.testing.assert_allclose(weights[:, -1], 1 / weights.shape[-1], rtol=1e-6)


def test_the_embedding_is_as_many_times_too_large_as_it_is_said(sides, looks):
    for where, found in of(looks, "embedding").items():
        right, wrong = BY_NAME["embedding"].measure.numbers(found)
        assert wrong / right == pytest.approx(sides[where].checkpoint.config.d_model ** 0.5, rel=1e-4)


def test_twice_as_many_heads_have_half_the_width(sides, looks):
    (change,) = other_heads(sides["reverse"].checkpoint.config)
    assert change.n == 2 * sides["reverse"].checkpoint.config.n_heads


# ---------------------------------------------------------------- where a mistake cannot be made


def test_only_the_two_models_of_one_task_show_the_leak(sides):
    assert mistake_panels.why_not(BY_NAME["leak"], sides["reverse"]) is None
    assert "reverse-leak" in mistake_panels.why_not(BY_NAME["leak"], sides["zh-en"])
    leak = loading.open_checkpoint(loading.usable()["reverse-leak"])
    side = Side(leak, leak.query("glass"))
    assert mistake_panels.why_not(BY_NAME["leak"], side) is None
    assert all(mistake_panels.why_not(card, side) for card in CARDS if card.mistake != "leak")


def test_without_one_of_the_two_the_leak_says_so(sides, monkeypatch):
    there = {name: entry for name, entry in loading.usable().items() if name != "reverse-leak"}
    monkeypatch.setattr(loading, "usable", lambda: there)
    assert "reverse and reverse-leak; at least one of them is missing here" in mistake_panels.why_not(
        BY_NAME["leak"], sides["reverse"]
    )


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
    why = mistake_panels.why_not(BY_NAME[name], other)
    assert why is not None
    assert why.endswith(".")


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


def test_a_found_without_a_wrong_run_has_no_first_difference(looks):
    found = looks["scale", "reverse"]
    assert MistakeResult(found.sides, found.right, None, "refused").first is None
