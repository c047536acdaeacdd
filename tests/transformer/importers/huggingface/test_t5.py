"""T5 and mT5 folders: the numbers and the outputs of transformers."""

import pytest
import torch
from transformers import MT5Config, MT5ForConditionalGeneration, T5Config, T5ForConditionalGeneration

from tests.transformer.importers.huggingface.parity import (
    change,
    change_config,
    compare,
    compare_greedy,
    opened,
    saved,
    tiny,
)
from transformer.errors import CheckpointError
from transformer.importers.huggingface.folder import import_folder

SIZES = {
    "vocab_size": 61,
    "d_model": 24,
    "d_kv": 5,
    "d_ff": 40,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 4,
}
BUCKETS = {"relative_attention_num_buckets": 6, "relative_attention_max_distance": 9}
IDS = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}


def test_the_first_version(tmp_path):
    """One table for input and output, whose last vectors are scaled down."""
    model = tiny(T5ForConditionalGeneration, T5Config(**SIZES, **BUCKETS, **IDS))
    ours = opened(saved(model, tmp_path / "m", **IDS))
    assert (ours.config.tie_output, ours.config.output_scale) == (True, pytest.approx(24**-0.5))
    compare(model, ours, pad=0)
    compare_greedy(model, ours, **IDS)


def test_version_1_1(tmp_path):
    """A gate, and an output of its own, which the config of now calls tied."""
    own = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
    model = tiny(T5ForConditionalGeneration, T5Config(**SIZES, **BUCKETS, **IDS, **own))
    folder = saved(model, tmp_path / "m", **IDS)
    change(folder, extra={"lm_head.weight": torch.randn(61, 24) / 3})
    theirs = T5ForConditionalGeneration.from_pretrained(folder, attn_implementation="eager")
    ours = opened(folder)
    assert (ours.config.tie_output, ours.config.output_scale, ours.config.gated) == (False, 1, True)
    compare(theirs, ours, pad=0)
    compare_greedy(theirs, ours, **IDS)


def test_mt5(tmp_path):
    model = tiny(MT5ForConditionalGeneration, MT5Config(**SIZES, **BUCKETS, **IDS))
    ours = opened(saved(model, tmp_path / "m", **IDS))
    assert ours.config.output_scale == 1
    compare(model, ours, pad=0)
    compare_greedy(model, ours, **IDS)


def test_an_output_that_is_missing(tmp_path):
    folder = saved(tiny(T5ForConditionalGeneration, T5Config(**SIZES, **BUCKETS, **IDS)), tmp_path / "m", **IDS)
    change_config(folder, tie_word_embeddings=False)
    with pytest.raises(CheckpointError, match="tie_word_embeddings"):
        import_folder(folder)


def test_a_table_in_a_second_layer_is_refused(tmp_path):
    folder = saved(tiny(T5ForConditionalGeneration, T5Config(**SIZES, **BUCKETS, **IDS)), tmp_path / "m", **IDS)
    name = "encoder.block.{}.layer.0.SelfAttention.relative_attention_bias.weight"
    change(folder, rename=lambda own: name.format(1) if own == name.format(0) else own)
    with pytest.raises(CheckpointError, match=r"not call for: 'encoder\.block\.1\.layer\.0\.SelfAttention"):
        import_folder(folder)
