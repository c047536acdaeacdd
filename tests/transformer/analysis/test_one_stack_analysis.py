"""Every measurement on a decoder alone and an encoder alone: right, or one sentence that says why there is none."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.transformer.one_stack import alone
from tests.transformer.tiny import DECODER, ENCODER, random_ids, tiny_config, tiny_model
from transformer import run
from transformer.analysis import costs, head_statistics, mask_checks, neurons, one_weight, stream
from transformer.analysis import head_statistics as hs
from transformer.analysis.alignment_scores import score_alignment
from transformer.analysis.costs import shapes_of
from transformer.analysis.logit_lens import lens_places, logit_lens
from transformer.analysis.rollout import self_rollout
from transformer.errors import QueryError
from transformer.model.taps import Recorder, tap_of
from transformer.runs.replay import replay
from transformer.tap import sites

KINDS = [{}, DECODER, ENCODER]
HEADS = [{}, {"d_head": 5}, {"n_heads": 6, "n_kv_heads": 2, "d_head": 3}, {"bias": False, "tie_output": False}]


@pytest.fixture(scope="module", params=["decoder", "encoder"])
def lone(request, tmp_path_factory):
    """A checkpoint of one stack, a run on it, and the stack's name."""
    checkpoint = alone(request.param, tmp_path_factory.mktemp("alone"))
    return checkpoint, run(checkpoint, checkpoint.query("the red fox", max_new=5)), request.param


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    checkpoint = alone("decoder", tmp_path_factory.mktemp("alone"), norm="post")
    return checkpoint, run(checkpoint, checkpoint.query("the red fox", max_new=5))


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("stacks", KINDS)
def test_torch_counts_the_same_multiply_adds(stacks, heads):
    model = tiny_model(dtype=torch.float32, **stacks, **heads)
    recorder = Recorder(("*.scores",))  # with scores wanted, attention does its two products one by one
    with FlopCounterMode(display=False) as counter:
        model(random_ids(1, 7), random_ids(1, 4), tap=tap_of(recorder))
    counted = costs.multiply_adds(model.config, n_source=7, n_target=4)
    assert 2 * sum(counted.values()) == counter.get_total_flops()


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("stacks", KINDS)
def test_parameters_belong_to_components_that_the_model_has(stacks, heads):
    model = tiny_model(**stacks, **heads)
    held = costs.holdings(model)
    assert sum(one.parameters for one in held.values()) == model.config.count_parameters()
    there = {f"{kind}_projections" for kind in model.anatomy.kinds}
    assert {part for part in costs.PROJECTIONS if held[part].parameters} == there
    assert bool(held["output"].parameters) == (model.anatomy.writes and not model.config.tie_output)


def test_a_stack_that_is_not_there_needs_no_length():
    assert costs.multiply_adds(tiny_config(**ENCODER), n_source=3, n_target=0)["output"] == 0
    decoder = costs.multiply_adds(tiny_config(**DECODER), n_source=0, n_target=3)
    assert decoder["encoder_maps"] == decoder["cross_maps"] == 0
    assert costs.overtakes(tiny_config(**DECODER), parts=costs.PROJECTIONS).n == 2 * 12 + 1
    with pytest.raises(ValueError, match="at least 1"):
        costs.multiply_adds(tiny_config(**DECODER), n_source=3, n_target=0)


def test_shapes_are_those_of_every_site(lone):
    checkpoint, trace, stack = lone
    seen = shapes_of(checkpoint.model, trace.src_ids, trace.read_ids)
    assert seen.sites.keys() == sites(checkpoint.config).keys()
    n = trace.n_tokens(stack)
    assert seen.sites[f"{stack}.0.self_attn.weights"] == (1, 3, n, n)
    assert seen.sites[f"{stack}.0.self_attn.keys"] == (1, checkpoint.config.n_kv_heads, n, checkpoint.config.d_head)


def test_the_stream_of_the_stack_that_is_there(lone):
    checkpoint, trace, stack = lone
    found = replay(checkpoint, trace, stream.sites(checkpoint.config, stack))
    measured = stream.measure(found, checkpoint.config, stack, n_tokens=trace.n_tokens(stack))
    assert [place.part for place in measured.places][:3] == ["embedding", "self_attn", "ffn"]
    for place in stream.norm_places(checkpoint.config, stack):
        normed = stream.normed(found, checkpoint.model, stack, place, n_tokens=3)
        assert normed.difference < 1e-5
    with pytest.raises(QueryError, match=r"no (decoder|encoder)"):
        stream.places(checkpoint.config, "decoder" if stack == "encoder" else "encoder")


def test_measures_of_heads_count_their_own_tokens(lone):
    checkpoint, trace, kind = lone
    found = hs.measure(trace, kind, eos_id=checkpoint.config.eos_id)
    n = trace.n_tokens(kind)
    assert found["entropy"].values.shape == (*trace.maps(kind).shape[:2], n)
    assert found["self"].means() == pytest.approx(trace.maps(kind)[:, :, range(n), range(n)].mean(-1), abs=1e-6)
    recorded = replay(
        checkpoint, trace, [head_statistics.outputs_site(kind, layer) for layer in range(len(trace.maps(kind)))]
    )
    shares = head_statistics.norm_share(
        np.stack(list(recorded.values())), head_statistics.output_projections(checkpoint.model, kind)
    )
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert self_rollout(trace.maps(kind)).shape == (n, n)
    with pytest.raises(QueryError, match="no cross-attention"):
        head_statistics.output_projections(checkpoint.model, "cross")


