"""A folder of each family computes and writes what transformers does with it; what it cannot mean is refused."""

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file, save_model
from transformers import BertModel, MarianModel, MarianMTModel

from glassformer.extensions.huggingface import folder as module
from glassformer.extensions.huggingface.folder import import_folder
from tests.extensions.huggingface.parity import change, change_config, compare, compare_greedy, opened, saved, tiny
from tests.extensions.huggingface.tiny_families import FAMILIES, model_of
from tests.extensions.refusing import refusal
from transformer.errors import CheckpointError

MARIAN_IDS = {"pad_token_id": 60, "eos_token_id": 0, "decoder_start_token_id": 60}


def test_each_family_has_a_row():
    assert set(FAMILIES) == set(module.FAMILIES)


@pytest.mark.parametrize(
    ("family", "variant"), [(name, variant) for name, row in FAMILIES.items() for variant in row.variants]
)
def test_as_it_is_saved_now(tmp_path, family, variant):
    model = model_of(family, variant)
    model.save_pretrained(tmp_path / "m")
    ours = opened(tmp_path / "m")
    compare(model, ours, pad=ours.config.pad_id)
    if ours.config.n_decoder_layers:
        compare_greedy(model, ours, n=1)


def test_folders_without_a_head(tmp_path):
    """Marian's names have no prefix then, and there is no bias; BERT gives its last vectors."""
    folder = saved(tiny(MarianModel, model_of("marian", "swish, scaled").config), tmp_path / "m", **MARIAN_IDS)
    ours = opened(folder)
    assert not ours.config.output_bias
    compare(MarianMTModel.from_pretrained(folder, attn_implementation="eager"), ours, pad=60)
    model = tiny(BertModel, model_of("bert", "tanh").config)
    compare(model, opened(saved(model, tmp_path / "bert")), pad=0)


def test_answers_to_what_a_folder_says_are_refused_and_what_is_not_carried_out_is_said(tmp_path):
    odd = {"guidance_scale": 3, "num_beams": 4, "odd_switch": 2}
    folder = saved(model_of("marian", "swish, scaled"), tmp_path / "m", **MARIAN_IDS, **odd)
    for name, value in (("source_language", "en"), ("eos_id", 0)):
        with pytest.raises(CheckpointError, match=f"{name}: the answer .*{value}.* is not needed.* remove the answer"):
            import_folder(folder, answers={name: value})
    notes = " ".join(import_folder(folder).report.notes)
    assert [name in notes for name in odd] == [True, False, True]


REFUSED = [
    ("marian", "scale_embedding", "yes"),
    ("marian", "bos_token_id", [1]),
    ("marian", "decoder_attention_heads", 3, r"n_decoder_heads: found 3, expected a divisor of 8"),
    ("bert", "is_decoder", True),
    ("bert", "position_embedding_type", "relative_key"),
    ("bert", "pruned_heads", {"0": [1]}),
    ("bert", "hidden_act", "gelu_10"),
    ("gpt2", "add_cross_attention", True),
    ("gpt2", "scale_attn_by_inverse_layer_idx", True),
    ("gpt2", "activation_function", "tanh"),
    ("gpt2", "window_of_mine", 3),
    ("gpt2", "vocab_size", 1_000_000, r"wte.* has 31 rows, expected 1000000"),
    ("gpt2", "quantization_config", {"bits": 4}),
    ("gpt2", "model_type", "bloom"),
    ("gpt2", "n_positions", 12, r"wpe.*\[16, 8\].*\[12, 8\]"),
    ("llama", "rope_scaling", {"rope_type": "longrope", "factor": 2.0}),
    ("llama", "rope_scaling", {"rope_type": "linear", "factor": 2.0, "odd": 1}),
    ("llama", "rope_scaling", {"rope_type": ["linear"]}),
    ("llama", "rope_scaling", [3]),
    ("llama", "rope_parameters", {"rope_type": "default", "partial_rotary_factor": 0.5}, "partial_rotary_factor"),
    ("llama", "num_local_experts", 8),
    ("mistral", "num_hidden_layers", 2_000_000_000),
    ("gemma2", "query_pre_attn_scalar", 0),
    ("qwen2", "layer_types", ["chunked_attention"] * 2),
    ("gemma", "use_bidirectional_attention", True),
    ("t5", "tie_word_embeddings", False),
]


