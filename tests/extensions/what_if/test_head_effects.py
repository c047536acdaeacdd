"""The effect of each head is what a model without it says: one whose W_O has zeros in that head's place."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from glassformer.extensions.what_if import head_effects as effects_module
from glassformer.extensions.what_if.head_effects import EffectReading, Head, head_effects, measuring, together
from glassformer.extensions.what_if.interventions import MeanHead, Pads, Skip, Swap, Temper, ZeroHead
from glassformer.extensions.what_if.interventions.score_changes import HeadsTold
from tests.extensions.tokenizers.filling import filling
from tests.transformer.featured import featured
from tests.transformer.one_stack import alone
from transformer import run
from transformer.analysis.hidden_pieces import mask_id
from transformer.errors import QueryError
from transformer.model.taps import NO_TAP, Replacer, tap_of
from transformer.runs.apply_interventions import tap_for
from transformer.runs.array_records import Progress
from transformer.runs.replay import replay

MODELS = {
    "fairseq": (),  # encoder and decoder
    "halves": pytest.mark.deep,  # post-norm
    "relative": pytest.mark.deep,
    "windows": (),  # a decoder alone with rotary positions, caps and windows
    "alibi": pytest.mark.deep,
}
ALONE = [
    ({"parallel_residual": True}, ()),  # two heads share one of keys and values
    ({"norm": "both", "gated": True, "activation": "silu"}, pytest.mark.deep),
    ({"norm": "post", "norm_kind": "none", "residual": False}, pytest.mark.deep),
]
TEXT = "the red fox"


def without(model, *heads):
    """A copy of a model whose W_O reads nothing of some heads."""
    changed = copy.deepcopy(model)
    for one in heads:
        attention = changed.attentions(one.kind)[one.layer]
        d = attention.d_head
        attention.out_proj.weight[:, one.head * d : (one.head + 1) * d] = 0.0
    return changed


def log_probs(model, trace):
    """Of every step [T, V], by one whole pass."""
    with torch.inference_mode():
        logits = model(torch.tensor([trace.src_ids]), torch.tensor([trace.read_ids]))
    return logits.log_softmax(-1)[0, trace.first_row : trace.first_row + trace.n_steps]


def heads_of(config, model):
    return [
        Head(one.kind, layer, head)
        for one in model.anatomy.attentions
        for layer in range(one.n_layers)
        for head in range(config.n_heads)
    ]


def by_hand(model, trace, *also):
    """[(head, log_prob, probability, kl, best)] with each head taken away beside others that always are."""
    before, ids = log_probs(without(model, *also), trace), list(trace.tgt_ids)
    steps = range(len(ids))
    for one in heads_of(model.config, model):
        after = log_probs(without(model, one, *also), trace)
        own, was = after[steps, ids], before[steps, ids]
        kl = (before.exp() * (before - after)).sum(-1)
        yield one, own - was, own.exp() - was.exp(), kl, after.argmax(-1)


def assert_equal(found, expected, *, atol):
    for one, *numbers, best in expected:
        effect = found.of[one.kind]
        for name, value in zip(("log_prob", "probability", "kl"), numbers, strict=True):
            actual = getattr(effect, name)[one.layer, one.head]
            np.testing.assert_allclose(actual, value, rtol=atol, atol=atol, err_msg=f"{one} {name}")
        assert effect.best[one.layer, one.head].tolist() == best.tolist()


def in_float64(checkpoint):
    return SimpleNamespace(**vars(checkpoint) | {"model": copy.deepcopy(checkpoint.model).double()})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("effects")


@pytest.fixture(scope="module")
def both_stacks(folder):
    checkpoint = featured("fairseq", folder)
    return checkpoint, run(checkpoint, checkpoint.query(TEXT, max_new=4))


def check_effects(checkpoint, trace):
    assert_equal(head_effects(checkpoint, trace), by_hand(checkpoint.model, trace), atol=1e-5)
    precise = in_float64(checkpoint)
    found = head_effects(precise, trace)
    assert_equal(found, by_hand(precise.model, trace), atol=1e-10)
    assert list(found.of) == list(trace.kinds)
    np.testing.assert_allclose(found.log_prob.sum(), trace.log_prob, atol=1e-4)


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks) for name, marks in MODELS.items()])
def test_every_head_is_worth_what_a_model_without_it_says(name, folder):
    checkpoint = featured(name, folder)
    check_effects(checkpoint, run(checkpoint, checkpoint.query(TEXT, max_new=4)))


@pytest.mark.parametrize("changes", [pytest.param(changes, marks=marks, id=str(changes)) for changes, marks in ALONE])
def test_so_it_is_in_a_decoder_alone(changes, folder):
    checkpoint = alone("decoder", folder, **changes)
    check_effects(checkpoint, run(checkpoint, checkpoint.query(TEXT, max_new=4)))


def test_the_runs_own_changes_hold_for_the_control_and_for_every_head(folder):
    checkpoint = featured("halves", folder)
    change = ZeroHead("cross", 1, 0)
    trace = run(checkpoint, checkpoint.query(TEXT, max_new=6, interventions=(change,)))
    found = head_effects(checkpoint, trace)
    assert_equal(found, by_hand(checkpoint.model, trace, Head("cross", 1, 0)), atol=1e-5)
    for values in (found.of["cross"].log_prob, found.of["cross"].kl):
        np.testing.assert_allclose(values[1, 0], 0, atol=1e-6)  # it is gone already


CHANGES = {
    "mixing": [MeanHead("decoder", 0, 0), Temper("cross", None, None, temperature=0), Swap(0, 2)],
    "skipped": [Skip("decoder", 2), Skip("encoder", 1, "self"), Pads(2)],
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_whatever_else_is_changed_a_head_is_worth_what_a_run_without_it_says(both_stacks, changes):
    checkpoint, _ = both_stacks
    trace = run(checkpoint, checkpoint.query(TEXT, max_new=5, interventions=tuple(changes)))
    found = head_effects(checkpoint, trace)
    for one in heads_of(checkpoint.config, checkpoint.model)[::3]:
        tap = tap_for([ZeroHead(one.kind, one.layer, one.head)], checkpoint)
        logits = replay(checkpoint, trace, ["logits"], tap=tap)["logits"]
        after = torch.tensor(logits).log_softmax(-1)[range(trace.n_steps), list(trace.tgt_ids)].numpy()
        own = found.of[one.kind].log_prob[one.layer, one.head] + found.log_prob
        np.testing.assert_allclose(own, after, rtol=1e-5, atol=1e-5, err_msg=str(one))


def test_another_number_of_heads_is_measured_head_by_head(both_stacks):
    checkpoint, _ = both_stacks
    told = HeadsTold(2)
    trace = run(checkpoint, checkpoint.query(TEXT, max_new=4, interventions=(told,)))
    found = head_effects(checkpoint, trace)
    assert {kind: effect.log_prob.shape[1] for kind, effect in found.of.items()} == dict.fromkeys(found.of, 2)
    query = checkpoint.query(TEXT, max_new=4, interventions=(told, ZeroHead("decoder", 0, 1)), forced=trace.tgt_ids)
    after = run(checkpoint, query).log_probs[range(trace.n_steps), list(trace.tgt_ids)]
    own = found.of["decoder"].log_prob[0, 1] + found.log_prob
    np.testing.assert_allclose(own, after, rtol=1e-5, atol=1e-5)


def test_a_tap_that_mixes_tokens_sees_each_prefix_as_decoding_did(both_stacks):
    checkpoint, _ = both_stacks
    mixes = tap_of(Replacer({"decoder.0.self_attn.values": lambda v: v.mean(dim=2, keepdim=True).expand_as(v)}))
    trace = run(checkpoint, checkpoint.query(TEXT, max_new=5), tap=mixes)
    found, one = head_effects(checkpoint, trace, tap=mixes), Head("decoder", 1, 2)
    np.testing.assert_allclose(found.log_prob.sum(), trace.log_prob, atol=1e-4)
    lacking, src_ids, expected = without(checkpoint.model, one), torch.tensor([trace.src_ids]), []
    with torch.inference_mode():
        memory = lacking.encode(src_ids, tap=mixes)
        for n in range(1, trace.n_steps + 1):
            hidden = lacking.decode(torch.tensor([trace.read_ids[:n]]), memory, lacking.source_mask(src_ids), tap=mixes)
            expected.append(lacking.project(hidden)[0, -1].log_softmax(-1)[trace.tgt_ids[n - 1]].item())
    after = found.of["decoder"].log_prob[1, 2] + found.log_prob
    np.testing.assert_allclose(after, expected, rtol=0, atol=1e-5)


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
    seen, known = (
        head_effects(one, trace, tap=tap)
        for one, tap in ((precise, banned), (SimpleNamespace(**vars(precise) | {"model": biased}), NO_TAP))
    )
    for kind, effect in known.of.items():
        assert np.isfinite(effect.kl).all()
        for name in ("log_prob", "probability", "kl", "best"):
            np.testing.assert_allclose(getattr(seen.of[kind], name), getattr(effect, name), rtol=0, atol=1e-12)
    for one, log_prob, *_ in by_hand(biased, trace):
        np.testing.assert_allclose(known.of[one.kind].log_prob[one.layer, one.head], log_prob, rtol=0, atol=1e-10)


def test_passes_hold_every_head_once_and_no_more_than_there_is_room_for(both_stacks, monkeypatch):
    config = both_stacks[0].config
    for room in (2**24, 1500):
        monkeypatch.setattr(effects_module, "MOST_VALUES", room)
        groups = list(together(config, 7, 9))
        heads = [one for group in groups for one in group]
        assert len(heads) == len(set(heads)) == (2 + 3 + 3) * config.n_heads
        assert all(len({one.kind == "encoder" for one in group}) == 1 for group in groups)
        assert max(map(len, groups)) * 9 * 3 * config.d_model <= room
    monkeypatch.setattr(effects_module, "MOST_VALUES", 2**24)
    assert max(map(len, together(config, 100_000, 9))) == 1


def test_the_vectors_of_an_encoder_alone_move(folder):
    checkpoint = alone("encoder", folder)
    trace = run(checkpoint, checkpoint.query(TEXT))
    precise = in_float64(checkpoint)
    found, src_ids = head_effects(precise, trace), torch.tensor([trace.src_ids])
    with torch.inference_mode():
        before = precise.model.encode(src_ids)
        for one in heads_of(checkpoint.config, precise.model):
            moved = (without(precise.model, one).encode(src_ids) - before).norm(dim=-1) / before.norm(dim=-1)
            np.testing.assert_allclose(found.of["encoder"].vectors[one.layer, one.head], moved[0], atol=1e-10)
    assert found.of["encoder"].log_prob.shape[2] == 0
    assert found.ids.size == 0
    with pytest.raises(QueryError, match="no head that predicts hidden pieces"):
        head_effects(checkpoint, trace, hidden=(1, 0))


def test_the_piece_that_is_hidden_from_an_mlm_head(folder):
    checkpoint = filling(folder)
    trace = run(checkpoint, checkpoint.query("the red fox"))
    precise, mask, place = in_float64(checkpoint), mask_id(checkpoint.src_tokenizer), 2
    found = head_effects(precise, trace, hidden=(place, mask))
    hidden = torch.tensor([[*trace.src_ids[:place], mask, *trace.src_ids[place + 1 :]]])
    with torch.inference_mode():
        for one in heads_of(checkpoint.config, precise.model):
            lacking = without(precise.model, one)
            after = lacking.project(lacking.encode(hidden))[0, place].log_softmax(-1)
            before = precise.model.project(precise.model.encode(hidden))[0, place].log_softmax(-1)
            piece, effect = trace.src_ids[place], found.of["encoder"]
            assert effect.log_prob[one.layer, one.head] == pytest.approx([(after - before)[piece].item()], abs=1e-10)
            kl = (before.exp() * (before - after)).sum().item()
            assert effect.kl[one.layer, one.head] == pytest.approx([kl], abs=1e-10)
    assert found.ids.tolist() == [trace.src_ids[place]]
    assert found.of["encoder"].vectors.shape[2] == len(trace.src_ids)
    with pytest.raises(QueryError, match=r"token 100 does not exist; the text ends with token \d+"):
        head_effects(checkpoint, trace, hidden=(99, mask))


def test_it_says_how_far_it_is_and_ends_when_nobody_asks_further(both_stacks, monkeypatch):
    checkpoint, trace = both_stacks
    passes = []
    real = EffectReading.without
    monkeypatch.setattr(EffectReading, "without", lambda self, *of: passes.append(of) or real(self, *of))
    whole = (2 + 3 + 3) * checkpoint.config.n_heads
    steps = list(measuring(checkpoint, trace))
    assert steps[0] == steps[1] == Progress(0, whole)
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
