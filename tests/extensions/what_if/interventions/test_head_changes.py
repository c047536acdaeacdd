"""Changes of heads and layers, each against the same change written by hand."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.extensions.what_if.interventions import Blank, MeanHead, Pads, Skip, Temper, Uniform, ZeroHead
from tests.extensions.what_if.interventions.reference import SOURCE, Reference, assert_same
from tests.transformer.featured import featured
from transformer import run, run_batch
from transformer.errors import QueryError
from transformer.runs.interventions import ChangeError
from transformer.runs.replay import replay

NAMES = {"encoder": "encoder.1.self_attn", "decoder": "decoder.1.self_attn", "cross": "decoder.1.cross_attn"}


def meaning(names, heads):
    """Of the encoder over all tokens that are read; of a decoder over those up to the query."""

    class Mean(Reference):
        def head(self, output, mask, name, head):
            output = super().head(output, mask, name, head)
            if name not in names or head not in heads:
                return output
            if name.startswith("encoder"):
                read = [row for place, row in enumerate(output) if bool(mask[0, place])]
                return torch.stack([sum(read) / len(read)] * len(output))
            return torch.stack([sum(output[: n + 1]) / (n + 1) for n in range(len(output))])

    return Mean


def visible(names, heads, row):
    """Each row of scores and of the mask through a function of lists."""

    class Look(Reference):
        def weights(self, scores, mask, name, head):
            weights = super().weights(scores, mask, name, head)
            if name not in names or head not in heads:
                return weights
            rows = [row(s, m, w) for s, m, w in zip(scores.tolist(), mask.tolist(), weights.tolist(), strict=True)]
            return torch.tensor(rows, dtype=torch.float64)

    return Look


def alike(scores, may, weights):
    return [1 / sum(may) if m else 0.0 for m in may]


def best(scores, may, weights):
    most = max(s for s, m in zip(scores, may, strict=True) if m)
    first = next(k for k, s in enumerate(scores) if s == most and may[k])
    return [float(k == first) for k in range(len(scores))]


def softened(temperature):
    def row(scores, may, weights):
        raised = [np.exp(s / temperature) * m for s, m in zip(scores, may, strict=True)]
        return [r / sum(raised) for r in raised]

    return row


def skipping(*names):
    class Skipping(Reference):
        def sublayer(self, x, name, function):
            written = super().sublayer(x, name, function)  # also where it is skipped: its map stays
            return x if name in names else written

    return Skipping


@pytest.mark.parametrize("kind", NAMES)
def test_a_head_writes_its_mean(both, kind):
    assert_same(both, [MeanHead(kind, 1, 2)], meaning([NAMES[kind]], [2]))


@pytest.mark.parametrize("kind", NAMES)
def test_a_head_looks_as_it_is_told(both, kind):
    names = [NAMES[kind]]
    assert_same(both, [Uniform(kind, 1, 0)], visible(names, [0], alike))
    assert_same(both, [Temper(kind, 1, 1, temperature=0.3)], visible(names, [1], softened(0.3)))
    assert_same(both, [Temper(kind, 1, 1, temperature=7)], visible(names, [1], softened(7.0)))
    assert_same(both, [Temper(kind, 1, 2, temperature=0)], visible(names, [2], best))


def test_all_layers_and_all_heads(both, decoder):
    names = ["decoder.0.cross_attn", "decoder.1.cross_attn"]
    assert_same(both, [Uniform("cross")], visible(names, range(3), alike))
    assert_same(both, [Temper("cross", None, 1, temperature=0)], visible(names, [1], best))
    assert_same(both, [MeanHead("encoder", 0)], meaning(["encoder.0.self_attn"], range(3)))
    own = ["decoder.0.self_attn", "decoder.1.self_attn"]
    assert_same(decoder, [MeanHead("decoder", None, 2)], meaning(own, [2]))
    assert_same(decoder, [Uniform("decoder", 0)], visible(own[:1], range(3), alike))


@pytest.mark.parametrize("part", ["self", "cross", "ffn"])
def test_a_sub_layer_is_skipped(both, part):
    name = {"self": "self_attn", "cross": "cross_attn", "ffn": "ffn"}[part]
    assert_same(both, [Skip("decoder", 1, part)], skipping(f"decoder.1.{name}"))
    assert_same(both, [Skip("decoder", None, part)], skipping(f"decoder.0.{name}", f"decoder.1.{name}"))


def test_a_layer_is_skipped_before_and_behind_norms(both, decoder):
    assert_same(both, [Skip("encoder", 0)], skipping("encoder.0.self_attn", "encoder.0.ffn"))
    assert_same(decoder, [Skip("decoder", 1)], skipping("decoder.1.self_attn", "decoder.1.ffn"))
    assert_same(decoder, [Skip("decoder", 0, "self")], skipping("decoder.0.self_attn"))


def test_changes_act_together_and_over_padding(both):
    """Weights come before what a head writes, whatever the order; padding is neither looked at nor in a mean."""

    class Padded(Reference):
        def edited(self, ids):
            return [*super().edited(ids), 0, 0]

    assert_same(
        both,
        [Pads(2), MeanHead("encoder", 1, 2), Uniform("encoder", 0)],
        Padded, meaning(["encoder.1.self_attn"], [2]), visible(["encoder.0.self_attn"], range(3), alike),
    )  # fmt: skip
    assert_same(
        both,
        [Temper("decoder", 0, temperature=2), MeanHead("cross", 0, 1), Skip("decoder", 1, "ffn")],
        visible(["decoder.0.self_attn"], range(3), softened(2.0)), meaning(["decoder.0.cross_attn"], [1]),
        skipping("decoder.1.ffn"),
    )  # fmt: skip


CHANGES = [
    (MeanHead("encoder", 1, 2), Uniform("encoder", 0, 1), Blank(1)),
    (MeanHead("decoder", 0, 0), Temper("cross", None, None, temperature=0), ZeroHead("decoder", 1, 1)),
    (Skip("decoder", 1, "cross"), Uniform("decoder", 0), Pads(1)),
]


@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: "_".join(map(str, changes)))
def test_a_batch_gives_each_sentence_what_it_gets_alone(both, changes):
    texts = [SOURCE, "mi", "ta ku ne so ri"]
    queries = [both.query(text, interventions=changes, max_new=7) for text in texts]
    for query, found in zip(queries, run_batch(both, queries), strict=True):
        alone = run(both, query)
        assert found.tgt_ids == alone.tgt_ids
        np.testing.assert_allclose(found.log_probs, alone.log_probs, atol=1e-4)
        n, m = alone.cross.shape[-2:]
        np.testing.assert_allclose(found.cross[..., :n, :m], alone.cross, atol=1e-5)


def test_a_replay_sees_the_changed_run(both):
    query = both.query(SOURCE, interventions=(Uniform("cross", 1), MeanHead("decoder", 0)), max_new=6)
    trace = run(both, query)
    np.testing.assert_allclose(trace.cross[1], 1 / len(trace.src_ids), atol=1e-6)
    assert np.ptp(trace.cross[0]) > 0.01
    found = replay(both, trace, ["*.weights", "decoder.0.self_attn.heads"])
    np.testing.assert_allclose(found["decoder.1.cross_attn.weights"], trace.cross[1], atol=1e-6)
    heads = found["decoder.0.self_attn.heads"]
    np.testing.assert_allclose(heads[:, 0], replay_of_first(both, trace), atol=1e-6)


def replay_of_first(checkpoint, trace):
    """The first token's output is its own mean: as without the change."""
    plain = run(checkpoint, checkpoint.query(SOURCE, interventions=(Uniform("cross", 1),), forced=trace.tgt_ids))
    return replay(checkpoint, plain, ["decoder.0.self_attn.heads"])["decoder.0.self_attn.heads"][:, 0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (MeanHead("cross", 2, 0), r"mean-cross\.3\.1 names layer 3, but this part of the model has only layers 1 to 2"),
        (Uniform("decoder", None, 3), r"uniform-decoder\.all\.4 names head 4, but this model has only heads 1 to 3"),
        (Skip("encoder", 2), r"skip-encoder\.3\.whole names layer 3"),
        (Skip("encoder", 0, "cross"), "an encoder has none"),
    ],
)
def test_what_the_model_has_not_is_refused(both, change, said):
    with pytest.raises(ChangeError, match=said):
        run(both, both.query(SOURCE, interventions=(change,)))


