import csv
import dataclasses
import json

import pytest
import torch

from glassformer.extensions.training.library.run import learn_vocabulary, train
from glassformer.extensions.training.library.scoring import score
from glassformer.extensions.training.library.settings import LIMITS, TrainSettings
from glassformer.extensions.training.library.tasks import write_reverse
from tests.conftest import TARGETS
from tests.extensions.training.library.training_jobs import SETTINGS, train_and_stop
from transformer.__main__ import main
from transformer.checkpoint.load import load
from transformer.errors import ConfigError, DataError
from transformer.text.sentencepiece_check import check, read


@pytest.fixture
def data(job):
    """The folder with files of a made-up task."""
    return job.train.parent


def test_a_short_training_learns_and_writes_a_checkpoint(job):
    rows = train(job)
    assert [row.epoch for row in rows] == [1, 2]
    assert rows[1].loss < rows[0].loss
    assert rows[1].dev_loss < rows[0].dev_loss < 3.6
    assert rows[1].tokens == 2 * rows[0].tokens
    checkpoint = load(job.out)
    assert checkpoint.warnings == ()
    assert checkpoint.card.title == "Backwards"
    assert checkpoint.card.training["command"] == "python -m transformer train"
    assert checkpoint.card.label_smoothing() == 0.1
    assert checkpoint.card.scores[0]["file"] == "dev.tsv"
    assert checkpoint.run("abc").output_text is not None
    with (job.out / "training.csv").open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    assert [float(row["loss"]) for row in written] == [row.loss for row in rows]


def test_a_training_that_was_stopped_goes_on_as_if_it_had_not_been(job, monkeypatch):
    expected = train(dataclasses.replace(job, out=job.out.with_name("whole")))
    train_and_stop(job, monkeypatch)
    rows = train(dataclasses.replace(job, resume=True))

    def but_for_time(row):
        return dataclasses.replace(row, seconds=0.0)

    assert list(map(but_for_time, rows)) == list(map(but_for_time, expected))
    resumed, whole = load(job.out), load(job.out.with_name("whole"))
    assert resumed == whole
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], tensor), name


@pytest.mark.parametrize("name", LIMITS)
def test_settings_beyond_their_limits_are_refused(name):
    low, high = LIMITS[name]
    for value in (low, high):
        assert getattr(TrainSettings(**{name: value}), name) == value
    for value in (low - 1, high + 1, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match=rf"^{name}: found {value}, expected .* to .*\.$") as caught:
            TrainSettings(**{name: value})
        assert caught.value.field == name


def test_there_must_be_something_to_resume(job):
    with pytest.raises(DataError, match="there is no training to resume; leave out --resume"):
        train(dataclasses.replace(job, resume=True))


def test_another_training_is_not_resumed_and_the_difference_is_named(job):
    train(dataclasses.replace(job, settings=dataclasses.replace(SETTINGS, epochs=1)))
    other = dataclasses.replace(SETTINGS, peak_rate=0.02)
    with pytest.raises(
        DataError, match=r"belongs to a training run with different settings: peak_rate was 0\.01 and is now 0\.02\.$"
    ):
        train(dataclasses.replace(job, resume=True, settings=other))
    job.train.write_text("abc\tcba\n", encoding="utf-8")
    with pytest.raises(DataError, match="training file was"):
        train(dataclasses.replace(job, resume=True))


def test_held_out_pairs_that_are_too_long_are_left_out_with_their_references(job):
    with job.dev.open("a", encoding="utf-8") as file:
        file.write("abcdefghijklmnopqrstuvwxyz\tzyxwvutsrqponmlkjihgfedcba\n")
    job = dataclasses.replace(job, settings=dataclasses.replace(SETTINGS, epochs=1))
    assert len(train(job)) == 1


def test_files_of_which_no_pair_fits_are_refused(job):
    with pytest.raises(DataError, match=r"train.tsv: every pair has more than 2 tokens"):
        train(dataclasses.replace(job, config=dataclasses.replace(job.config, max_len=2)))


def cli(data, *more):
    files = [word for name in ("train", "dev") for word in (f"--{name}", str(data / f"{name}.tsv"))]
    return main(["train", *files, "--out", str(data / "out" / "x"), *more])


SIZES = ("--layers=1", "--d-model=8", "--heads=2", "--d-ff=8", "--src-vocab=40", "--epochs=1")
TINY = [*SIZES, "--shared-vocab", "--pieces=char"]


