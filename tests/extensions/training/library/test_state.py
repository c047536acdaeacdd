"""Damage to a training's state is noticed, the state before it takes over, and nothing in it is trusted."""

import dataclasses
import os
import pickle
from dataclasses import asdict

import pytest
import torch

from glassformer.extensions.training.library import state
from glassformer.extensions.training.library.run import learn_vocabulary, train
from glassformer.extensions.training.library.state import EpochRow, TrainingPosition, better, paths, write_rows
from tests.extensions.training.library.training_jobs import make_job, store, stored, with_settings
from transformer.__main__ import main
from transformer.checkpoint.curve import load_curve
from transformer.errors import DataError


@pytest.fixture
def job(job):
    """A job of one epoch."""
    return with_settings(job, epochs=1, batch_tokens=800)


def resumed(job, **settings):
    return train(dataclasses.replace(with_settings(job, **settings), resume=True))


def flipped(content, place):
    return content[:place] + bytes([content[place] ^ 1]) + content[place:][1:]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A finished training of one epoch, what its state holds, and the bytes of it."""
    job = with_settings(make_job(tmp_path_factory.mktemp("trained")), epochs=1)
    train(job)
    return job, stored(job.out), paths(job.out)[0].read_bytes()


@pytest.fixture
def trained(kept):
    """The same with its files as they were, to be damaged."""
    job, state, content = kept
    path, before = paths(job.out)
    path.write_bytes(content)
    before.unlink(missing_ok=True)
    return job, state


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: flipped(content, 0),
        lambda content: flipped(content, 100),
        lambda content: flipped(content, len(content) // 2),
        lambda content: flipped(content, -1),
        lambda content: content[:1000],
        lambda content: content[:-1],
        lambda _: b"",
        lambda _: pickle.dumps([1], protocol=2),
        lambda content: content.split(b"\n", 1)[1],  # as it was written before it had a SHA-256
    ],
)
def test_damage_is_noticed(trained, damage, capsys):
    job, _ = trained
    path, _ = paths(job.out)
    path.write_bytes(damage(path.read_bytes()))
    files = ["--train", str(job.train), "--dev", str(job.dev), "--out", str(job.out)]
    assert main(["train", *files, "--resume", "--pieces=char", "--device=cpu"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"error: {path}: is damaged")
    assert error.endswith("; leave out --resume to start over.")
    assert "its SHA-256 does not match" in error or "or comes from another version of this program" in error


def test_the_state_before_a_damaged_one_takes_over(job, caplog):
    whole, expected = train(with_settings(job, epochs=3)), stored(job.out)
    path, before = paths(job.out)
    assert before.exists()
    path.write_bytes(flipped(path.read_bytes(), 5_000))
    rows = resumed(job, epochs=3)
    assert f"{path}: is damaged (its SHA-256 does not match); going on from the state before it." in caplog.text
    assert [row.loss for row in rows] == [row.loss for row in whole]
    found = stored(job.out)["model"]
    for name, tensor in expected["model"].items():
        assert torch.equal(found[name], tensor), name


def test_a_training_killed_between_the_two_renames_goes_on(trained):
    job, _ = trained
    path, before = paths(job.out)
    os.replace(path, before)
    assert [row.epoch for row in resumed(job, epochs=2)] == [1, 2]
    assert path.exists()


def test_a_state_is_on_the_disk_before_it_takes_its_place_and_a_full_disk_leaves_those_before_it(job, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(state.os, "fsync", lambda file: done.append("sync") or fsync(file))
    monkeypatch.setattr(state.os, "replace", lambda a, b: done.append(f"to {b.name}") or replace(a, b))
    for n in (1, 2):
        state.write_state(job.out, {"n": n})
    assert done == ["sync", "to state.pt", "sync", "sync", "to state.before.pt", "to state.pt", "sync"]
    before = {file.name: file.read_bytes() for file in paths(job.out)[0].parent.iterdir()}
    assert sorted(before) == ["state.before.pt", "state.pt"]

    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        state.write_state(job.out, {"n": 3})
    assert {file.name: file.read_bytes() for file in paths(job.out)[0].parent.iterdir()} == before


ROW = {**dict.fromkeys(("loss", "dev_loss", "dev_bleu", "dev_chrf", "learning_rate", "seconds", "dev_exact"), 1.0),
       **dict.fromkeys(("epoch", "step", "tokens"), 1)}  # fmt: skip

PLACE = asdict(TrainingPosition(epoch=1, step=16, tokens=100, seconds=1.0, rate=0.1))


def nested(depth):
    """A list in a list in a list."""
    found = []
    for _ in range(depth):
        found = [found]
    return found


BAD = {
    "rows": [None, [None], [{"epoch": 1}], [ROW | {"epoch": 2}], [ROW | {"more": 1}], [ROW | {"seconds": float("nan")}],
             [ROW | {"seconds": -1.0}], [ROW | {"step": "1"}], [ROW | {"loss": None}], [ROW | {"tokens": True}],
             [ROW | {"step": 2**70}], torch.zeros(2)],
    "optimizer": [None, {}, {0: {}}, {"state": {}}, torch.zeros(2)],
    "model": [None, {}, {"other": torch.zeros(2)}, {3: 4}],
    "turn": ["x", (1,), (1, "x"), (-1, 2.0), (1, float("nan")), [1, 2.0], (True, 1.0)],
    "place": [None, {}, PLACE | {"more": 1}, PLACE | {"epoch": -1}, PLACE | {"epoch": 7}, PLACE | {"steps": 2**70},
              PLACE | {"steps": 17}, PLACE | {"loss": None}, PLACE | {"seconds": float("nan")},
              PLACE | {"seconds": -1.0}, PLACE | {"recent": [1.0]}, PLACE | {"recent": (1,)}, torch.zeros(2)],
    "ends": [None, {}, [None], [{}], [{"other": torch.zeros(2)}], torch.zeros(2)],
    "tokenizers": [None, [], [None], [b"x"], [torch.zeros(3)], [torch.zeros(3, dtype=torch.uint8)] * 2,
                   [torch.zeros(2, 2, dtype=torch.uint8)], [torch.zeros(9, dtype=torch.uint8)],
                   [torch.empty(3, dtype=torch.uint8, device="meta")], [torch.zeros(3, dtype=torch.uint8).to_sparse()],
                   [torch.tensor(list(learn_vocabulary(["a b c"], size=9, kind="char")), dtype=torch.uint8)]],
    "job": [None, {}, nested(400), {1: "x"}, {"x" * 9_000: "y" * 9_000}, {"n_heads": "\ud800"},
            {"a\nb": "c\x1b[2J"}, {str(i): "x" for i in range(500)}, torch.zeros(2)],
}  # fmt: skip


@pytest.mark.parametrize("part", BAD)
def test_whatever_a_part_of_the_state_holds_ends_in_a_sentence(trained, part):
    job, state = trained
    without = {name: value for name, value in state.items() if name != part}
    for found in (without, *(state | {part: bad} for bad in BAD[part])):
        store(job.out, found)
        with pytest.raises(DataError) as caught:
            resumed(job, epochs=2)
        message = str(caught.value)
        assert len(message) < 1_500, found.get(part)
        assert message.isprintable(), found.get(part)
        assert message.endswith("."), message


def test_moments_of_one_parameter_alone_may_not_be_missing(trained):
    job, state = trained
    moments = state["optimizer"]
    for changed in ({**moments, 3: {}}, {i: m for i, m in moments.items() if i != 3},
                    {**moments, 3: moments[3] | {"exp_avg": torch.zeros(1)}}, {**moments, 3: None}):  # fmt: skip
        store(job.out, state | {"optimizer": changed})
        with pytest.raises(DataError, match="another version of this program"):
            resumed(job, epochs=2)


@pytest.mark.parametrize("content", [[1], 3, None, {}, {"rows": []}])
def test_something_else_with_a_right_sha_is_refused(trained, content):
    job, _ = trained
    store(job.out, content)
    with pytest.raises(DataError, match="is damaged, or comes from another version of this program"):
        resumed(job, epochs=2)


def test_the_curve_that_training_writes_is_read_and_its_best_epoch_is_the_one_that_is_kept(tmp_path):
    rows = [
        EpochRow(1, 10, 5.0, 4.0, 1.0, 10.0, 1e-3, 1000, 12.5, 0.01),
        EpochRow(2, 20, 3.0, 2.5, 20.0, 40.0, 5e-4, 2000, 25.0, 0.1),
        EpochRow(3, 30, 2.0, 2.75, 20.0, 38.0, 1e-4, 3000, 37.5, 0.09),
    ]
    write_rows(rows, tmp_path / "training.csv")
    curve = load_curve(tmp_path)
    assert (curve.epochs, curve.notes) == ((1, 2, 3), ())
    for name, values in curve.columns.items():
        assert values == tuple(getattr(row, name) for row in rows)
    assert set(curve.columns) | {"epoch"} == set(EpochRow.__dataclass_fields__)
    assert curve.best_epoch() == better(rows, leak=False).epoch == 2  # equal BLEU, higher chrF
