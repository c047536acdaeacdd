"""A checkpoint folder keeps any family's tokenizer: written, read, run, replaced, and refused when damaged."""

import json
import re
import shutil

import pytest

from glassformer.extensions.tokenizers.options import Options
from glassformer.extensions.tokenizers.tokenizer_families import FILE_NAMES, VOCABULARY, Vocabularies
from tests.conftest import SOURCES, TARGETS
from tests.extensions.tokenizers import foreign
from tests.extensions.tokenizers.test_tokenizers_library import content_of
from tests.transformer.learned_pieces import learn_pieces
from tests.transformer.spoiling import refused
from tests.transformer.tiny import tiny_model
from transformer.checkpoint.listing import listing as list_checkpoints
from transformer.checkpoint.load import load
from transformer.checkpoint.save import CheckpointContents, save
from transformer.errors import QueryError

NLLB = {"source_language": "eng_Latn", "target_language": "fra_Latn"}
STORED = {
    "marian": lambda: Vocabularies("marian", Options(), foreign.marian()),
    "marian for each side": lambda: Vocabularies("marian", Options(), foreign.marian(separate=True)),
    "t5": lambda: Vocabularies("t5", Options(size=400), foreign.t5()),
    "nllb": lambda: Vocabularies("nllb", Options(legacy=True, **NLLB), foreign.fairseq(kind="bpe")),
    "gpt2": lambda: Vocabularies("gpt2", Options(), foreign.byte_pairs()),
    "bert": lambda: Vocabularies("bert", Options(lower_case=False), foreign.word_pieces()),
    "json": lambda: Vocabularies("json", Options(), {"tokenizer.json": content_of("bytes")}),
    "raw": lambda: Vocabularies("raw", Options(size=30, special_ids=(0, 1)), {}),
    "raw for each side": lambda: Vocabularies("raw", Options(size=30, target_size=40), {}),
}


def written(name, folder):
    """A tiny model with such a tokenizer."""
    stored = STORED[name]()
    src, tgt = stored.open()
    shared = "each side" not in name
    sizes = {"src_vocab_size": src.size, "tgt_vocab_size": tgt.size, "shared_vocab": shared, "max_len": 64}
    model = tiny_model(**sizes)
    save(CheckpointContents(model.config, model.state_dict(), stored, {"title": name}), folder)
    return stored


@pytest.mark.parametrize("name", STORED)
def test_what_is_saved_can_be_loaded_and_run(name, tmp_path):
    stored = written(name, tmp_path / "spoilt")
    checkpoint = load(tmp_path / "spoilt")
    texts = ["12 7 5"] if name.startswith("raw") else foreign.strings(50)
    for mine, found in zip(stored.open(), (checkpoint.src_tokenizer, checkpoint.tgt_tokenizer), strict=True):
        assert found.pieces == mine.pieces
        assert found.wrapping == mine.wrapping
        assert [found.encode(text) for text in texts] == [mine.encode(text) for text in texts]
    trace = checkpoint.run(texts[0])
    assert trace.output_text == checkpoint.tgt_tokenizer.decode(trace.tgt_ids)
    assert trace.vocabulary == checkpoint.tgt_tokenizer.pieces
    (entry,) = list_checkpoints([tmp_path])
    assert entry.error is None
    names = {file.name for file in (tmp_path / "spoilt").iterdir()}
    assert names == {"config.json", "model.safetensors", "card.json", VOCABULARY, *stored.files}
    card = json.loads((tmp_path / "spoilt" / "card.json").read_text(encoding="utf-8"))
    assert card["sha256"].keys() == names - {"card.json"}


