"""`prepare` and `task` account for every line, write the same bytes each time, and replace nothing else."""

import csv
import hashlib
import json
import re
import zipfile
from collections import Counter

import numpy as np
import pytest

from glassformer.extensions.training.library.cleaning import CleaningRules
from glassformer.extensions.training.library.preparation import TASKS, WRITTEN, Preparation, prepare, write_task
from tests.extensions.training.library.training_jobs import stored
from transformer.__main__ import main
from transformer.checkpoint.load import load
from transformer.errors import DataError
from transformer.runs.sentence_files import read_pairs

WHO = "CC-BY 2.0 (France) Attribution: tatoeba.org #{} (CM) & #{} (Roujin)"
SUBJECTS = ("the fox", "a small fox", "the red moon", "a lake", "the old sailor", "her cat", "my friend", "the king")
VERBS = ("sees", "likes", "finds", "forgets", "paints", "follows", "hears", "loses")
OBJECTS = ("the lake", "a red moon", "the small house", "a book", "the sea")


def export():
    """Made-up lines as manythings.org/anki writes them: 320 sentences, some with a second translation."""
    sentences = [f"{a} {verb} {b}".capitalize() + "." for a in SUBJECTS for verb in VERBS for b in OBJECTS]
    lines = []
    for number, english in enumerate(sentences):
        other = f"{english.lower()[-2::-1]} {number}!"  # the letters backwards
        lines.append(f"{english}\t{other}\t{WHO.format(number, number + 9_000)}")
        if number % 10 == 0:
            lines.append(f"{english.upper()}\t{other} ha\t{WHO.format(number, number + 8_000)}")
    return lines


@pytest.fixture
def text(tmp_path):
    """An export with a few bad lines among the good ones."""
    lines = export()
    lines[5:5] = [lines[3], "alone", "", "Go.\t<b>ba</b>\tx", "Ta.\tTa.\tx"]
    path = tmp_path / "bal.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    return path


def prepared(text, name="data", **changes):
    """The report of a preparation into the folder of this name beside the text."""
    return prepare(Preparation(**({"files": [text], "out": text.parent / name, "dev": 20, "test": 30} | changes)))


