"""A training learns, at rates as their papers say, and writes a checkpoint, or says in one line what is wrong."""

import csv
import math
import sys
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.extensions.training.library import checkpointing, run
from glassformer.extensions.training.library.loop import Trainer
from glassformer.extensions.training.library.run import learn_vocabulary, train
from glassformer.extensions.training.library.settings import LIMITS, SCHEDULES, TrainSettings
from tests.conftest import TARGETS
from tests.extensions.training.library.training_jobs import with_settings
from transformer.__main__ import INTERRUPTED, main
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
    card = checkpoint.card
    assert checkpoint.warnings == ()
    assert (card.title, card.training["command"]) == ("Backwards", "python -m transformer train")
    assert (card.label_smoothing(), card.scores[0]["file"]) == (0.1, "dev.tsv")
    assert checkpoint.run("abc").output_text is not None
    with (job.out / "training.csv").open(encoding="utf-8", newline="") as file:
        assert [float(row["loss"]) for row in csv.DictReader(file)] == [row.loss for row in rows]


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
    job = with_settings(job, epochs=1, batch_tokens=800)
    train(job)
    job = replace(job, resume=True)
    said = r"belongs to a training run with different settings: peak_rate was 0\.01 and is now 0\.02\.$"
    with pytest.raises(DataError, match=said):
        train(with_settings(job, peak_rate=0.02))
    job.train.write_text("abc\tcba\n", encoding="utf-8")
    with pytest.raises(DataError, match="training file was"):
        train(job)


@pytest.fixture
def out(job):
    """Where the command writes."""
    return job.out.with_name("x")


@pytest.fixture
def cli(job, out):
    """A function that trains by the command, with more options, and gives its status."""
    return lambda *more: main(["train", f"--train={job.train}", f"--dev={job.dev}", f"--out={out}", *more])


SIZES = "--layers=1 --d-model=8 --heads=2 --d-ff=8 --src-vocab=40 --epochs=1"
TINY = [*SIZES.split(), "--shared-vocab", "--pieces=char"]


@pytest.mark.parametrize("begun", [False, True])
def test_ctrl_c_says_how_to_go_on(cli, monkeypatch, capsys, begun):
    write_state = checkpointing.write_state

    def stop(*arguments, **options):
        if begun:
            write_state(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(*((checkpointing, "write_state") if begun else (run, "learn_vocabulary")), stop)
    assert cli(*TINY) == INTERRUPTED
    error = capsys.readouterr().err
    assert error.strip().splitlines()[-1].startswith("interrupted.")
    assert "Traceback" not in error
    assert ("the same command with --resume goes on" in error) == begun
    monkeypatch.setattr(checkpointing, "write_state", write_state)
    if begun:
        assert cli(*TINY, "--resume") == 0


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
        *(
            ([*TINY, "--log", kind], f"--log {kind}: {kind} is not installed; pip install {kind} brings it.\n")
            for kind in ("tensorboard", "trackio")
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(cli, out, capsys, monkeypatch, arguments, message):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in ("tensorboard", "trackio"):
        monkeypatch.setitem(sys.modules, name, None)
    assert cli(*arguments) == 2
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


PEAK = 2e-3


class Still(Trainer):
    """A trainer of a length that is given, which never steps."""

    def __init__(self, total, settings):
        self.settings, self.steps_an_epoch, self.turn, self.rows = settings, total, None, []


def rates(total, *, warmup, seconds_a_step=0.0, minutes=0.0, schedule="linear"):
    settings = TrainSettings(epochs=1, peak_rate=PEAK, warmup=warmup, max_minutes=minutes, schedule=schedule)
    trainer = Still(total, settings)
    return [trainer._rate(step, (step - 1) * seconds_a_step) for step in range(1, total + 1)]


@given(total=st.integers(1, 400), warmup=st.integers(0, 1_000), schedule=st.sampled_from(list(SCHEDULES)))
def test_the_rate_rises_to_its_peak_and_falls_to_almost_nothing(total, warmup, schedule):
    found = rates(total, warmup=warmup, schedule=schedule)
    top = found.index(PEAK)
    assert found == [*sorted(found[:top]), *sorted(found[top:], reverse=True)]
    assert all(0 < rate <= PEAK for rate in found)
    assert top + 1 == max(min(warmup, -(-total // 2)), 1)
    if total > 1 and schedule != "inverse-sqrt":
        assert found[-1] == pytest.approx(0.01 * PEAK, rel=1e-6) or top == total - 1


def test_the_peak_is_reached_where_the_time_is_the_limit():
    """A step takes a second, and a minute is given: of 1,000 steps 60 are done."""
    for warmup in (10, 800):
        found = rates(1_000, warmup=warmup, seconds_a_step=1.0, minutes=1.0)[:60]
        assert found.index(max(found)) == found.index(PEAK) == pytest.approx(min(warmup - 1, 30))
        assert found[-1] < 0.05 * PEAK


def test_the_ways_down_are_those_of_their_papers():
    step = 700
    line, root, half = (rates(1_000, warmup=100, schedule=name) for name in ("linear", "inverse-sqrt", "cosine"))
    assert [line[24], line[step - 1]] == pytest.approx([PEAK * 0.25, PEAK * (1_000 - step) / 900])
    assert root[step - 1] == pytest.approx(PEAK * (100 / step) ** 0.5)
    assert half[step - 1] == pytest.approx(PEAK / 2 * (1 + math.cos(math.pi * (step - 100) / 900)))
    assert half[550 - 1] == pytest.approx(PEAK / 2)  # half way down, half of the rate
