"""Dead neurons, and embeddings that say nothing, are found and named; what only looks like that is not."""

import numpy as np
import pytest
import torch

from glassformer.extensions.doctor.library import feed_forward_tests
from tests.extensions.doctor.library.changed import changed, look
from tests.transformer.one_stack import alone
from transformer.analysis.losses import Samples


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


def test_a_layer_without_living_neurons_is_broken_and_one_that_fires_rarely_is_not(reverse):
    sick = changed(reverse, lambda model: model.encoder.layers[0].ffn.up_proj.bias.fill_(-50))
    assert look("dead_neurons", sick).verdict == "broken"
    rare = changed(reverse, lambda model: model.encoder.layers[0].ffn.up_proj.bias.sub_(2))  # one token in a thousand
    assert look("dead_neurons", rare).verdict == "well"


@pytest.mark.parametrize(
    ("stack", "changes"),
    [("encoder", {"activation": "gelu"}), ("decoder", {"activation": "silu", "gated": True, "ffn_bias": True})],
)
def test_other_activations_and_gates(tmp_path, stack, changes):
    checkpoint = alone(stack, tmp_path, **changes)
    assert look("dead_neurons", checkpoint).verdict == "well"

    def change(model):
        ffn = model.stack(stack).layers[0].ffn
        gate = ffn.gate_proj if changes.get("gated") else ffn.up_proj
        gate.bias[:5] = -1000

    found = look("dead_neurons", changed(checkpoint, change))
    assert (found.verdict, found.number) == ("look", 5 / 20)


def test_collapsed_embeddings_are_found(reverse):
    def one_direction(model):
        model.src_table.mul_(0.05).add_(model.src_table[5] * 20)

    def one_line(model):
        model.src_table.copy_(torch.outer(torch.randn(30, generator=torch.manual_seed(0)), model.src_table[5]))

    assert look("collapsed_embeddings", reverse).number < 0.3
    for change in (one_direction, one_line):
        found = look("collapsed_embeddings", changed(reverse, change))
        assert (found.verdict, found.places) == ("broken", ("src_table",))


def test_the_mean_cosine_is_that_of_all_pairs():
    rows = torch.randn(40, 8, generator=torch.manual_seed(0)) + 1
    rows[3] = 0
    unit = np.delete(rows.numpy(), 3, axis=0).astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    cosines = unit @ unit.T
    expected = cosines[np.triu_indices(39, 1)].mean()
    assert feed_forward_tests.mean_cosine(rows) == pytest.approx(expected, abs=1e-6)


def test_equal_rows_are_named_by_their_pieces_unless_they_are_special(reverse):
    found = look("equal_embeddings", changed(reverse, lambda model: model.src_table[9].copy_(model.src_table[8])))
    assert (found.verdict, found.number) == ("look", 2)
    assert set(found.places) == {reverse.src_tokenizer.piece(8), reverse.src_tokenizer.piece(9)}
    sick = changed(reverse, lambda model: model.src_table[:2].zero_())
    assert look("equal_embeddings", sick).verdict == "well"
