"""GPT-2 folders: what their config says, their tokenizer, and refusals."""

import json

import pytest

from glassformer.extensions.huggingface.library.folder import import_folder
from tests.extensions.huggingface.library.parity import change, change_config, opened, saved
from tests.extensions.huggingface.library.tiny_families import model_of
from tests.extensions.tokenizers import foreign
from transformer.errors import CheckpointError

IDS = {"bos_token_id": 3, "eos_token_id": 3}


def test_what_its_config_says(tmp_path):
    config = opened(saved(model_of("gpt2", "unscaled"), tmp_path / "m", **IDS)).config
    assert (config.d_ff, config.pad_id, config.tie_output, config.score_scale) == (40, None, True, 1)
    assert not opened(saved(model_of("gpt2", "own output"), tmp_path / "own", **IDS)).config.tie_output


def test_with_its_tokenizer(tmp_path):
    files = foreign.byte_pairs()
    size = len(json.loads(files["vocab.json"]))
    folder = saved(model_of("gpt2", vocab_size=size, bos_token_id=0, eos_token_id=0), tmp_path / "m", eos_token_id=0)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    trace = opened(folder).run("The quick brown fox")
    assert trace.texts
    assert "".join(trace.src_pieces).replace("▁", " ") == "The quick brown fox"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("add_cross_attention", True),
        ("scale_attn_by_inverse_layer_idx", True),
        ("activation_function", "tanh"),
        ("n_embd", "8"),
        ("n_layer", True),
        ("window_of_mine", 3),
        ("quantization_config", {"bits": 4}),
        ("model_type", "bloom"),
    ],
)
def test_what_would_compute_something_else_is_refused(tmp_path, key, value):
    folder = saved(model_of("gpt2"), tmp_path / "m", **IDS)
    change_config(folder, **{key: value})
    with pytest.raises(CheckpointError, match=key):
        import_folder(folder)


def test_missing_and_surplus_tensors_are_named(tmp_path):
    folder = saved(model_of("gpt2"), tmp_path / "m", **IDS)
    change(folder, rename=lambda name: name.replace("h.1.ln_2.bias", "h.1.ln_9.bias"))
    with pytest.raises(CheckpointError, match=r"h\.1\.ln_2\.bias.*h\.1\.ln_9\.bias"):
        import_folder(folder)


def test_a_tensor_of_another_shape_is_named(tmp_path):
    folder = saved(model_of("gpt2"), tmp_path / "m", **IDS)
    change_config(folder, n_positions=12)
    with pytest.raises(CheckpointError, match=r"wpe.*\[16, 8\].*\[12, 8\]"):
        import_folder(folder)


BEYOND = {
    "gpt2": ({"bos_token_id": 99, "eos_token_id": 99}, {"eos_id": 3}),
    "llama": ({"bos_token_id": 99, "eos_token_id": [99, 98], "pad_token_id": 99}, {"eos_id": 3, "bos_id": 2}),
    "bart": ({"decoder_start_token_id": 99, "forced_eos_token_id": 99, "eos_token_id": 2}, {"decoder_start_id": 2}),
    "t5": ({"eos_token_id": 10**6, "bad_words_ids": [[99], [3, 99]]}, {"eos_id": 1}),
}


@pytest.mark.parametrize("family", BEYOND)
@pytest.mark.parametrize("own", [True, False], ids=["generation_config.json", "config.json"])
def test_an_id_beyond_the_vocabulary_is_none(tmp_path, family, own):
    said, answers = BEYOND[family]
    folder = saved(model_of(family), tmp_path / "m", **(said if own else {}))
    if not own:
        (folder / "generation_config.json").unlink(missing_ok=True)
    change_config(folder, **said)
    report = import_folder(folder).report
    assert [one.name for one in report.asked] == [next(iter(answers))]
    assert "is beyond the vocabulary of" in str(report)
    config = import_folder(folder, answers=answers).content.config
    assert {name: getattr(config, name) for name in answers} == answers
    assert (config.forced_end_id, config.banned_sequences, config.further_eos_ids) == (None, (), ())
    with pytest.raises(CheckpointError, match="found 99, expected 0 to"):
        import_folder(folder, answers=answers | {next(iter(answers)): 99})
