"""A draft with 8-bit matrices computes, without rounding, what any model computes; its gain is that of writing."""

import pytest
import torch

from glassformer.extensions.drafts import int8_draft
from tests.transformer.analysis.test_speed_gains import LARGE
from tests.transformer.featured import FEATURED
from tests.transformer.tiny import DECODER, ONE_STACK, laid_out, random_ids, tiny_config, tiny_model
from transformer.analysis import speed_gains
from transformer.analysis.speed_gains import measuring
from transformer.model.cache import KVCache
from transformer.runs.array_records import whole
from transformer.runs.decoding import Prefix

KINDS = {
    **{
        name: (ONE_STACK if "n_encoder_layers" in changes else {}) | changes
        for name, changes in FEATURED.items()
        if name != "no positions"
    },
    "plain": {},
    "post": {"norm": "post", "final_norm": False},
    "both": {"norm": "both", "norm_kind": "rms", "bias": False},
    "parallel": {**DECODER, "parallel_residual": True, "activation": "gelu_tanh", "positions": "learned"},
    "gated": {"gated": True, "activation": "silu", "n_kv_heads": 1, "qk_norm": True},
    "no norm, no residual": {"norm_kind": "none", "residual": False, "positions": "learned"},
    "output": {"tie_output": False, "output_bias": True, "output_scale": 0.5, "logit_cap": 8.0},
    "embedding": {"embedding_norm": True, "scale_embedding": False, "norm_kind": "deviation"},
}


def both_ways(changes, *, n_begun, seed=0):
    """Logits of the next pieces in the model and in the draft, both given the same pieces [steps, B, V]."""
    model = laid_out(tiny_model(seed=seed, dtype=torch.float32, **changes))
    size = model.config.tgt_vocab_size
    src, written = random_ids(3, 5, vocab=17), random_ids(3, 6, vocab=size, seed=1)
    if model.anatomy.reads:
        src[1, 3:] = model.config.pad_id  # of different lengths
        begun = torch.cat((torch.full((3, 1), model.config.decoder_start_id), written[:, :n_begun]), dim=1)
    else:
        begun = torch.cat((src, written[:, :n_begun]), dim=1)
    memory, mask = (model.encode(src), model.source_mask(src)) if model.anatomy.reads else (None, None)
    theirs = Prefix(model, src, cache=KVCache(3), memory=memory)
    ours = int8_draft.QuickPrefix(int8_draft.QuickDecoder(model), model, begun, memory, mask, room=12)
    for place in range(n_begun):
        theirs.append(written[:, place])
    found = []
    for place in range(n_begun, 6):
        found.append((theirs.next_log_probs(), ours.next_log_probs().log_softmax(dim=-1)))
        if place == 4:  # a row leaves, the others change places
            theirs.select(torch.tensor([2, 0]))
            ours.select(torch.tensor([2, 0]))
            written = written[[2, 0]]
        theirs.append(written[:, place])
        ours.append(written[:, place])
    return found


@pytest.mark.parametrize("n_begun", [pytest.param(0, marks=pytest.mark.deep), 2])
@pytest.mark.parametrize("name", KINDS)
@torch.inference_mode()
def test_a_step_computes_what_the_model_computes(name, n_begun):
    for expected, found in both_ways(KINDS[name], n_begun=n_begun):
        torch.testing.assert_close(found, expected, rtol=0, atol=2e-5)


@torch.inference_mode()
def test_one_product_is_rounded_by_at_most_its_steps(monkeypatch):
    monkeypatch.setattr(int8_draft, "SMALLEST", 0)
    weight, bias, x = torch.randn(30, 20), torch.randn(30), torch.randn(4, 20)
    found, expected = int8_draft.product(weight, bias)(x), torch.nn.functional.linear(x, weight, bias)
    of_weights = x.abs().sum(dim=1)[:, None] * weight.abs().amax(dim=1) / 254
    of_vectors = weight.abs().sum(dim=1) * (x.max() - x.min()) / (127 if int8_draft.overflows() else 255)
    assert bool(((found - expected).abs() <= of_weights + of_vectors + 1e-3).all())


@pytest.mark.parametrize("features", [{}, LARGE, DECODER | LARGE])
def test_each_way_writes_as_many_tokens_and_rounds_only_where_it_says_so(features, monkeypatch):
    torch.manual_seed(0)
    n_threads, rounded = torch.get_num_threads(), []
    int8_draft.overflows()  # asked once
    real = torch.quantize_per_channel
    monkeypatch.setattr(torch, "quantize_per_channel", lambda one, *how: rounded.append(one.shape) or real(one, *how))
    made = speed_gains.Steps(tiny_config(**features), n_source=5, n_written=7)
    torch.set_num_threads(n_threads)
    assert made.eager() == 7
    assert made.as_drafts(int8=False)() == 7
    assert not rounded
    assert made.as_drafts(int8=True)() == 7
    assert bool(rounded) == ("d_ff" in features)


@pytest.mark.deep
def test_int8_is_measured_without_a_compiler(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    assert whole(measuring(tiny_config(**LARGE))).int8 > 0
