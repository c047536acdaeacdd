"""Marian, BART, mBART, Pegasus and M2M100 folders: what their config says, other ways to save them, and refusals."""

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file, save_model
from transformers import MarianModel, MarianMTModel

from glassformer.extensions.huggingface.library.folder import import_folder
from tests.extensions.huggingface.library.parity import (
    change,
    change_config,
    compare,
    compare_greedy,
    opened,
    saved,
    tiny,
)
from tests.extensions.huggingface.library.tiny_families import model_of
from tests.extensions.tokenizers import foreign
from transformer.errors import CheckpointError
from transformer.model.positions import halves_table

MARIAN_IDS = {"pad_token_id": 60, "eos_token_id": 0, "decoder_start_token_id": 60}
FAIRSEQ_IDS = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}


def marian(**changes):
    return model_of("marian", "swish, scaled", **changes)


def test_marian_as_it_is_saved_now(tmp_path):
    model = marian()
    ours = opened(saved(model, tmp_path / "m", **MARIAN_IDS, bad_words_ids=[[60], [7]]))
    assert (ours.config.sinusoid_layout, ours.config.output_bias, ours.config.activation) == ("halves", True, "silu")
    assert ours.config.banned_ids == (7,)
    compare(model, ours, pad=60)
    compare_greedy(model, ours, forced_eos_token_id=None, bad_words_ids=[[60], [7]], **MARIAN_IDS)


def test_marian_with_rounded_sinusoids(tmp_path):
    """Copies of the table, tables of sinusoids, 16 bits, two files, a config of version 4 with generation in it."""
    folder = saved(marian(), tmp_path / "m")
    (folder / "generation_config.json").unlink()
    table = halves_table(48, 24)
    extra = {f"model.{stack}.embed_positions.weight": table.half() for stack in ("encoder", "decoder")}
    old = {"num_hidden_layers": 2, "normalize_before": False, "bad_words_ids": [[60]], "num_beams": 6,
           "max_length": 512,
           "id2label": {"0": "x"}, "static_position_embeddings": True, "_num_labels": 3}  # fmt: skip
    change(folder, dtype=torch.float16, extra=extra, shards=2, config=old,
           drop=("dtype", "tie_word_embeddings", "decoder_vocab_size", "forced_eos_token_id"))  # fmt: skip
    theirs = MarianMTModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    ours = opened(folder)
    assert ours.config.positions == "learned"
    compare(theirs, ours, pad=60)


def test_marian_with_a_vocabulary_for_each_side(tmp_path):
    model = marian(share_encoder_decoder_embeddings=False, decoder_vocab_size=53, **{
        "pad_token_id": 52, "decoder_start_token_id": 52})  # fmt: skip
    ours = opened(saved(model, tmp_path / "m"))
    assert (ours.config.shared_vocab, ours.config.src_vocab_size, ours.config.tgt_vocab_size) == (False, 61, 53)
    compare(model, ours, pad=52)


def test_marian_without_its_head(tmp_path):
    """The names have no prefix then, and there is no bias."""
    folder = saved(tiny(MarianModel, marian().config), tmp_path / "m", **MARIAN_IDS)
    ours = opened(folder)
    assert not ours.config.output_bias
    compare(MarianMTModel.from_pretrained(folder, attn_implementation="eager"), ours, pad=60)


def test_marian_with_its_tokenizer(tmp_path):
    """Text is split as its own library splits it, and ends with the end piece; the model is run by text."""
    files = foreign.marian()
    size = len(json.loads(files["vocab.json"]))
    ids = {"pad_token_id": size - 1, "eos_token_id": 0, "decoder_start_token_id": size - 1}
    folder = saved(marian(vocab_size=size, decoder_vocab_size=size, **ids), tmp_path / "m", **ids)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    ours = opened(folder)
    trace = ours.run("The quick brown fox.")
    assert ours.config.append_source_eos
    assert trace.src_pieces[-1] == "</s>"
    assert trace.src_ids[-1] == 0
    assert ours.config.unk_id == 1


def test_a_piece_that_comes_first_is_said(tmp_path):
    assert opened(saved(model_of("bart", "gelu"), tmp_path / "m", forced_bos_token_id=5)).config.forced_ids == (5,)


@pytest.mark.parametrize("family", ["marian", "bart", "mbart", "pegasus", "m2m_100"])
def test_a_decoder_with_heads_and_widths_of_its_own(tmp_path, family):
    ours = opened(saved(model_of(family, "own decoder"), tmp_path / "m", eos_token_id=2))
    encoder, decoder = ours.config.of("encoder"), ours.config.of("decoder")
    assert (encoder.n_heads, encoder.d_head, encoder.d_ff) == (4, 6, 40)
    assert (decoder.n_heads, decoder.d_head, decoder.d_ff) == (2, 12, 28)
    assert ours.config.count_parameters() == sum(one.numel() for one in ours.model.parameters())


