"""A training learns and writes a whole checkpoint, or says in one line what is wrong before it writes anything."""

import csv
import dataclasses
import json

import pytest
import torch

from glassformer.extensions.training.library.run import learn_vocabulary, train
from glassformer.extensions.training.library.settings import LIMITS, TrainSettings
from tests.conftest import TARGETS
from tests.extensions.training.library.training_jobs import stored, with_settings
from transformer.__main__ import main
from transformer.checkpoint.load import load
from transformer.errors import ConfigError, DataError
from transformer.text.sentencepiece_check import check, read


def test_a_short_training_learns_and_writes_a_checkpoint(job):
    with job.dev.open("a", encoding="utf-8") as file:
        file.write("abcdefghijklmnopqrstuvwxyz\tzyxwvutsrqponmlkjihgfedcba\n")  # too long: it is left out
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


@pytest.mark.parametrize("name", LIMITS)
def test_settings_beyond_their_limits_are_refused(name):
    low, high = LIMITS[name]
    for value in (low, high):
        assert getattr(TrainSettings(**{name: value}), name) == value
    for value in (low - 1, high + 1, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match=rf"^{name}: found {value}, expected .* to .*\.$") as caught:
            TrainSettings(**{name: value})
        assert caught.value.field == name


def test_another_training_is_not_resumed_and_the_difference_is_named(job):
    train(with_settings(job, epochs=1, batch_tokens=800))
    job = dataclasses.replace(with_settings(job, batch_tokens=800), resume=True)
    with pytest.raises(
        DataError, match=r"belongs to a training run with different settings: peak_rate was 0\.01 and is now 0\.02\.$"
    ):
        train(with_settings(job, peak_rate=0.02))
    job.train.write_text("abc\tcba\n", encoding="utf-8")
    with pytest.raises(DataError, match="training file was"):
        train(job)


@pytest.fixture
def cli(job):
    """A function that trains by the command, with more options, and gives its status; and where it writes."""
    data = job.train.parent
    files = [word for name in ("train", "dev") for word in (f"--{name}", str(data / f"{name}.tsv"))]
    out = data / "out" / "x"
    return lambda *more: main(["train", *files, "--out", str(out), *more]), out


SIZES = ("--layers=1", "--d-model=8", "--heads=2", "--d-ff=8", "--src-vocab=40", "--epochs=1")
TINY = [*SIZES, "--shared-vocab", "--pieces=char"]


def test_the_command_line_trains(cli, tmp_path, capsys):
    run, out = cli
    (tmp_path / "card.json").write_text(json.dumps({"title": "Typed"}), encoding="utf-8")
    assert run(*TINY, "--device", "cpu", "--card", str(tmp_path / "card.json"), "--no-causal-mask") == 0
    assert "epoch 1: loss" in capsys.readouterr().out
    checkpoint = load(out)
    assert checkpoint.card.title == "Typed"
    assert stored(out)["job"]["causal_mask"] == "False"
    assert str(tmp_path) not in (out / "card.json").read_text(encoding="utf-8")
    assert checkpoint.config.n_encoder_layers == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--heads", "7"], "n_heads: d_model = 256 cannot be split into 7"),
        (["--train", "nowhere.tsv"], "nowhere.tsv: cannot be read"),
        (["--card", "nowhere.json"], "nowhere.json: cannot be read"),
        (["--resume"], "there is no training to resume; leave out --resume"),
        ([*TINY, "--pieces", "unigram", "--src-vocab", "5"], "no vocabulary of 5 tokens could be learned"),
        (["--dropout", "1.5"], "dropout: found 1.5"),
        ([*TINY, "--sampling", "0.1"], "remove --sampling"),
        ([*TINY, "--max-len", "2"], "train.tsv: every pair has more than 2 tokens"),
        (["--start-from", "nowhere"], "nowhere"),
        (["--rate", "0"], "peak_rate: found 0.0, expected a value from 1 × 10⁻⁸ to 1."),
        (["--device", "cuda"], "torch finds no CUDA device here"),
        ([*TINY, "--precision", "fp16", "--device", "cpu"], "--precision fp16: needs a CUDA device"),
        ([*TINY, "--shard"], "--shard: shares a model between processes; start several"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(cli, capsys, monkeypatch, arguments, message):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    run, out = cli
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char"])
def test_vocabularies_are_reproducible_and_their_special_ids_fixed(kind):
    model = learn_vocabulary(TARGETS, size=300, kind=kind)
    assert learn_vocabulary(TARGETS, size=300, kind=kind) == model
    assert [piece.text for piece in read(model)[:4]] == ["<pad>", "<unk>", "<s>", "</s>"]
    check(model)