def test_the_command_line_trains(data, capsys):
    (data / "card.json").write_text(json.dumps({"title": "Typed"}), encoding="utf-8")
    assert cli(data, *TINY, "--device", "cpu", "--card", str(data / "card.json")) == 0
    assert "epoch 1: loss" in capsys.readouterr().out
    checkpoint = load(data / "out" / "x")
    assert checkpoint.card.title == "Typed"
    assert str(data) not in (data / "out" / "x" / "card.json").read_text(encoding="utf-8")
    assert checkpoint.config.n_encoder_layers == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--heads", "7"], "n_heads: d_model = 256 cannot be split into 7"),
        (["--train", "nowhere.tsv"], "nowhere.tsv: cannot be read"),
        (["--card", "nowhere.json"], "nowhere.json: cannot be read"),
        (["--resume"], "there is no training to resume"),
        ([*TINY, "--pieces", "unigram", "--src-vocab", "5"], "no vocabulary of 5 pieces could be learned"),
        (["--dropout", "1.5"], "dropout: found 1.5"),
        ([*TINY, "--sampling", "0.1"], "remove --sampling"),
        (["--start-from", "nowhere"], "nowhere"),
        (["--epochs", "0"], "epochs: found 0, expected a value from 1 to 1,000,000."),
        (["--rate", "0"], "peak_rate: found 0.0, expected a value from 1 × 10⁻⁸ to 1."),
        (["--batch-tokens", "0"], "batch_tokens: found 0, expected a value from 1 to 10,000,000."),
        (["--sampling", "-1"], "sampling: found -1.0, expected a value from 0 to 1,000."),
        (["--sampling", "nan"], "sampling: found nan, expected a value from 0 to 1,000."),
    ],
)
def test_what_is_wrong_is_said_in_one_line(data, capsys, arguments, message):
    assert cli(data, *arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1
    assert not (data / "out" / "x").exists()


@pytest.mark.parametrize("arguments", [[], ["fly"], ["train"], ["task", "juggle", "--out", "x"]])
def test_what_cannot_be_parsed_shows_the_usage(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: python -m transformer" in capsys.readouterr().err


def test_the_made_up_task_is_reproducible_and_its_parts_are_disjoint(tmp_path):
    for name in ("a", "b"):
        write_reverse(tmp_path / name, train=200, dev=20, test=30)
    files = {part: (tmp_path / "a" / f"{part}.tsv").read_text(encoding="utf-8") for part in ("train", "dev", "test")}
    assert files["dev"] == (tmp_path / "b" / "dev.tsv").read_text(encoding="utf-8")
    lines = [line for text in files.values() for line in text.splitlines()]
    assert len(set(lines)) == 250
    for source, target in (line.split("\t") for line in lines):
        assert source[::-1] == target
        assert 2 <= len(source) <= 12


def test_the_made_up_task_replaces_nothing(tmp_path):
    sizes = {"train": 200, "dev": 20, "test": 30}
    write_reverse(tmp_path / "a", **sizes)
    write_reverse(tmp_path / "a", **sizes)  # the same again
    (tmp_path / "a" / "dev.tsv").write_text("mine", encoding="utf-8")
    (tmp_path / "a" / "train.tsv").unlink()
    with pytest.raises(DataError, match=r"dev.tsv: already exists with different content; choose another folder"):
        write_reverse(tmp_path / "a", **sizes)
    assert (tmp_path / "a" / "dev.tsv").read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "a" / "train.tsv").exists()


def test_the_made_up_task_says_that_its_folder_is_a_file(tmp_path, capsys):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    assert main(["task", "reverse", "--out", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path / 'file'}: cannot be written (File exists).\n"
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char"])
def test_vocabularies_are_reproducible_and_their_special_ids_fixed(kind):
    model = learn_vocabulary(TARGETS, size=300, kind=kind)
    assert learn_vocabulary(TARGETS, size=300, kind=kind) == model
    assert [piece.text for piece in read(model)[:4]] == ["<pad>", "<unk>", "<s>", "</s>"]
    check(model)


def test_texts_that_give_no_vocabulary():
    with pytest.raises(DataError, match="no vocabulary of 300 pieces could be learned"):
        learn_vocabulary([], size=300)


def test_scores_of_perfect_and_of_wrong_outputs():
    references = ["the small red fox sees a lake", "a moon is in the lake"]
    perfect = score(references, references)
    assert perfect.bleu == pytest.approx(100)
    assert perfect.chrf == pytest.approx(100)
    assert perfect.exact == 1.0
    half = score([references[0], "no"], references)
    assert 0 < half.bleu < 100
    assert half.exact == 0.5
    assert "tok:13a" in half.signature
