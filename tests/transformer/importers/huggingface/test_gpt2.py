"""GPT-2 folders: the numbers and the outputs of transformers, and refusals."""

import json

import pytest
from transformers import GPT2Config, GPT2LMHeadModel

from tests.transformer.importers.huggingface.parity import (
    change,
    change_config,
    compare,
    compare_greedy,
    opened,
    saved,
    tiny,
)
from tests.transformer.text import foreign
from transformer.errors import CheckpointError
from transformer.importers.huggingface.folder import import_folder

SIZES = {"vocab_size": 61, "n_embd": 24, "n_layer": 3, "n_head": 4, "n_positions": 48}
IDS = {"bos_token_id": 3, "eos_token_id": 3}


def made(**changes):
    return tiny(GPT2LMHeadModel, GPT2Config(**(SIZES | IDS | changes)))


def test_as_it_is_saved_now(tmp_path):
    model = made(n_inner=40, scale_attn_weights=False, layer_norm_epsilon=1e-3)
    ours = opened(saved(model, tmp_path / "m", **IDS))
    assert (ours.config.d_ff, ours.config.pad_id, ours.config.tie_output) == (40, None, True)
    assert ours.config.score_scale == 1
    compare(model, ours, pad=None)
    compare_greedy(model, ours, pad_token_id=0)


def test_with_its_tokenizer(tmp_path):
    files = foreign.byte_pairs()
    size = len(json.loads(files["vocab.json"]))
    folder = saved(made(vocab_size=size, bos_token_id=0, eos_token_id=0), tmp_path / "m", eos_token_id=0)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    trace = opened(folder).run("The quick brown fox")
    assert trace.texts
    assert "".join(trace.src_pieces).replace("▁", " ") == "The quick brown fox"


def test_an_output_with_a_table_of_its_own(tmp_path):
    model = made(tie_word_embeddings=False)
    ours = opened(saved(model, tmp_path / "m", **IDS))
    assert not ours.config.tie_output
    compare(model, ours, pad=None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("add_cross_attention", True),
        ("scale_attn_by_inverse_layer_idx", True),
        ("activation_function", "tanh"),
        ("n_embd", "24"),
        ("n_layer", True),
        ("window_of_mine", 3),
        ("quantization_config", {"bits": 4}),
        ("model_type", "bloom"),
    ],
)
def test_what_would_compute_something_else_is_refused(tmp_path, key, value):
    folder = saved(made(), tmp_path / "m", **IDS)
    change_config(folder, **{key: value})
    with pytest.raises(CheckpointError, match=key):
        import_folder(folder)


def test_missing_and_surplus_tensors_are_named(tmp_path):
    folder = saved(made(), tmp_path / "m", **IDS)
    change(folder, rename=lambda name: name.replace("h.1.ln_2.bias", "h.1.ln_9.bias"))
    with pytest.raises(CheckpointError, match=r"h\.1\.ln_2\.bias.*h\.1\.ln_9\.bias"):
        import_folder(folder)


def test_a_tensor_of_another_shape_is_named(tmp_path):
    folder = saved(made(), tmp_path / "m", **IDS)
    change_config(folder, n_positions=40)
    with pytest.raises(CheckpointError, match=r"wpe.*\[48, 24\].*\[40, 24\]"):
        import_folder(folder)
