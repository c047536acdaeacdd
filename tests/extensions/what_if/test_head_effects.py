"""The effect of each head is what a run without it says that is made to write the same."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from glassformer.extensions.what_if import head_effects as effects_module
from glassformer.extensions.what_if.head_effects import EffectReading, head_effects, measuring, together
from glassformer.extensions.what_if.interventions import ZeroHead
from tests.extensions.tokenizers.filling import filling
from tests.transformer.featured import featured
from tests.transformer.one_stack import alone
from transformer import run
from transformer.analysis.hidden_pieces import mask_id
from transformer.errors import QueryError
from transformer.model.taps import NO_TAP, Replacer, tap_of
from transformer.runs.apply_interventions import tap_for
from transformer.runs.array_records import Progress
from transformer.runs.interventions import parse

TEXT = "the red fox"
ALONE = {
    "parallel": {"parallel_residual": True},  # two heads share one of keys and values
    "gated": {"norm": "both", "gated": True, "activation": "silu"},
    "bare": {"norm": "post", "norm_kind": "none", "residual": False},
}
MODELS = ("fairseq", "windows", "parallel", *(pytest.param(name, marks=pytest.mark.deep) for name in (
    "halves", "relative", "alibi", "gated", "bare")))  # fmt: skip
CHANGES = {
    "gone": "zero-cross.2.1",
    "mixing": "mean-decoder.1.1_temper-cross.all.all.0_swap-1.3",
    "skipped": "skip-decoder.3.whole_skip-encoder.2.self_pads-2",
    "told": "heads-2",  # another number of heads
}


def heads_of(checkpoint, n_heads):
    return [
        (one.kind, layer, head)
        for one in checkpoint.model.anatomy.attentions
        for layer in range(one.n_layers)
        for head in range(n_heads)
    ]


def check_effects(checkpoint, trace, found, *, atol=5e-5, heads=slice(None), tap=NO_TAP):
    """Compare with runs without each head, with the run's own changes."""
    ids, before = list(trace.tgt_ids), trace.log_probs.astype(np.float64)
    steps, n_heads = range(len(ids)), trace.maps(trace.kinds[0]).shape[1]
    assert list(found.of) == list(trace.kinds)
    np.testing.assert_allclose(found.log_prob, before[steps, ids], atol=1e-4)
    for kind, layer, head in heads_of(checkpoint, n_heads)[heads]:
        change = ZeroHead(kind, layer, head)
        changes = tuple({**dict.fromkeys(trace.query.interventions), change: None})
        query = replace(trace.query, interventions=changes, forced=trace.tgt_ids, max_new=len(ids))
        after = run(checkpoint, query, tap=tap).log_probs.astype(np.float64)
        own, was = after[steps, ids], before[steps, ids]
        with np.errstate(invalid="ignore"):
            kl = np.nansum(np.exp(before) * (before - after), -1)
        expected = {"log_prob": own - was, "probability": np.exp(own) - np.exp(was), "kl": kl}
        for name, value in expected.items():
            values = getattr(found.of[kind], name)
            assert values.shape[1] == n_heads
            np.testing.assert_allclose(values[layer, head], value, atol=atol, err_msg=f"{change} {name}")
        assert found.of[kind].best[layer, head].tolist() == after.argmax(-1).tolist()
        assert found.changed(kind)[layer, head].tolist() == (after.argmax(-1) != before.argmax(-1)).tolist()


def in_float64(checkpoint):
    return SimpleNamespace(**vars(checkpoint) | {"model": copy.deepcopy(checkpoint.model).double()})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("effects")


@pytest.fixture(scope="module")
def both_stacks(folder):
    checkpoint = featured("fairseq", folder)
    return checkpoint, run(checkpoint, checkpoint.query(TEXT, max_new=4))