def test_the_hash_of_the_content_knows_what_was_chosen(tmp_path):
    written("nllb", tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    record = json.loads((tmp_path / "two" / VOCABULARY).read_text(encoding="utf-8"))
    record["options"]["target_language"] = "deu_Latn"
    (tmp_path / "two" / VOCABULARY).write_text(json.dumps(record), encoding="utf-8")
    assert load(tmp_path / "one") != load(tmp_path / "two")


def test_raw_ids_say_so_and_what_is_no_id_is_refused(tmp_path):
    written("raw", tmp_path / "numbers")
    checkpoint = load(tmp_path / "numbers")
    trace = checkpoint.run("12 7 5")
    assert trace.src_tokens[:3] == ("12", "7", "5")
    assert any("has no tokenizer, so its tokens are the row numbers" in note for note in trace.notes)
    found = checkpoint.src_tokenizer.encode("12 7, 5 fox 20 -1 03")
    assert (found.ids, found.unread) == ((12, 7, 5, 20), ("fox", "-1", "03"))
    assert checkpoint.src_tokenizer.decode((1, 12, 7, 0)) == "12 7"
    assert re.fullmatch(r"[\d ]*", trace.output_text)
    for text in ("hello", "12 30", "1 -2"):
        with pytest.raises(QueryError, match=r"reads only ids from 0 to 29, not '.*Type numbers"):
            checkpoint.run(text)


def test_the_target_of_a_marian_model_is_split_by_its_own_pieces(tmp_path):
    written("marian", tmp_path / "marian")
    checkpoint = load(tmp_path / "marian")
    assert checkpoint.config.shared_vocab
    assert checkpoint.src_tokenizer is not checkpoint.tgt_tokenizer
    assert checkpoint.src_tokenizer.pieces == checkpoint.tgt_tokenizer.pieces
    assert len(set(checkpoint.warnings)) == len(checkpoint.warnings)
    assert all("but in vocab.json that id belongs to the token" in warning for warning in checkpoint.warnings)


def test_the_old_tokenizer_goes_with_its_checkpoint_and_nothing_else_does(tmp_path):
    folder = tmp_path / "spoilt"
    written("gpt2", folder)
    (folder / "NOTES.md").write_text("mine", encoding="utf-8")
    written("bert", folder)
    names = {file.name for file in folder.iterdir()}
    assert names == {"config.json", "model.safetensors", "card.json", VOCABULARY, "vocab.txt", "NOTES.md"}
    pieces = learn_pieces([*SOURCES, *TARGETS], size=48)
    size = len(foreign.pieces_of(pieces))
    model = tiny_model(src_vocab_size=size, tgt_vocab_size=size, shared_vocab=True)
    parts = CheckpointContents(model.config, model.state_dict(), (pieces,), {})
    save(parts, folder)
    assert load(folder).src_tokenizer.size == size
    assert not FILE_NAMES & {file.name for file in folder.iterdir()}
    (folder / "vocab.json").write_text("{}", encoding="utf-8")  # somebody else's: no part of this checkpoint
    save(parts, folder)
    assert (folder / "vocab.json").read_text(encoding="utf-8") == "{}"


DAMAGED = [
    (VOCABULARY, b" " * 4_000_001, "vocabulary.json: has 4,000,001 bytes; the limit is 4,000,000"),
    (VOCABULARY, b'{"family": "json"}', "tokenizer.json: is missing"),
    (VOCABULARY, b'{"family": "raw"}', "size: is missing; for a model without a tokenizer"),
    (VOCABULARY, b'{"family": "gpt2", "options": {"size": 7}}', "the model's embedding table has only 7 rows"),
    (VOCABULARY, b'{"family": "gpt2", "options": {"size": 900}}', "900 tokens in vocab.json. All three must be"),
    ("vocab.json", b"x" * 16_000_001, "vocab.json: has 16,000,001 bytes; the limit is 16,000,000"),
    ("merges.txt", b"a b c\n", "merges.txt: line 1 is 'a b c'"),
]


def test_damaged_folders(tmp_path):
    folder = tmp_path / "spoilt"
    written("gpt2", folder)
    assert list_checkpoints([tmp_path])[0].error is None
    for file, content, message in DAMAGED:
        whole = (folder / file).read_bytes()
        (folder / file).write_bytes(content)
        refused(folder, message)
        (folder / file).write_bytes(whole)
    (folder / "merges.txt").unlink()
    refused(folder, "merges.txt: is missing")
    assert "merges.txt: is missing" in list_checkpoints([tmp_path])[0].error  # a listed folder is looked at again


@pytest.mark.parametrize("outside", ["vocab.json", VOCABULARY])
def test_a_link_that_leaves_the_folder_is_not_followed(outside, tmp_path):
    written("gpt2", tmp_path / "spoilt")
    (tmp_path / "spoilt" / outside).rename(tmp_path / outside)
    (tmp_path / "spoilt" / outside).symlink_to(tmp_path / outside)
    refused(tmp_path / "spoilt", f"{outside}: is a link that points outside the folder")


def test_a_larger_tokenizer_json_is_read_than_any_other_file(tmp_path):
    written("json", tmp_path / "spoilt")
    file = tmp_path / "spoilt" / "tokenizer.json"
    content = file.read_bytes()
    file.write_bytes(content + b" " * 16_000_001)
    assert load(tmp_path / "spoilt").src_tokenizer.size
    file.write_bytes(content + b" " * 40_000_001)
    refused(tmp_path / "spoilt", "the limit is 40,000,000")