def everything(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def of_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_an_export_becomes_files_that_training_reads_and_a_report_of_every_line(text):
    report, out = prepared(text), text.parent / "data"
    assert of_json(out / "report.json") == report
    assert {reason: found["lines"] for reason, found in report["dropped"].items()} == dict.fromkeys(
        ("the same pair again", "not two or three columns", "blank line", "markup such as <b> or &amp;",
         "both sides the same"), 1)  # fmt: skip
    assert report["read"] == report["kept"] + 5 == sum(report["splits"].values()) + 5
    assert report["dropped"]["not two or three columns"]["examples"] == [{"line": 7, "text": "alone"}]
    assert report["with_attribution"] == report["kept"]
    assert report["groups"]["groups"] == 320
    assert sorted(everything(out)) == sorted(WRITTEN)
    parts = {name: read_pairs(out / f"{name}.tsv") for name in ("train", "dev", "test")}
    assert {name: len(pairs) for name, pairs in parts.items()} == report["splits"]
    assert (len(parts["dev"]), len(parts["test"])) == (20, 30)
    good = [tuple(line.split("\t")[:2]) for line in export()]
    assert sorted(pair for pairs in parts.values() for pair in pairs) == sorted(good)
    lines = text.read_text(encoding="utf-8").split("\n")
    for name, pairs in parts.items():
        rows = (out / f"{name}.attribution.tsv").read_text(encoding="utf-8").splitlines()
        for pair, row in zip(pairs, rows, strict=True):
            number, who = row.split("\t")
            assert lines[int(number) - 1].split("\t") == [*pair, who]


def test_the_same_call_writes_the_same_bytes_and_a_zip_and_aligned_files_give_the_same_pairs(text, tmp_path):
    packed, files = tmp_path / "bal-eng.zip", [tmp_path / "a.en", tmp_path / "a.ba"]
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(text, "bal.txt")
        archive.writestr("_about.txt", "About these pairs.\n")
    for file, side in zip(files, zip(*(line.split("\t")[:2] for line in export()), strict=True), strict=True):
        file.write_text("\n".join(side), encoding="utf-8")
    prepared(text)
    prepared(text, "again")
    prepared(text, "other", rules=CleaningRules(seed=2))
    prepared(text, "unpacked", files=[packed])
    prepared(text, "aligned", files=files)
    first, again, other, unpacked, aligned = (
        everything(tmp_path / name) for name in ("data", "again", "other", "unpacked", "aligned")
    )
    assert again == first
    assert other["dev.tsv"] != first["dev.tsv"]
    whole = b"".join(first.values())
    assert not [part for part in (b"\r", str(tmp_path).encode()) if part in whole]
    for name in ("train.tsv", "dev.tsv", "test.tsv"):
        assert unpacked[name] == aligned[name] == first[name]
    assert not [name for name in aligned if "attribution" in name]
    assert json.loads(aligned["card.json"])["licence"] == ""


def test_a_folder_with_files_is_kept_unless_forced(text):
    out = text.parent / "data"
    prepared(text)
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    before = everything(out)
    for changes, message in (
        ({"test": 0}, "already contains files; choose another folder, or use --force"),
        ({"files": [out / "train.tsv"], "force": True}, r"train.tsv: would be overwritten"),
    ):
        with pytest.raises(DataError, match=message):
            prepared(text, **changes)
    assert everything(out) == before
    prepared(text, test=0, force=True)
    assert sorted(everything(out)) == sorted({*WRITTEN, "notes.txt"} - {"test.tsv", "test.attribution.tsv"})


def test_files_that_prepare_did_not_write_are_never_replaced_or_removed(text):
    for name in ("train.tsv", "report.json", "test.tsv"):
        out = text.parent / name.partition(".")[0]
        out.mkdir()
        if name == "test.tsv":  # among files that it wrote
            prepared(text, out=out, test=0)
        (out / name).write_text("mine", encoding="utf-8")
        before = everything(out)
        for test in (0, 30):
            with pytest.raises(DataError, match=f"{name}: was not written by prepare"):
                prepared(text, out=out, force=True, test=test)
            assert everything(out) == before


def test_what_cannot_be_made_leaves_nothing_behind(text):
    for changes, message in (
        ({"dev": 5_000}, "at most"),
        ({"dev": -1}, "--dev is -1; expected at least 0"),
        ({"out": text}, "is a file; --out must be the folder"),
    ):
        with pytest.raises(DataError, match=message):
            prepared(text, **changes)
        assert not (text.parent / "data").exists()


def test_the_command_tells_what_it_did(text, capsys):
    out = text.parent / "data"
    arguments = ["prepare", str(text), "--out", str(out), "--dev", "20", "--test", "30", "--simplified", "source"]
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert "357 lines of bal.txt" in told
    assert re.search(r"1 blank line\n +line 8: ''", told)
    assert "352 pairs kept, 352 with attribution" in told
    assert told.endswith(" --normalisation nfc simplified-chinese --out runs/own/data\n")
    assert main(arguments) == 2
    assert "--force" in capsys.readouterr().err
    assert main([*arguments, "--force", "--dev", "0"]) == 0
    assert "train needs a dev file" in capsys.readouterr().out
    with text.open("a", encoding="utf-8") as file:  # a licence is not guessed from some of the lines
        file.write("A line of somebody.\tba ba lo lo mi.\tAll rights reserved.\n")
    prepared(text, card={"data": "My own."}, force=True)
    card = of_json(out / "card.json")
    assert (card["licence"], card["data"]) == ("", "My own.")


def test_from_text_to_a_checkpoint_that_names_its_sources(text, capsys):
    data, out = text.parent / "data", text.parent / "runs" / "bal-en"
    names = ["--title", "Ba-lo to English", "--source-language", "Ba-lo", "--target-language", "English"]
    assert main(["prepare", str(text), "--swap", f"--out={data}", "--dev=10", "--test=10", *names]) == 0
    files = [f"--train={data / 'train.tsv'}", f"--dev={data / 'dev.tsv'}", f"--card={data / 'card.json'}"]
    model = "--layers=1 --d-model=16 --heads=2 --d-ff=32 --src-vocab=60 --tgt-vocab=60 --max-len=64 --epochs=1"
    capsys.readouterr()
    assert main(["train", *files, f"--out={out}", *model.split(), "--device=cpu", "--no-causal-mask"]) == 0
    assert "epoch 1: loss" in capsys.readouterr().out
    assert stored(out)["job"]["causal_mask"] == "False"
    assert str(text.parent) not in (out / "card.json").read_text(encoding="utf-8")
    checkpoint = load(out)
    card, prepared_from = checkpoint.card, checkpoint.card.other["prepared"]
    assert checkpoint.warnings == ()
    assert (checkpoint.config.n_encoder_layers, checkpoint.config.d_model) == (1, 16)
    assert (card.title, card.source_language, card.licence) == ("Ba-lo to English", "Ba-lo", "CC-BY 2.0 FR (Tatoeba)")
    assert "Tatoeba" in card.data
    assert (prepared_from["files"][0]["file"], prepared_from["splits"]["dev"]) == ("bal.txt", 10)
    assert isinstance(checkpoint.run("ekal 3!").output_text, str)
    with (out / "training.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 1


def rows_of(folder, part):
    return [row.split("\t") for row in (folder / f"{part}.tsv").read_text().splitlines()]


def summed(given):
    numbers = given.removesuffix("=").split("+")
    assert all(number == str(int(number)) and len(number) <= 3 for number in numbers)
    return str(sum(map(int, numbers)))


SOLVED = {
    "reverse": lambda given: given[::-1],
    "sort": lambda given: "".join(sorted(given)),
    "copy": lambda given: given,
    "addition": summed,
    "noise": TASKS["noise"].solve,  # the same for the same row, and else without any rule
}


@pytest.mark.parametrize("name", TASKS)
def test_nothing_is_given_twice_what_is_wanted_is_right_and_dev_has_every_length(name, tmp_path):
    sizes = {"train": 3_000, "dev": 50, "test": 70}
    write_task(name, tmp_path, **sizes)
    parts = {part: rows_of(tmp_path, part) for part in sizes}
    assert {part: len(rows) for part, rows in parts.items()} == sizes
    rows = [row for part in parts.values() for row in part]
    assert len({row[0] for row in rows}) == len(rows)
    for given, *wanted in rows:
        if name == "palindrome":
            assert given.isascii()
            assert given.isalpha()
            assert given == given[::-1]
            assert len(given) in (4, 6, 8, 10, 12)
        else:
            assert wanted == [SOLVED[name](given)]
    found = {len(row[0]) for row in parts["dev"]}
    expected = {"addition": range(4, 9), "palindrome": range(4, 13, 2)}.get(name, range(2, 13))
    assert len(found & {*expected}) >= len(expected) - 2


def test_noise_is_uniform_over_its_pieces_and_no_source_tells_anything_of_it(tmp_path):
    """Its entropy is that of the line which the page draws, but for the first piece, which cannot be the end."""
    write_task("noise", tmp_path, train=9_000)
    rows = rows_of(tmp_path, "train")
    later = Counter(piece for _, target in rows for piece in f"{target}."[1:])
    n = sum(later.values())
    assert sorted(later) == sorted("abcdefgh.")
    assert sum((count - n / 9) ** 2 / (n / 9) for count in later.values()) < 27  # chi squared of 8: 26 is 1 in 1,000
    same = np.mean([source[0] == target[0] for source, target in rows])
    assert same == pytest.approx(1 / 8, abs=0.015)


def test_lengths_are_as_asked_for_and_what_cannot_be_drawn_is_a_sentence(tmp_path):
    for name, given, length in (("copy", 36, len), ("addition", 6, lambda row: max(map(len, row[:-1].split("+"))))):
        assert main(["task", name, "--out", str(tmp_path / name), "--longest", str(given), "--train", "1"]) == 0
        assert max(length(row[0]) for row in rows_of(tmp_path / name, "test")) == given
    for name, changes, said in (
        (
            "sort",
            {"longest": 2, "train": 1_500},
            r"--longest 2: only 676 different lines of 3,000 could be drawn; raise it",
        ),
        ("palindrome", {"longest": 3}, "--longest is 3; expected at least 4"),
        ("palindrome", {"train": 0}, "--train is 0"),
    ):
        with pytest.raises(DataError, match=said):
            write_task(name, tmp_path / "none", **changes)


def test_the_command_writes_what_the_shipped_checkpoints_learned_from(tmp_path):
    expected = {
        "reverse": "8b1c2ff65e7c46436cd9b4316c0ade819f7a4040af87d07c406c4460b6697d79",
        "addition": "7054a2c9471c279560c6adf66f2f586cb57db4512da35d52bbe6939208fa39bd",
        "palindrome": "09160535fae0e8ffe76740b7b51acf96eeeb6740d3175f2f3dc0e8142998b789",
    }
    for name, sha256 in expected.items():
        assert main(["task", name, "--out", str(tmp_path / name)]) == 0
        assert hashlib.sha256((tmp_path / name / "train.tsv").read_bytes()).hexdigest() == sha256, name


def test_other_files_of_these_names_are_kept_and_equal_ones_are_no_harm(tmp_path, capsys):
    sizes, dev = {"train": 10, "dev": 2, "test": 2}, tmp_path / "dev.tsv"
    for _ in range(2):
        write_task("sort", tmp_path, **sizes)
    (tmp_path / "train.tsv").unlink()
    dev.write_text("mine\n")
    with pytest.raises(DataError, match="already exists with different content"):
        write_task("sort", tmp_path, **sizes)
    assert not (tmp_path / "train.tsv").exists()
    for out in (dev, dev / "below"):
        assert main(["task", "reverse", "--out", str(out)]) == 2
        error = capsys.readouterr().err
        assert "cannot be written" in error.strip().splitlines()[-1]
        assert "Traceback" not in error
    assert dev.read_text() == "mine\n"