def test_one_weight_of_shared_heads(lone):
    checkpoint, trace, kind = lone
    found = replay(checkpoint, trace, one_weight.sites(kind, 1))
    for head in range(3):
        walk = one_weight.walk(found, checkpoint.model, kind=kind, layer=1, head=head, query=2)
        assert max(vars(walk.differences).values()) < 1e-5
        np.testing.assert_allclose(walk.weights, trace.maps(kind)[1, head, 2], atol=1e-5)
        assert walk.d_head == checkpoint.config.d_head


def test_the_lens_reads_the_steps_of_a_decoder_alone(decoder):
    checkpoint, trace = decoder
    lens = logit_lens(checkpoint, trace)
    assert len(lens.places) == 1 + 3 * 2 == len(lens_places(checkpoint))
    assert lens.rank.shape == (7, trace.n_steps)
    chosen = trace.log_probs[np.arange(trace.n_steps), list(trace.tgt_ids)]
    np.testing.assert_allclose(lens.log_prob[-1], chosen, atol=1e-4)


def test_the_direct_effect_of_a_neuron_in_a_decoder_alone(decoder):
    checkpoint, trace = decoder
    needed = neurons.effect_sites(checkpoint.config, 0)
    assert not any("cross" in site for site in needed)
    effect = neurons.direct_effect(checkpoint.model, 0, 3, replay(checkpoint, trace, needed), token=2)
    assert effect.shape == (checkpoint.config.tgt_vocab_size,)
    assert np.abs(effect).max() > 0
    assert neurons.silent_shares(checkpoint, trace, "decoder").shape == (3, trace.n_tokens("decoder"))


def test_what_an_encoder_alone_does_not_have_is_said(tmp_path):
    checkpoint = alone("encoder", tmp_path)
    trace = run(checkpoint, checkpoint.query("the red fox"))
    assert neurons.silent_shares(checkpoint, trace, "encoder").shape == (2, len(trace.src_ids))
    for asked in (
        lambda: logit_lens(checkpoint, trace),
        lambda: neurons.effect_sites(checkpoint.config, 0),
        lambda: mask_checks.check_causality(checkpoint.model, ((5, 6),), ((2, 5),), sentence=0, place=1, piece_id=7),
    ):
        with pytest.raises(QueryError, match="encoder-only and writes nothing"):
            asked()


def test_alignment_needs_cross_attention(lone):
    checkpoint, _, _ = lone
    with pytest.raises(QueryError, match="no cross-attention"):
        score_alignment(checkpoint, None, source_text="spaced", target_text="spaced")


def test_the_masks_of_one_stack(lone):
    checkpoint, trace, stack = lone
    rows = (trace.src_ids, (*trace.src_ids[:2], *[0] * (len(trace.src_ids) - 2)))
    read = rows if stack == "decoder" else ((), ())
    masks = mask_checks.batch_masks(checkpoint.model, rows, read)
    assert masks.names == (("target", "causal", "decoder") if stack == "decoder" else ("source",))
    for name in masks.names:
        assert masks.whole(name).shape == (2, len(rows[0]), len(rows[0]))
    with pytest.raises(QueryError, match="has no mask named 'cross'; its masks are"):
        masks.own("cross")
    found = mask_checks.record_attention(checkpoint.model, rows, read, kind=stack, layer=1)
    assert (found.weights[~found.mask] == 0).all()
    np.testing.assert_allclose(found.weights[0].sum(-1), 1, atol=1e-5)


@torch.inference_mode()
def test_pads_move_nothing_in_one_stack(lone):
    checkpoint, trace, stack = lone
    found = mask_checks.check_padding(checkpoint.model, trace.src_ids, trace.read_ids, n_pads=2)
    moved, none = (found.target, found.source) if stack == "decoder" else (found.source, found.target)
    assert none is None
    own = trace.read_ids if stack == "decoder" else trace.src_ids
    before, after = (checkpoint.model(ids, ids) for ids in (torch.tensor([own]), torch.tensor([[*own, 0, 0]])))
    np.testing.assert_array_equal(moved.kept, (after[:, : len(own)] - before).abs().amax(-1)[0])
    assert moved.kept.max() <= moved.rounding
    assert (moved.taken.max() > moved.rounding) == (stack == "encoder")  # a decoder's causal mask hides later pads


def test_a_later_piece_moves_no_earlier_row_of_a_decoder_alone(decoder):
    checkpoint, trace = decoder
    read = (trace.read_ids,)
    moved = mask_checks.check_causality(checkpoint.model, read, read, sentence=0, place=3, piece_id=11)
    assert (moved.kept[:3] <= moved.rounding).all()
    assert moved.kept[3] > moved.rounding
    assert moved.taken[:3].max() > moved.rounding