def test_what_would_compute_something_else_is_refused_by_its_key(tmp_path):
    for family in dict.fromkeys(row[0] for row in REFUSED):
        folder = saved(model_of(family), tmp_path / family, eos_token_id=2)
        config = (folder / "config.json").read_text()
        for key, value, *message in (row[1:] for row in REFUSED if row[0] == family):
            change_config(folder, **{key: value})
            refusal(lambda folder=folder: import_folder(folder), message[0] if message else key)
            (folder / "config.json").write_text(config)


def test_tensors_that_contradict_the_config_are_refused(tmp_path):
    folder = saved(model_of("marian", "swish, scaled"), tmp_path / "m", **MARIAN_IDS)
    change(folder, extra={"model.encoder.embed_tokens.weight": torch.randn(61, 24)})
    refusal(lambda: import_folder(folder), r"encoder\.embed_tokens.*copy")
    folder = saved(model_of("t5"), tmp_path / "t5")
    name = "encoder.block.{}.layer.0.SelfAttention.relative_attention_bias.weight"
    change(folder, rename=lambda own: name.format(1) if own == name.format(0) else own)
    refusal(lambda: import_folder(folder), r"does not belong to the model .*'encoder\.block\.1\.layer\.0\.Self")


def test_one_of_two_tables_is_not_taken_for_both(tmp_path):
    """accelerate keeps one name of each shared tensor; its metadata may have been lost."""
    model = model_of("marian", "swish, scaled", share_encoder_decoder_embeddings=False, decoder_vocab_size=61)
    folder = saved(model, tmp_path / "m", **MARIAN_IDS)
    save_model(model, str(folder / "model.safetensors"))
    compare(model, opened(folder), pad=60)
    with safe_open(folder / "model.safetensors", "pt") as file:
        state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert "model.decoder.embed_tokens.weight" not in state
    save_file(state, folder / "model.safetensors")
    refusal(lambda: import_folder(folder), "share_encoder_decoder_embeddings: found False, expected true")


BEYOND = {  # whether generation_config.json says it, or config.json alone; what is said, and what answers it
    "llama": (True, {"bos_token_id": 99, "eos_token_id": [99, 98], "pad_token_id": 99}, {"eos_id": 3, "bos_id": 2}),
    "bart": (False, {"decoder_start_token_id": 99, "forced_eos_token_id": 99, "eos_token_id": 2},
             {"decoder_start_id": 2}),
    "t5": (True, {"eos_token_id": 10**6, "bad_words_ids": [[99], [3, 99]]}, {"eos_id": 1}),
}  # fmt: skip


@pytest.mark.parametrize("family", BEYOND)
def test_an_id_beyond_the_vocabulary_is_none(tmp_path, family):
    own, said, answers = BEYOND[family]
    folder = saved(model_of(family), tmp_path / "m", **(said if own else {}))
    if not own:
        (folder / "generation_config.json").unlink(missing_ok=True)
    change_config(folder, **said)
    report, first = import_folder(folder).report, next(iter(answers))
    assert [one.name for one in report.asked] == [first]
    assert "is beyond the vocabulary of" in str(report)
    config = import_folder(folder, answers=answers).content.config
    assert {name: getattr(config, name) for name in answers} == answers
    assert (config.forced_end_id, config.banned_sequences, config.further_eos_ids) == (None, (), ())
    refusal(lambda: import_folder(folder, answers=answers | {first: 99}), "found 99, expected 0 to")
