"""Nothing in a training's state is trusted, nothing that it did not write is lost, and two never write to one place."""

import dataclasses
import os
import pickle
import shutil
import signal
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from glassformer.extensions.training.library import run, state
from glassformer.extensions.training.library.run import learn_vocabulary, train
from glassformer.extensions.training.library.state import EpochRow, TrainingPosition, better, claimed, paths, write_rows
from tests.extensions.training.library.training_jobs import make_job, store, stored, train_and_stop, with_settings
from transformer.checkpoint.curve import load_curve
from transformer.checkpoint.load import load
from transformer.errors import CheckpointError, DataError


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


def test_damage_is_noticed(trained, capsys):
    job, _ = trained
    path, _ = paths(job.out)
    content = path.read_bytes()
    damaged = [flipped(content, place) for place in (0, 100, len(content) // 2, -1)]
    damaged += [content[:1000], content[:-1], b"", pickle.dumps([1], protocol=2)]
    damaged += [content.split(b"\n", 1)[1]]  # as it was written before it had a SHA-256
    for found in damaged:
        path.write_bytes(found)
        with pytest.raises(DataError, match=r"is damaged.*; leave out --resume to start over\.$") as caught:
            resumed(job)
        assert str(caught.value).startswith(f"{path}: is damaged")
        assert caught.match("its SHA-256 does not match|or comes from another version of this program")


def test_the_state_before_a_damaged_one_takes_over(job, caplog):
    job = with_settings(job, epochs=3, batch_tokens=800)
    whole, expected = train(job), stored(job.out)
    path, before = paths(job.out)
    assert before.exists()
    path.write_bytes(flipped(path.read_bytes(), 5_000))
    rows = resumed(job)
    assert f"{path}: is damaged (its SHA-256 does not match); going on from the state before it." in caplog.text
    assert [row.loss for row in rows] == [row.loss for row in whole]
    torch.testing.assert_close(stored(job.out)["model"], expected["model"], rtol=0, atol=0)


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


def test_moments_of_one_parameter_alone_may_not_be_missing_nor_may_a_right_sha_be_of_something_else(trained):
    job, state = trained
    moments = state["optimizer"]
    wrong = [{**moments, 3: {}}, {i: m for i, m in moments.items() if i != 3}, {**moments, 3: None}]
    wrong += [{**moments, 3: moments[3] | {"exp_avg": torch.zeros(1)}}]
    for found in (*(state | {"optimizer": one} for one in wrong), [1], 3, None, {}, {"rows": []}):
        store(job.out, found)
        with pytest.raises(
            DataError, match=r"(is damaged, or comes|its training state is) from another version of this"
        ):
            resumed(job, epochs=2)


def test_the_curve_that_training_writes_is_read_and_its_best_epoch_is_the_one_that_is_kept(tmp_path):
    rows = [
        EpochRow(1, 10, 5.0, 4.0, 1.0, 10.0, 1e-3, 1000, 12.5, 0.01),
        EpochRow(2, 20, 3.0, 2.5, 20.0, 40.0, 5e-4, 2000, 25.0, 0.1),
        EpochRow(3, 30, 2.0, 2.25, 20.0, 38.0, 1e-4, 3000, 37.5, 0.09),
    ]
    write_rows(rows, tmp_path / "training.csv")
    curve = load_curve(tmp_path)
    assert (curve.epochs, curve.notes) == ((1, 2, 3), ())
    for name, values in curve.columns.items():
        assert values == tuple(getattr(row, name) for row in rows)
    assert set(curve.columns) | {"epoch"} == set(EpochRow.__dataclass_fields__)
    assert curve.best_epoch() == better(rows, leak=False).epoch == 2  # equal BLEU, higher chrF


BESIDE = ["progress.json", "state.before.pt", "state.pt"]


@pytest.fixture
def job(job):
    return with_settings(job, epochs=1, batch_tokens=800)


def everything(folder):
    """Every file below a folder, by path, with its bytes."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def refused(monkeypatch):
    """A function that a job is given to: refused before its first step, and nothing below its folder changes."""

    def refuse(job, match, **changes):
        job = replace(job, **changes)
        before = everything(job.train.parent)
        with monkeypatch.context() as patch:
            patch.setattr(run, "_run_epochs", lambda *_, anew: pytest.fail("a step was made"))
            with pytest.raises((CheckpointError, DataError), match=match) as caught:
                train(job)
        assert "\n" not in str(caught.value)
        assert everything(job.train.parent) == before

    return refuse


def test_a_folder_of_something_else_is_refused_even_if_forced(job, refused, checkpoint_folder, monkeypatch):
    documents, checkpoints, here = (job.out.with_name(name) for name in ("documents", "checkpoints", "here"))
    documents.mkdir(parents=True)
    (documents / "thesis.txt").write_text("years of work")
    shutil.copytree(checkpoint_folder, checkpoints / "one")
    for folder in (documents, checkpoints, job.train.parent):
        for force in (False, True):
            refused(job, "neither empty nor a checkpoint", out=folder, force=force)
    refused(job, "expected a folder, found a file", out=job.train)
    here.mkdir()
    monkeypatch.chdir(here)
    for out in (".", "..", "/"):
        refused(job, "is the folder you are in", out=Path(out))


def test_a_parent_that_is_a_file_or_cannot_be_written_to(job, refused):
    refused(job, r".*: cannot be written \(", out=job.train / "x")
    refused(job, r"/proc/x/y: cannot be written \(", out=Path("/proc/x/y"))
    # a name for it, but none for the hidden folder beside it
    refused(job, "cannot be written", out=job.out.with_name("x" * 250))
    assert not job.out.parent.exists()  # what was made on the way is gone


def test_a_checkpoint_is_replaced_only_on_demand_and_an_empty_folder_is_filled(job, refused, checkpoint_folder):
    shutil.copytree(checkpoint_folder, job.out)
    (job.out / "NOTES.md").write_text("my notes")
    refused(job, "contains a checkpoint; continue its training with --resume, replace it with --force")
    train(replace(job, force=True))
    assert load(job.out).card.title == "Backwards"
    assert (job.out / "NOTES.md").read_text() == "my notes"
    empty = replace(job, out=job.out.parent / "empty" / "reverse")
    empty.out.mkdir(parents=True)
    train(empty)
    assert load(empty.out).card.title == "Backwards"
    assert sorted(os.listdir(empty.out.parent)) == ["reverse", "reverse.training"]
    assert sorted(os.listdir(empty.out.with_name("reverse.training"))) == BESIDE


def test_what_a_killed_save_took_away_is_put_back_and_a_folder_that_was_deleted_cannot_be_resumed(
    job, refused, monkeypatch
):
    job = with_settings(job, epochs=2)
    train_and_stop(job, monkeypatch)
    job.out.rename(job.out.with_name(".reverse.abcdefgh.replaced"))
    train(replace(job, resume=True))  # without --force
    assert load(job.out).card.title == "Backwards"
    assert sorted(os.listdir(job.out.parent)) == ["reverse", "reverse.training"]
    shutil.rmtree(job.out)
    longer = with_settings(job, epochs=3)
    refused(longer, r"reverse: this folder is gone, and with it the best epoch so far", resume=True)
    assert not job.out.exists()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_a_second_training_is_refused_but_the_lock_of_a_killed_one_holds_nobody_up(job, refused):
    told, tell = os.pipe()
    other = os.fork()
    if not other:
        with claimed(job.out, resume=False, force=False):
            os.write(tell, b"held")
            signal.pause()
    try:
        assert os.read(told, 4) == b"held"
        for resume in (False, True):
            refused(job, "another training process is writing there", resume=resume)
    finally:
        os.kill(other, signal.SIGKILL)
        os.waitpid(other, 0)
    assert job.out.with_name("reverse.training").joinpath("lock").exists()
    train(job)
    assert sorted(os.listdir(job.out.with_name("reverse.training"))) == BESIDE