def test_what_one_stack_has_not_is_refused(decoder):
    for change in (MeanHead("encoder", 0, 0), Skip("encoder", 0), Skip("decoder", 0, "cross"), Temper("cross")):
        with pytest.raises(ChangeError, match=r"This model has no (encoder|cross-attention)"):
            run(decoder, decoder.query(SOURCE, interventions=(change,)))


@pytest.mark.parametrize("temperature", [0.01, -1, 21, float("nan"), "1"])
def test_a_temperature_has_limits(temperature):
    with pytest.raises(QueryError, match="expected"):
        Temper("cross", 0, 0, temperature=temperature)


def test_the_first_of_equal_keys_is_looked_up(both):
    """A head whose queries are 0 finds all keys equal."""
    from copy import deepcopy
    from dataclasses import replace

    model = deepcopy(both.model)
    model.attentions("cross")[0].q_proj.weight.zero_()
    model.attentions("cross")[0].q_proj.bias.zero_()
    blind = replace(both, model=model)
    trace = run(blind, blind.query(SOURCE, interventions=(Temper("cross", 0, temperature=0),), max_new=4))
    assert (trace.cross[0, :, :, 0] == 1).all()
    assert (trace.cross[0, :, :, 1:] == 0).all()


@pytest.mark.parametrize(("kind", "last", "width"), [("encoder", 2, 4), ("decoder", 1, 6), ("cross", 1, 6)])
def test_each_stack_has_its_own_heads(tmp_path, kind, last, width):
    """A head that is silent is as a head whose columns of W_O are 0; one that only the other stack has is refused."""
    checkpoint = featured("own decoder", tmp_path)
    silent = checkpoint.run(checkpoint.query(SOURCE, interventions=(ZeroHead(kind, 0, last),)))
    by_hand = deepcopy(checkpoint.model)
    attention = by_hand.get_submodule(NAMES[kind].replace(".1.", ".layers.0."))
    attention.out_proj.weight[:, last * width : (last + 1) * width] = 0
    expected = replace(checkpoint, model=by_hand).run(SOURCE)
    assert silent.tgt_ids == expected.tgt_ids
    assert np.allclose(silent.log_probs, expected.log_probs, atol=1e-5)
    assert silent.weights[kind].shape[1] == last + 1
    with pytest.raises(QueryError, match=f"names head {last + 2}, but this model has only heads 1 to {last + 1}"):
        checkpoint.run(checkpoint.query(SOURCE, interventions=(ZeroHead(kind, 0, last + 1),)))
