"""`prepare` accounts for every line, writes the same bytes each time, and replaces nothing that is not its own."""

import csv
import json
import re
import zipfile

import pytest

from glassformer.extensions.training.library.cleaning import CleaningRules
from glassformer.extensions.training.library.preparation import WRITTEN, Preparation, prepare
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


def job(text, **changes):
    return Preparation(**({"files": [text], "out": text.parent / "data", "dev": 20, "test": 30} | changes))


def everything(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_an_export_becomes_files_that_training_reads_and_a_report_of_every_line(text):
    report = prepare(job(text))
    assert json.loads((text.parent / "data" / "report.json").read_text(encoding="utf-8")) == report
    check_report(report)
    lines = text.read_text(encoding="utf-8").split("\n")
    out = text.parent / "data"
    assert sorted(everything(out)) == sorted(WRITTEN)
    parts = {name: read_pairs(out / f"{name}.tsv") for name in ("train", "dev", "test")}
    assert {name: len(pairs) for name, pairs in parts.items()} == report["splits"]
    assert (len(parts["dev"]), len(parts["test"])) == (20, 30)
    good = [tuple(line.split("\t")[:2]) for line in export()]
    assert sorted(pair for pairs in parts.values() for pair in pairs) == sorted(good)
    for name, pairs in parts.items():
        rows = (out / f"{name}.attribution.tsv").read_text(encoding="utf-8").splitlines()
        for pair, row in zip(pairs, rows, strict=True):
            number, who = row.split("\t")
            assert lines[int(number) - 1].split("\t") == [*pair, who]


def check_report(report):
    assert {reason: found["lines"] for reason, found in report["dropped"].items()} == {
        "the same pair again": 1,
        "not two or three columns": 1,
        "blank line": 1,
        "markup such as <b> or &amp;": 1,
        "both sides the same": 1,
    }
    assert report["read"] == report["kept"] + 5 == sum(report["splits"].values()) + 5
    assert report["dropped"]["not two or three columns"]["examples"] == [{"line": 7, "text": "alone"}]
    assert report["with_attribution"] == report["kept"]
    assert report["groups"]["groups"] == 320


def test_the_same_call_writes_the_same_bytes(text):
    prepare(job(text))
    first = everything(text.parent / "data")
    prepare(job(text, out=text.parent / "again"))
    assert everything(text.parent / "again") == first
    prepare(job(text, out=text.parent / "other", rules=CleaningRules(seed=2)))
    assert everything(text.parent / "other")["dev.tsv"] != first["dev.tsv"]
    assert b"\r" not in b"".join(first.values())
    assert str(text.parent).encode() not in b"".join(first.values())


def test_a_zip_and_aligned_files_give_the_same_pairs(text, tmp_path):
    prepare(job(text))
    packed = tmp_path / "bal-eng.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(text, "bal.txt")
        archive.writestr("_about.txt", "About these pairs.\n")
    prepare(job(packed, out=tmp_path / "unpacked"))
    sides = list(zip(*(line.split("\t")[:2] for line in export()), strict=True))
    files = [tmp_path / "a.en", tmp_path / "a.ba"]
    for file, side in zip(files, sides, strict=True):
        file.write_text("\n".join(side), encoding="utf-8")
    prepare(job(text, files=files, out=tmp_path / "aligned"))
    for name in ("train.tsv", "dev.tsv", "test.tsv"):
        expected = (tmp_path / "data" / name).read_bytes()
        assert (tmp_path / "unpacked" / name).read_bytes() == expected
        assert (tmp_path / "aligned" / name).read_bytes() == expected
    assert not list((tmp_path / "aligned").glob("*attribution*"))
    assert json.loads((tmp_path / "aligned" / "card.json").read_text(encoding="utf-8"))["licence"] == ""


def test_a_folder_with_files_is_kept_unless_forced(text):
    out = text.parent / "data"
    prepare(job(text))
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    before = everything(out)
    with pytest.raises(DataError, match="already contains files; choose another folder, or use --force"):
        prepare(job(text, test=0))
    with pytest.raises(DataError, match=r"train.tsv: would be overwritten"):
        prepare(job(out / "train.tsv", out=out, force=True))
    assert everything(out) == before
    prepare(job(text, test=0, force=True))
    assert sorted(everything(out)) == sorted({*WRITTEN, "notes.txt"} - {"test.tsv", "test.attribution.tsv"})


@pytest.mark.parametrize("name", ["train.tsv", "report.json"])
def test_files_that_prepare_did_not_write_are_never_replaced_or_removed(text, name):
    alone, out = text.parent / "alone", text.parent / "data"
    alone.mkdir()
    (alone / name).write_text("mine", encoding="utf-8")
    for test in (0, 30):
        with pytest.raises(DataError, match=f"{name}: was not written by prepare"):
            prepare(job(text, out=alone, force=True, test=test))
        assert everything(alone) == {name: b"mine"}
    prepare(job(text, test=0))
    (out / "test.tsv").write_text("mine", encoding="utf-8")
    for test in (0, 30):
        with pytest.raises(DataError, match=r"test.tsv: was not written by prepare"):
            prepare(job(text, test=test, force=True))
    assert (out / "test.tsv").read_text(encoding="utf-8") == "mine"


def test_what_cannot_be_made_leaves_nothing_behind(text):
    with pytest.raises(DataError, match="at most"):
        prepare(job(text, dev=5_000))
    with pytest.raises(DataError, match="--dev is -1; expected at least 0"):
        prepare(job(text, dev=-1))
    assert not (text.parent / "data").exists()
    with pytest.raises(DataError, match="is a file; --out must be the folder"):
        prepare(job(text, out=text))


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
    prepare(job(text, card={"data": "My own."}, force=True))
    card = json.loads((out / "card.json").read_text(encoding="utf-8"))
    assert (card["licence"], card["data"]) == ("", "My own.")


def test_from_text_to_a_checkpoint_that_names_its_sources(text, capsys):
    data, out = text.parent / "data", text.parent / "runs" / "bal-en"
    names = ["--title", "Ba-lo to English", "--source-language", "Ba-lo", "--target-language", "English"]
    assert main(["prepare", str(text), "--swap", "--out", str(data), "--dev", "10", "--test", "10", *names]) == 0
    files = [word for name in ("train", "dev") for word in (f"--{name}", str(data / f"{name}.tsv"))]
    sizes = {"layers": 1, "d-model": 16, "heads": 2, "d-ff": 32, "src-vocab": 60, "tgt-vocab": 60, "max-len": 64}
    model = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    assert main(["train", *files, "--card", str(data / "card.json"), "--out", str(out), "--epochs", "1", *model]) == 0
    checkpoint = load(out)
    assert checkpoint.warnings == ()
    assert checkpoint.card.title == "Ba-lo to English"
    assert checkpoint.card.source_language == "Ba-lo"
    assert "Tatoeba" in checkpoint.card.data
    assert checkpoint.card.licence == "CC-BY 2.0 FR (Tatoeba)"
    assert checkpoint.card.other["prepared"]["files"][0]["file"] == "bal.txt"
    assert checkpoint.card.other["prepared"]["splits"]["dev"] == 10
    assert isinstance(checkpoint.run("ekal 3!").output_text, str)
    with (out / "training.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 1