def test_heads_that_do_not_fit_the_width_are_refused(tmp_path):
    folder = saved(marian(), tmp_path / "m", **MARIAN_IDS)
    change_config(folder, decoder_attention_heads=5)
    with pytest.raises(CheckpointError, match=r"n_decoder_heads: found 5, expected a divisor of 24"):
        import_folder(folder)


def test_marian_as_most_of_the_hub_has_it(tmp_path):
    """Weights in a file of torch.save, which a process of its own opens."""
    model = marian()
    folder = saved(model, tmp_path / "m", **MARIAN_IDS)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    compare(model, opened(folder), pad=60)


def test_where_a_field_was_found_is_said(tmp_path):
    report = import_folder(saved(marian(), tmp_path / "m", eos_token_id=0)).report
    found = {one.name: str(one.evidence) for one in report.fields}
    assert found["d_model"] == "d_model in config.json"
    assert found["eos_id"] == "eos_token_id in generation_config.json"
    assert found["pad_id"] == "pad_token_id in config.json"
    rows = {name: (fate, how) for name, _, fate, how in report.rows()}
    assert rows["model.shared.weight"] == ("becomes src_table", "")


def test_languages_are_asked(tmp_path):
    files = foreign.fairseq()
    folder = saved(model_of("mbart", vocab_size=260), tmp_path / "m", **FAIRSEQ_IDS)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    asked = import_folder(folder)
    assert asked.parts is None
    assert [one.name for one in asked.report.asked] == ["source_language", "target_language"]
    ours = opened(folder, source_language="en_XX", target_language="ro_RO")
    piece = ours.tgt_tokenizer.piece(ours.config.forced_ids[0])
    assert (piece, ours.run("The fox").src_pieces[0]) == ("ro_RO", "en_XX")


def test_a_list_of_languages_that_is_not_known_is_refused(tmp_path):
    folder = saved(model_of("m2m_100"), tmp_path / "m", **FAIRSEQ_IDS)
    said = json.dumps({"tokenizer_class": "M2M100Tokenizer", "language_codes": "wmt21"}).encode()
    for name, content in {**foreign.m2m100(), "tokenizer_config.json": said}.items():
        (folder / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=r"language_codes: found 'wmt21', expected m2m100"):
        import_folder(folder)


@pytest.mark.parametrize(("name", "value"), [("source_language", "en"), ("eos_id", 0)])
def test_an_answer_to_what_the_folder_says_is_refused(tmp_path, name, value):
    folder = saved(marian(), tmp_path / "m", **MARIAN_IDS)
    with pytest.raises(CheckpointError, match=f"{name}: the answer .*{value}.* is not needed.* remove the answer"):
        import_folder(folder, answers={name: value})


def test_what_is_not_carried_out_is_said(tmp_path):
    folder = saved(marian(), tmp_path / "m", **MARIAN_IDS, guidance_scale=3, num_beams=4, odd_switch=2)
    notes = " ".join(import_folder(folder).report.notes)
    assert "guidance_scale" in notes
    assert "odd_switch" in notes
    assert "num_beams" not in notes


@pytest.mark.parametrize(
    ("key", "value"), [("scale_embedding", "yes"), ("d_model", None), ("bos_token_id", [1]), ("is_decoder", True)]
)
def test_what_would_compute_something_else_is_refused(tmp_path, key, value):
    folder = saved(marian(), tmp_path / "m", **MARIAN_IDS)
    change_config(folder, **{key: value})
    with pytest.raises(CheckpointError, match=key):
        import_folder(folder)


def test_a_copy_that_is_none_is_refused(tmp_path):
    folder = saved(marian(), tmp_path / "m", **MARIAN_IDS)
    change(folder, extra={"model.encoder.embed_tokens.weight": torch.randn(61, 24)})
    with pytest.raises(CheckpointError, match=r"encoder\.embed_tokens.*copy"):
        import_folder(folder)


def test_one_of_two_tables_is_not_taken_for_both(tmp_path):
    """accelerate keeps one name of each shared tensor; its metadata may have been lost."""
    model = marian(share_encoder_decoder_embeddings=False, decoder_vocab_size=61)
    folder = saved(model, tmp_path / "m", **MARIAN_IDS)
    save_model(model, str(folder / "model.safetensors"))
    compare(model, opened(folder), pad=60)
    with safe_open(folder / "model.safetensors", "pt") as file:
        state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert "model.encoder.embed_tokens.weight" in state
    assert "model.decoder.embed_tokens.weight" not in state
    save_file(state, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match="share_encoder_decoder_embeddings: found False, expected true"):
        import_folder(folder)
