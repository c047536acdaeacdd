"""In 32 bits a draft by CTranslate2 is what decoding writes, for each kind of model that it takes."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from glassformer.extensions.drafts import ctranslate2_draft
from glassformer.extensions.drafts.ctranslate2_draft import made, os, why_not
from tests.test_checkpoints import FOLDER
from tests.transformer.runs.test_dynamic_batching import made_up
from tests.transformer.tiny import DECODER, ENCODER
from transformer import Beam, Sampling, ZeroHead, load
from transformer.model.attention_features import Rotary
from transformer.runs.drafting import verify_and_trace
from transformer.runs.query import Query
from transformer.runs.reading import go_on, read
from transformer.tap import Recorder, tap_of

pytestmark = pytest.mark.usefixtures("one_thread")

T5 = {"positions": "relative", "relative_buckets": 8, "relative_distance": 12, "score_scale": 1.0, "bias": False,
      "norm_kind": "rms", "gated": True, "activation": "gelu_tanh", "output_scale": 0.3, "d_head": 5}  # fmt: skip
LLAMA = {**DECODER, "positions": "rotary", "norm_kind": "rms", "gated": True, "activation": "silu", "bias": False,
         "n_kv_heads": 1, "tie_output": False, "scale_embedding": False}  # fmt: skip
KINDS = {
    "paper": {},
    "post": {"norm": "post", "final_norm": False, "activation": "gelu", "n_decoder_heads": 2, "d_decoder_ff": 28},
    "post, normed again": {"norm": "post", "positions": "learned", "output_bias": True, "n_token_types": 2},
    "no final norm": {"final_norm": False, "tie_output": False, "norm_eps": 0.05, "activation": "silu"},
    "marian": {"norm": "post", "sinusoid_layout": "halves", "decoder_start_id": 0, "forced_end_id": 3, "unk_id": None,
               "prepend_source_bos": True, "source_prefix": (5,), "source_suffix": (6,)},
    "fairseq": {"sinusoid_layout": "fairseq", "shared_vocab": True, "src_vocab_size": 19, "activation": "quick_gelu"},
    "bart": {"positions": "learned", "embedding_norm": True, "scale_embedding": False, "forced_ids": (7, 8)},
    "t5": T5,
    "shared heads": {"n_kv_heads": 1, "d_head": 6, "positions": "rotary", "d_model": 15, "gated": True,
                     "score_scale": 0.7, "norm_kind": "rms", "norm_eps": 0.05},
    "banned": {"banned_sequences": ((5, 6), (7, 8, 9)), "banned_ids": (2, 4), "no_repeat_ngram": 2,
               "norm_bias": False, "positions": "none"},
    "ends": {"further_eos_ids": (5, 6), "max_new": 7, "logit_cap": 3.0},
    "gpt-2": {**DECODER, "positions": "learned", "scale_embedding": False, "activation": "gelu_tanh"},
    "post alone": {**DECODER, "norm": "post", "banned_ids": (5,), "max_length": 9},
    "qwen": {**LLAMA, "qk_norm": True, "d_head": 6},
    "gemma": {**LLAMA, "norm": "both", "activation": "gelu_tanh", "logit_cap": 30.0},
    "neox": {**DECODER, "positions": "rotary", "parallel_residual": True, "rotary": Rotary(share=0.5, base=500.0)},
    "alibi": {**DECODER, "positions": "alibi", "n_heads": 6, "embedding_norm": True},
}  # fmt: skip
REFUSED = {
    "n_decoder_layers": ENCODER,
    "norm_kind": {"norm_kind": "deviation"},
    "activation": {"activation": "none"},
    "residual": {"residual": False},
    "norm": {"norm": "both"},
    "positions": {"positions": "alibi"},
    "qk_norm": {"qk_norm": True},
    "windows": {"windows": (3, 0, 2)},
    "score_cap": {"score_cap": 5.0},
    "rotary": {"positions": "rotary", "rotary": Rotary(scaling="linear", factor=2.0)},
    "repetition_penalty": {"repetition_penalty": 1.2},
    "first_banned_ids": {"first_banned_ids": (5,)},
    "min_new": {"min_new": 3},
    "no_repeat_ngram": {**DECODER, "no_repeat_ngram": 2},
}


def read_words(checkpoint, **settings):
    """Sources of different lengths, or prompts of one length."""
    alone = not checkpoint.config.n_encoder_layers
    sources = ["ba lo", "ta ta", "ke mi"] if alone else ["ba lo mi ta", "su", "lo ke su ba lo su mi", "ta ta"]
    return read(checkpoint, [Query(checkpoint="hash", source=one, **settings) for one in sources])


def draft(checkpoint, reading, begun=None):
    rows = range(len(reading.queries))
    return made(checkpoint, compute="float32").write(reading, rows, begun or [()] * len(rows), go_on)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (0, 2))])
@pytest.mark.parametrize("name", KINDS)
def test_in_32_bits_a_draft_is_the_output(name, seed):
    checkpoint = made_up(seed, **KINDS[name])
    before = {key: value.clone() for key, value in checkpoint.model.state_dict().items()}
    reading = read_words(checkpoint, max_new=12)
    outputs = [one.ids for one in reading.decode()]
    assert draft(checkpoint, reading) == outputs
    begun = [ids[: length % (len(ids) + 1)] for length, ids in enumerate(outputs, start=seed)]
    assert draft(checkpoint, reading, begun) == outputs
    made(checkpoint)  # rounds its own copies
    assert all(torch.equal(value, before[key]) for key, value in checkpoint.model.state_dict().items())


@pytest.mark.parametrize("what", REFUSED)
def test_what_ctranslate2_lacks_is_said(what):
    checkpoint = made_up(0, **REFUSED[what])
    assert why_not(checkpoint) == what
    with pytest.raises(ValueError, match=f"^{what}$"):
        made(checkpoint)


def test_without_the_package_there_is_no_draft(monkeypatch):
    assert not hasattr(ctranslate2_draft, "ctranslate2")  # only making one imports it
    checkpoint = made_up(0)
    assert why_not(checkpoint) is None
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    assert "ctranslate2" in why_not(checkpoint)
    with pytest.raises(ValueError, match="ctranslate2"):
        made(checkpoint)


def test_a_draft_writes_on_from_any_beginning_and_within_the_limit():
    checkpoint = made_up(1)
    reading = read_words(checkpoint, max_new=6)
    one = made(checkpoint, compute="float32")
    assert one.write(reading, [2], [(9, 7)], go_on)[0][:2] == (9, 7)
    assert one.write(reading, [1, 0], [(9, 3), (5,) * 6], go_on) == [(9, 3), (5,) * 6]  # nothing is left to write
    forced = read_words(checkpoint, max_new=6, forced=(8, 9))
    found = one.write(forced, range(4), [(), (8,), (8, 9), (8, 9, 5)], go_on)
    assert found[:3] == [one.ids for one in forced.decode()[:3]]


def test_threads_share_a_draft_and_8_bits_write_nearly_always_the_same():
    checkpoint = load(FOLDER / "zh-en")
    readings = [read(checkpoint, [checkpoint.query(text)]) for text in checkpoint.card.examples[:5]]
    one = made(checkpoint)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda reading: one.write(reading, [0], [()], go_on)[0], readings))
    outputs = [reading.decode()[0].ids for reading in readings]
    assert len(outputs) >= 3
    assert sum(map(tuple.__eq__, outputs, found)) >= 0.8 * len(outputs)
    with torch.inference_mode():
        assert [verify_and_trace(reading, one, go_on)[0].tgt_ids for reading in readings] == outputs


def test_it_suits_plain_greedy_decoding_and_no_forked_process(monkeypatch):
    checkpoint = made_up(3)
    one, plain = made(checkpoint), read_words(checkpoint)
    assert one.suits(plain)
    changes = ({"decoding": Beam(size=2)}, {"decoding": Sampling()}, {"interventions": (ZeroHead("cross", 0, 0),)})
    for settings in changes:
        assert not one.suits(read_words(checkpoint, **settings))
    query = Query(checkpoint="hash", source="ba")
    assert not one.suits(read(checkpoint, [query], tap=tap_of(Recorder(("logits",)))))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert not one.suits(plain)
