"""Heads, neurons and embeddings that do nothing are found with their place; what only looks like that is not."""

import numpy as np
import pytest
import torch

from glassformer.extensions.doctor.library import feed_forward_tests
from glassformer.extensions.doctor.library.attention_tests import NO_RUN, TESTS
from glassformer.extensions.doctor.library.context import ExaminationContext
from glassformer.extensions.doctor.library.findings import not_applicable
from tests.extensions.doctor.library.changed import changed, look, verdicts
from tests.transformer.one_stack import alone
from transformer.analysis.losses import Samples


def test_a_healthy_model_has_no_fault_in_random_texts_either(reverse):
    assert set(verdicts(TESTS, ExaminationContext(reverse, Samples(()))).values()) == {"well"}


def head(n):
    """The rows of a head of the model that reverses letters."""
    return slice(n * 16, (n + 1) * 16)


def without_values(model):
    model.encoder.layers[1].self_attn.v_proj.weight[head(2)] = 0  # its bias stays, and says nothing


def turned_copy(model):
    attention, turn = model.encoder.layers[0].self_attn, torch.randn(16, 16, generator=torch.manual_seed(1))
    turn = torch.linalg.qr(turn)[0]
    for projection in (attention.q_proj, attention.k_proj):
        projection.weight[head(3)] = turn @ projection.weight[head(0)]
        projection.bias[head(3)] = turn @ projection.bias[head(0)]


def without_keys(model):
    model.encoder.layers[0].self_attn.k_proj.weight[head(1)] = 0


def without_output(model):
    model.decoder.layers[0].cross_attn.out_proj.weight.zero_()


def one_direction(model):
    model.src_table.mul_(0.05).add_(model.src_table[5] * 20)


def one_line(model):
    model.src_table.copy_(torch.outer(torch.randn(30, generator=torch.manual_seed(0)), model.src_table[5]))


@pytest.mark.parametrize(
    ("test", "change", "verdict", "places"),
    [
        ("dead_heads", without_values, "look", ("encoder.2.3",)),
        ("dead_heads", without_output, "broken", ("cross.1.1", "cross.1.2", "cross.1.3", "cross.1.4")),
        ("equal_heads", turned_copy, "look", ("encoder.1.1 = encoder.1.4",)),
        ("uniform_heads", without_keys, "look", ("encoder.1.2",)),
        ("collapsed_embeddings", one_direction, "broken", ("src_table",)),
        ("collapsed_embeddings", one_line, "broken", ("src_table",)),
    ],
)
def test_what_does_nothing_is_found_with_its_place(reverse, test, change, verdict, places):
    found = look(test, changed(reverse, change))
    assert (found.verdict, found.places) == (verdict, places)
    if change is without_values:
        assert found.shown.head == 2
    if change is turned_copy:
        assert found.number == pytest.approx(0, abs=1e-3)


def test_what_could_not_be_run_is_not_judged(reverse):
    sick = changed(reverse, lambda model: model.encoder.layers[0].ffn.up_proj.weight.fill_(float("nan")))
    assert look("dead_heads", sick) == not_applicable(NO_RUN)


@pytest.mark.parametrize(
    "change",
    [
        lambda ffn: ffn.up_proj.bias[:40].fill_(-50),
        lambda ffn: (ffn.up_proj.weight[:40].zero_(), ffn.up_proj.bias[:40].fill_(3)),  # a constant
        lambda ffn: ffn.down_proj.weight[:, :40].zero_(),
    ],
    ids=["never fires", "reads nothing", "writes nothing"],
)
def test_dead_neurons_are_found(reverse, change):
    found = look("dead_neurons", changed(reverse, lambda model: change(model.decoder.layers[1].ffn)), Samples(()))
    assert (found.verdict, found.number) == ("look", 40 / 256)
    assert found.places[0] == "decoder.2.1"


@pytest.mark.parametrize(("by", "verdict"), [(-50, "broken"), (-2, "well")])  # none fires; one token in a thousand
def test_a_layer_without_living_neurons_is_broken_and_one_that_fires_rarely_is_not(reverse, by, verdict):
    sick = changed(reverse, lambda model: model.encoder.layers[0].ffn.up_proj.bias.add_(by))
    assert look("dead_neurons", sick).verdict == verdict


@pytest.mark.parametrize(
    ("stack", "changes"),
    [("encoder", {"activation": "gelu"}), ("decoder", {"activation": "silu", "gated": True, "ffn_bias": True})],
)
def test_other_activations_and_gates(tmp_path, stack, changes):
    checkpoint = alone(stack, tmp_path, **changes)
    assert look("dead_neurons", checkpoint).verdict == "well"

    def change(model):
        ffn = model.stack(stack).layers[0].ffn
        (ffn.gate_proj if changes.get("gated") else ffn.up_proj).bias[:5] = -1000

    found = look("dead_neurons", changed(checkpoint, change))
    assert (found.verdict, found.number) == ("look", 5 / 20)


def test_the_mean_cosine_is_that_of_all_pairs(reverse):
    rows = torch.randn(40, 8, generator=torch.manual_seed(0)) + 1
    rows[3] = 0
    unit = np.delete(rows.double().numpy(), 3, axis=0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    expected = (unit @ unit.T)[np.triu_indices(39, 1)].mean()
    assert feed_forward_tests.mean_cosine(rows) == pytest.approx(expected, abs=1e-6)
    assert look("collapsed_embeddings", reverse).number < 0.3


def test_equal_rows_are_named_by_their_pieces_unless_they_are_special(reverse):
    found = look("equal_embeddings", changed(reverse, lambda model: model.src_table[9].copy_(model.src_table[8])))
    assert (found.verdict, found.number) == ("look", 2)
    assert set(found.places) == {reverse.src_tokenizer.piece(8), reverse.src_tokenizer.piece(9)}
    sick = changed(reverse, lambda model: model.src_table[:2].zero_())
    assert look("equal_embeddings", sick).verdict == "well"