@pytest.mark.parametrize("name", MODELS)
def test_every_head_is_worth_what_a_run_without_it_says(name, folder):
    checkpoint = alone("decoder", folder, **ALONE[name]) if name in ALONE else featured(name, folder)
    trace = run(checkpoint, checkpoint.query(TEXT, max_new=4))
    check_effects(checkpoint, trace, head_effects(checkpoint, trace))


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_so_it_is_whatever_else_is_changed(both_stacks, changes):
    checkpoint, _ = both_stacks
    trace = run(checkpoint, checkpoint.query(TEXT, max_new=4, interventions=parse(changes)))
    found = head_effects(checkpoint, trace)
    check_effects(checkpoint, trace, found, heads=slice(None, None, 3 if changes != "heads-2" else 2))
    if changes == CHANGES["gone"]:
        np.testing.assert_allclose(found.of["cross"].kl[1, 0], 0, atol=1e-6)


def test_a_tap_that_mixes_tokens_sees_each_prefix_as_decoding_did(both_stacks):
    checkpoint, _ = both_stacks
    mixes = tap_of(Replacer({"decoder.0.self_attn.values": lambda v: v.mean(dim=2, keepdim=True).expand_as(v)}))
    trace = run(checkpoint, checkpoint.query(TEXT, max_new=4), tap=mixes)
    check_effects(checkpoint, trace, head_effects(checkpoint, trace, tap=mixes), heads=slice(5, None, 6), tap=mixes)


def test_how_much_is_done_at_once_changes_nothing(both_stacks, monkeypatch):
    checkpoint, trace = both_stacks
    precise = in_float64(checkpoint)
    expected = head_effects(precise, trace)
    for values, tokens, logits in ((1, 1, 1), (2**24, 10**6, 40), (1500, 20, 2**22)):
        monkeypatch.setattr(effects_module, "MOST_VALUES", values)
        monkeypatch.setattr(effects_module, "TOKENS", tokens)
        monkeypatch.setattr(effects_module, "MOST_LOGITS", logits)
        found = head_effects(precise, trace)
        for kind, effect in expected.of.items():
            np.testing.assert_allclose(found.of[kind].log_prob, effect.log_prob, rtol=0, atol=1e-12)
            np.testing.assert_allclose(found.of[kind].kl, effect.kl, rtol=0, atol=1e-12)


def test_a_tap_sees_all_logits_of_a_row_and_a_piece_may_be_impossible(both_stacks, monkeypatch):
    checkpoint, trace = both_stacks
    precise, piece = in_float64(checkpoint), next(piece for piece in range(5, 20) if piece not in trace.tgt_ids)
    banned = tap_of(Replacer({"logits": lambda z: z.index_fill(-1, torch.tensor([piece]), -torch.inf)}, causal=True))
    biased = copy.deepcopy(precise.model)
    biased.output_bias = torch.nn.Parameter(torch.zeros(len(biased.output_weight)).double(), requires_grad=False)
    biased.output_bias[piece] = -torch.inf
    monkeypatch.setattr(effects_module, "MOST_LOGITS", 40)
    seen = head_effects(precise, trace, tap=banned)
    known = head_effects(SimpleNamespace(**vars(precise) | {"model": biased}), trace)
    for kind, effect in known.of.items():
        assert np.isfinite(effect.kl).all()
        assert (effect.kl >= 0).all()
        for name in ("log_prob", "probability", "kl", "best"):
            np.testing.assert_allclose(getattr(seen.of[kind], name), getattr(effect, name), rtol=0, atol=1e-12)


def test_passes_hold_no_more_heads_than_there_is_room_for(both_stacks, monkeypatch):
    config = both_stacks[0].config
    monkeypatch.setattr(effects_module, "MOST_VALUES", 1500)
    groups = list(together(config, 7, 9))
    assert sum(map(len, groups)) == len({one for group in groups for one in group}) == (2 + 3 + 3) * config.n_heads
    assert max(map(len, groups)) * 9 * 3 * config.d_model <= 1500
    monkeypatch.setattr(effects_module, "MOST_VALUES", 2**24)
    assert max(map(len, together(config, 100_000, 9))) == 1


