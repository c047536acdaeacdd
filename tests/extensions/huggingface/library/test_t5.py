"""T5 and mT5 folders: what their config says, version 1.1, and refusals."""

import pytest
import torch
from transformers import T5ForConditionalGeneration

from glassformer.extensions.huggingface.library.folder import import_folder
from tests.extensions.huggingface.library.parity import change, change_config, compare, compare_greedy, opened, saved
from tests.extensions.huggingface.library.tiny_families import model_of
from transformer.errors import CheckpointError

IDS = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}


def test_where_the_output_is_the_table_of_embeddings_the_last_vectors_are_scaled_down(tmp_path):
    ours = opened(saved(model_of("t5", "large"), tmp_path / "m", **IDS))
    assert (ours.config.tie_output, ours.config.output_scale) == (True, pytest.approx(24**-0.5))
    assert opened(saved(model_of("mt5", "large"), tmp_path / "mt5", **IDS)).config.output_scale == 1


def test_version_1_1(tmp_path):
    """A gate, and an output of its own, which the config of now calls tied."""
    own = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
    model = model_of("t5", "large", **own)
    folder = saved(model, tmp_path / "m", **IDS)
    change(folder, extra={"lm_head.weight": torch.randn(61, 24) / 3})
    theirs = T5ForConditionalGeneration.from_pretrained(folder, attn_implementation="eager")
    ours = opened(folder)
    assert (ours.config.tie_output, ours.config.output_scale, ours.config.gated) == (False, 1, True)
    compare(theirs, ours, pad=0)
    compare_greedy(theirs, ours, **IDS)


def test_an_output_that_is_missing(tmp_path):
    folder = saved(model_of("t5"), tmp_path / "m", **IDS)
    change_config(folder, tie_word_embeddings=False)
    with pytest.raises(CheckpointError, match="tie_word_embeddings"):
        import_folder(folder)


def test_a_table_in_a_second_layer_is_refused(tmp_path):
    folder = saved(model_of("t5"), tmp_path / "m", **IDS)
    name = "encoder.block.{}.layer.0.SelfAttention.relative_attention_bias.weight"
    change(folder, rename=lambda own: name.format(1) if own == name.format(0) else own)
    with pytest.raises(
        CheckpointError,
        match=r"does not belong to the model that config.json describes: 'encoder\.block\.1\.layer\.0\.SelfAttention",
    ):
        import_folder(folder)
