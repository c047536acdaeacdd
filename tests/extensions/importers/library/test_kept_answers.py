"""Answers are kept beside their model, read by whatever opens it, said, and never used for another model."""

import json

import pytest
from safetensors.torch import save_file

import transformer
from glassformer.extensions.importers.library.kept_answers import paths_of
from glassformer.extensions.importers.library.opening import QuestionsError
from tests.extensions.importers.test_import_command import as_arguments
from tests.extensions.importers.test_third_party_models import ANSWERS, state
from tests.extensions.refusing import refusal
from transformer.__main__ import main

SAID = dict(ANSWERS)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "lesson.v2.safetensors"
    save_file(state(), path)
    return path


@pytest.fixture
def kept(model):
    path = model.with_name("lesson.v2.answers.json")
    path.write_text(json.dumps(SAID))
    return path


def test_what_opened_a_model_once_need_not_be_said_again(model, tmp_path, capsys):
    def run(*more, out):
        return main(["import", str(model), "--out", str(tmp_path / out), *more])

    path = model.with_name("lesson.v2.answers.json")
    assert run(out="none") == 2
    assert not path.exists()
    assert run(*as_arguments(dict(ANSWERS[1:])), out="half") == 2  # a question is open
    assert not path.exists()
    assert run(*as_arguments(SAID), out="one") != 2
    printed = capsys.readouterr()
    assert f"answers kept in {path}" in printed.out + printed.err
    assert json.loads(path.read_text()) == SAID | {"written_for": model.name}
    assert run(out="two") != 2
    printed = capsys.readouterr()
    assert path.name in printed.out + printed.err
    assert run("--set", "n_heads=2", out="three") != 2  # what is said anew counts, and is kept
    assert json.loads(path.read_text()) == SAID | {"n_heads": 2, "written_for": model.name}
    assert transformer.load(model).config.n_heads == 2


def test_the_report_says_which_answers_were_kept(model, kept):
    report = transformer.preview(model, answers={"norm": "pre"}).report
    told = {one.name: one.evidence for one in report.fields if one.how == "answered"}
    assert told.pop("norm") == "Your answer."
    assert set(told.values()) == {f"Your answer, kept in {kept.name}."}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "expected answers by the names of fields"),
        ("{", "lesson.v2.answers.json"),
        ('{"colour": 3}', "no question named 'colour'.*read from lesson.v2.answers.json; change it there, or delete"),
    ],
)
def test_a_damaged_file_or_an_impossible_answer_names_the_file(model, kept, content, message):
    kept.write_text(content)
    refusal(lambda: transformer.preview(model), message, most=2_000)
    kept.write_text(json.dumps(SAID))
    model.write_bytes(b"no tensors")
    assert "was read from" not in refusal(lambda: transformer.preview(model))  # where answers are not at fault


def test_a_folder_that_cannot_be_written_is_said_and_the_model_examined(model, monkeypatch, capsys):
    def refused(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("glassformer.extensions.importers.library.kept_answers.write_whole", refused)
    assert main(["doctor", str(model), "--brief", *as_arguments(SAID)]) != 2
    assert "could not be kept" in capsys.readouterr().err


CALLED = {
    "model.pt.safetensors": "model", "my.model.tar": "my.model", "weights": "weights", "run-0.1": "run-0.1",
    "epoch=3-loss=0.25.ckpt": "epoch=3-loss=0.25",
}  # fmt: skip


def test_the_file_is_called_as_the_model(tmp_path):
    found = {name: paths_of(tmp_path / name)[0].name for name in CALLED}
    assert found == {name: f"{kept}.answers.json" for name, kept in CALLED.items()}


@pytest.mark.parametrize(("first", "second", "own"), [("model.pth", "model.safetensors", "model"),
                                                      ("run-0.1", "run-0.2", "run-0.1")])  # fmt: skip
def test_answers_of_another_model_are_neither_used_nor_overwritten(tmp_path, capsys, first, second, own):
    """`model.safetensors` beside an answered `model.pth`, and versions after a dot."""

    def run(name, **answers):
        out = tmp_path / f"{name}.out{len(answers)}"
        code = main(["import", str(tmp_path / name), "--out", str(out), *as_arguments(answers)])
        return code, capsys.readouterr().out

    def heads(name):
        return transformer.load(tmp_path / name).config.n_heads

    for name in (first, second, "model"):
        save_file(state(), tmp_path / name)
    kept = tmp_path / f"{own}.answers.json"
    assert run(first, **SAID)[0] == 0
    before = kept.read_text()
    code, said = run(second)
    assert code == 2
    assert ("were written for model.pth" in said) == (first == "model.pth")
    assert run(second, **SAID | {"n_heads": 2})[0] == 0
    assert kept.read_text() == before
    assert json.loads((tmp_path / f"{second}.answers.json").read_text())["n_heads"] == 2
    assert (heads(first), heads(second)) == (SAID["n_heads"], 2)
    if own == "model":
        assert run("model", **SAID)[0] == 0  # whose own place is taken
        assert json.loads(kept.read_text())["written_for"] == first
        assert heads("model") == SAID["n_heads"]
        kept.write_text(json.dumps({**json.loads(before), "written_for": "other.pt"}))
        with pytest.raises(QuestionsError, match=r"model.answers.json are not used, as they were written for other.pt"):
            heads(first)


def test_a_folder_uses_only_the_answers_of_its_file(tmp_path):
    save_file(state(), tmp_path / "model.safetensors")
    (tmp_path / "extra.answers.json").write_text(json.dumps(SAID | {"written_for": "extra.pt"}))
    with pytest.raises(QuestionsError, match=r"extra.answers.json are not used"):
        transformer.load(tmp_path)
    (own := tmp_path / "some.answers.json").write_text(json.dumps(SAID | {"written_for": "model.safetensors"}))
    assert own in paths_of(tmp_path)
    assert transformer.load(tmp_path).config.n_heads == SAID["n_heads"]
    own.unlink()
    (tmp_path / "extra.answers.json").unlink()
    assert paths_of(tmp_path)[0] == tmp_path / "model.answers.json"