def test_the_vectors_of_an_encoder_alone_move(folder):
    checkpoint = alone("encoder", folder)
    trace = run(checkpoint, checkpoint.query(TEXT))
    found, src_ids = head_effects(checkpoint, trace), torch.tensor([trace.src_ids])
    with torch.inference_mode():
        before = checkpoint.model.encode(src_ids)
        for _, layer, head in heads_of(checkpoint, checkpoint.config.n_heads):
            after = checkpoint.model.encode(src_ids, tap=tap_for([ZeroHead("encoder", layer, head)], checkpoint))
            moved = ((after - before).norm(dim=-1) / before.norm(dim=-1))[0]
            np.testing.assert_allclose(found.of["encoder"].vectors[layer, head], moved, atol=1e-5)
    assert found.of["encoder"].log_prob.shape[2] == found.ids.size == 0
    with pytest.raises(QueryError, match="no head that predicts hidden tokens"):
        head_effects(checkpoint, trace, hidden=(1, 0))


def test_the_piece_that_is_hidden_from_an_mlm_head(folder):
    checkpoint = filling(folder)
    trace, mask, place = run(checkpoint, checkpoint.query(TEXT)), mask_id(checkpoint.src_tokenizer), 2
    found = head_effects(in_float64(checkpoint), trace, hidden=(place, mask))
    hidden = torch.tensor([[*trace.src_ids[:place], mask, *trace.src_ids[place + 1 :]]])
    lacking, piece = in_float64(checkpoint).model, trace.src_ids[place]
    d = checkpoint.config.d_head
    with torch.inference_mode():
        before = lacking.project(lacking.encode(hidden))[0, place].log_softmax(-1)
        lacking.attentions("encoder")[1].out_proj.weight[:, d : 2 * d] = 0.0
        after = lacking.project(lacking.encode(hidden))[0, place].log_softmax(-1)
    assert found.of["encoder"].log_prob[1, 1] == pytest.approx([(after - before)[piece].item()], abs=1e-10)
    kl = (before.exp() * (before - after)).sum().item()
    assert found.of["encoder"].kl[1, 1] == pytest.approx([kl], abs=1e-10)
    assert found.ids.tolist() == [piece]
    assert found.of["encoder"].vectors.shape[2] == len(trace.src_ids)
    with pytest.raises(QueryError, match=r"token 100 does not exist; the text ends with token \d+"):
        head_effects(checkpoint, trace, hidden=(99, mask))


def test_it_says_how_far_it_is_and_ends_when_nobody_asks_further(both_stacks, monkeypatch):
    checkpoint, trace = both_stacks
    passes = []
    real = EffectReading.without
    monkeypatch.setattr(EffectReading, "without", lambda self, *of: passes.append(of) or real(self, *of))
    steps = list(measuring(checkpoint, trace))
    assert steps[0] == steps[1] == Progress(0, (2 + 3 + 3) * checkpoint.config.n_heads)
    assert [one.done for one in steps] == sorted(one.done for one in steps)
    assert len(steps) == len(passes) + 1 > 2
    passes.clear()
    begun = measuring(checkpoint, trace)
    for _ in range(3):
        next(begun)
    begun.close()
    assert len(passes) == 1
    assert not torch.is_inference_mode_enabled()


def test_a_trace_of_another_checkpoint_is_refused_and_nobody_can_change_what_many_look_at(both_stacks):
    checkpoint, trace = both_stacks
    other = replace(trace, query=replace(trace.query, checkpoint="other"))
    with pytest.raises(QueryError, match="made with a checkpoint other than"):
        head_effects(checkpoint, other)
    found = head_effects(checkpoint, trace)
    with pytest.raises(ValueError, match="read-only"):
        found.of["cross"].kl[0, 0, 0] = 1.0
    with pytest.raises(TypeError):
        found.of["cross"] = None
    assert found.nbytes > 0
