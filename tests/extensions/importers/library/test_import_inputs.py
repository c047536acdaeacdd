"""Tokenizers given with weights or lying beside them say what ids mean, and go into the folder that is written."""

import json
import shutil

import pytest
import tokenizers
import torch
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from glassformer.extensions.importers.library.import_inputs import ImportInputs, likely_ids
from glassformer.extensions.importers.library.opening import preview
from tests.extensions.importers.library.tutorial_models import IDS, PRE, Annotated, at_random, saved
from tests.extensions.refusing import refusal
from transformer.checkpoint import load as native
from transformer.checkpoint.opening import load
from transformer.checkpoint.save import save
from transformer.errors import QueryError
from transformer.text.tokenizer import Tokenizer

ANSWERS = {name: value for name, value in PRE.items() if name not in IDS}
LETTERS = [*"0123456789+=", "<pad>", "<s>", "</s>"]


def with_tables(path, *sizes):
    return saved(path, at_random(Annotated(vocabs=sizes)).state_dict())


def test_tokenizers_say_what_ids_mean(tmp_path, checkpoint_folder):
    source, target = checkpoint_folder / "source.model", checkpoint_folder / "target.model"
    sizes = Tokenizer(source.read_bytes()).size, Tokenizer(target.read_bytes()).size
    path = with_tables(tmp_path / "m.pt", *sizes)
    given = ImportInputs(source, target)
    report = preview(path, answers=ANSWERS, given=given).report
    assert [one.name for one in report.asked] == ["prepend_source_bos", "append_source_eos"]
    around = {"prepend_source_bos": True, "append_source_eos": True}
    checkpoint = load(path, answers=ANSWERS | around, given=given)
    ids = checkpoint.run("reads this").src_ids
    assert (ids[0], ids[-1]) == (checkpoint.config.bos_id, checkpoint.config.eos_id)
    for file in (source, target, path):
        (tmp_path / "all" / file.name).parent.mkdir(exist_ok=True)
        shutil.copy(file, tmp_path / "all" / file.name)
    assert load(tmp_path / "all", answers=ANSWERS | around) == checkpoint
    shutil.copy(target, tmp_path / "all" / "source.model")
    assert "source.model: has" in str(preview(tmp_path / "all").report)
    refusal(lambda: preview(path, given=ImportInputs(source)), "two embedding tables; give one tokenizer for each side")
    exchanged = ImportInputs(target, source)
    refusal(lambda: preview(path, given=exchanged), r"target.model: has .* tokens, but the embedding table")


def test_a_list_of_characters_opens_and_sums_are_typed_as_such(tmp_path):
    path = with_tables(tmp_path / "m.pt", 15, 15)
    (tmp_path / "vocab.txt").write_text("\n".join(LETTERS))
    given = ImportInputs(pieces=tmp_path / "vocab.txt")
    found = {one.name: one.value for one in preview(path, answers=ANSWERS, given=given).report.fields}
    assert [found.get(name) for name in ("pad_id", "bos_id", "eos_id", "unk_id")] == [12, 13, 14, None]
    around = ANSWERS | {"prepend_source_bos": False, "append_source_eos": True}
    checkpoint = load(path, answers=around, given=given)
    trace = checkpoint.run("5+10=")
    assert trace.src_tokens == ("5", "+", "1", "0", "=", "</s>")
    assert trace.output_text == "".join(piece for piece in trace.tgt_tokens if len(piece) == 1)
    with pytest.raises(QueryError, match="no token for '-'"):
        checkpoint.run("5-1")
    (tmp_path / "v.json").write_text(json.dumps({piece: i for i, piece in enumerate(LETTERS)}))
    given = ImportInputs(pieces=tmp_path / "v.json")
    assert load(path, answers=around, given=given).run("5+10=").tgt_ids == trace.tgt_ids
    save(preview(path, answers=around, given=given).parts, tmp_path / "ours")
    assert json.loads((tmp_path / "ours" / "vocabulary.json").read_text())["family"] == "list"
    assert native.load(tmp_path / "ours").run("5+10=").tgt_ids == trace.tgt_ids


def words_json(path, size):
    """A tokenizer.json of words, as a popular course has one a language."""
    special = ("[PAD]", "[UNK]", "[SOS]", "[EOS]")
    made = tokenizers.Tokenizer(
        WordLevel({word: i for i, word in enumerate((*special, *map("w{}".format, range(size - 4))))}, "[UNK]")
    )
    made.add_special_tokens(list(special))
    made.pre_tokenizer = Whitespace()
    made.save(str(path))
    return path


def test_a_tokenizer_json_for_each_side_is_kept_in_the_folder_that_is_written(tmp_path):
    given = ImportInputs(words_json(tmp_path / "en.json", 17), words_json(tmp_path / "it.json", 19))
    path = with_tables(tmp_path / "m.pt", 17, 19)
    answers = ANSWERS | {"prepend_source_bos": True, "append_source_eos": True}
    save(preview(path, answers=answers, given=given).parts, tmp_path / "ours", dtype=torch.float32)
    checkpoint = native.load(tmp_path / "ours")
    assert checkpoint.run("w3 w1 w99").src_ids == (2, 7, 5, 1, 3)
    assert (checkpoint.src_tokenizer.size, checkpoint.tgt_tokenizer.size) == (17, 19)
    assert checkpoint.run("w3").output_text == load(path, answers=answers, given=given).run("w3").output_text


def test_the_only_row_of_zeros_is_likely_padding():
    table = torch.ones(9, 2)
    table[7] = 0
    assert likely_ids("pad_id", 9, None, table)[0] == 7
    table[8] = 0
    assert likely_ids("pad_id", 9, None, table)[0] == likely_ids("pad_id", 9, None, None)[0] == 0


BESIDE = {
    "pieces.json": json.dumps({piece: i for i, piece in enumerate(LETTERS)}),
    "vocab.json": json.dumps(LETTERS),
    "vocab.txt": "\n".join(LETTERS),
}


@pytest.mark.parametrize("name", BESIDE)
def test_a_list_beside_the_weights_is_taken(tmp_path, name):
    path = with_tables(tmp_path / "m" / "m.pt", 15, 15)
    (path.parent / name).write_text(BESIDE[name])
    for source in (path, path.parent):
        report = preview(source, answers=ANSWERS).report
        assert report.pieces == (name,)
        assert "eos_id  14  read" in str(report)
        assert f"Tokenizer next to the weights: {name}." in str(report)


def test_files_of_any_name_are_taken_from_a_folder_if_only_they_fit(tmp_path):
    def taken(name, pieces):
        (folder / name).write_text("\n".join(pieces))
        return preview(folder, answers=ANSWERS).report

    folder = with_tables(tmp_path / "m" / "m.pt", 15, 12).parent
    (folder / "options.json").write_text('{"n_heads": 4}')
    taken("notes.txt", "abc")
    assert taken("letters-in.txt", LETTERS).pieces == ()  # of the other side nobody knows
    assert taken("letters-out.txt", LETTERS[3:]).pieces == ("letters-in.txt", "letters-out.txt")
    report = taken("again.txt", LETTERS)
    assert report.pieces == ()
    assert "again.txt, letters-in.txt, letters-out.txt. Give them" in str(report)
    folder = with_tables(tmp_path / "sides" / "m.pt", 15, 15).parent  # both fit both: the names say which is whose
    taken("my-src-letters.txt", LETTERS)
    assert taken("my-tgt-letters.txt", LETTERS).pieces == ("my-src-letters.txt", "my-tgt-letters.txt")
