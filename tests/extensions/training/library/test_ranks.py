"""Several processes learn what one learns, from the same batches, and end together when one cannot go on."""

import csv
import sys

import pytest

from glassformer.extensions.training.library.state import claimed
from tests.extensions.training.library.ranks import together
from tests.extensions.training.library.training_jobs import make_job, stored
from transformer.__main__ import main
from transformer.checkpoint.load import load
from transformer.checkpoint.snapshots import steps

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")


def options(job, name, *more):
    """A training without dropout, whose draws differ from process to process."""
    model = "--layers=1 --d-model=16 --heads=2 --d-ff=16 --src-vocab=40 --shared-vocab --pieces=char --dropout=0"
    how = "--epochs=2 --batch-tokens=800 --rate=0.01 --warmup=5 --precision=fp32 --device=cpu"
    files = [f"--train={job.train}", f"--dev={job.dev}", f"--out={job.out.with_name(name)}"]
    return ["train", *files, *model.split(), *how.split(), *more]


def rows(job, name):
    with (job.out.with_name(name) / "training.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def close(job, name, other):
    """Every step of the last fifty had the same loss."""
    losses, same = (stored(job.out.with_name(found))["place"]["recent"] for found in (name, other))
    assert len(losses) == len(same) > 10
    assert losses == pytest.approx(same, rel=0, abs=1e-4)


def test_two_processes_in_copies_or_in_shares_learn_what_one_learns(job, tmp_path):
    assert main(options(job, "one")) == 0
    whole = float(rows(job, "one")[0]["dev_loss"])
    for name, more in {
        "copies": ["--snapshots=3"],
        "shares": ["--shard", "--accumulate=3", "--average=2", "--snapshots=3"],
    }.items():
        first, second = together(options(job, name, *more), tmp_path)
        assert (first.status, second.status) == (0, 0), first.error + second.error
        assert "epoch 2: loss" in first.out
        assert second.out == ""
        close(job, name, "one")
        assert float(rows(job, name)[0]["dev_loss"]) == pytest.approx(whole, abs=2e-4)
    assert steps(job.out.with_name("shares")) == steps(job.out.with_name("copies")) != []
    assert load(job.out.with_name("shares")).warnings == ()


def test_a_batch_of_fewer_rows_than_processes_is_learned_from(tmp_path):
    job = make_job(tmp_path)
    job.train.write_text("".join(job.train.read_text().splitlines(keepends=True)[:20]))
    arguments = ["--batch-tokens=12", "--epochs=1", "--clip=1000"]
    assert main(options(job, "one", *arguments)) == 0
    ended = together(options(job, "three", *arguments), tmp_path, count=3)
    assert [one.status for one in ended] == [0, 0, 0], ended[0].error
    close(job, "three", "one")


def test_what_began_in_two_processes_goes_on_in_one_or_in_shares_and_says_that_it_is_not_equal(job, tmp_path, capsys):
    together(options(job, "x", "--epochs=1"), tmp_path)
    assert main(options(job, "x", "--resume")) == 0
    assert "will not be equal to the last bit" in capsys.readouterr().out
    assert [row["epoch"] for row in rows(job, "x")] == ["1", "2"]
    first, _ = together(options(job, "x", "--resume", "--shard", "--epochs=3"), tmp_path)
    assert first.status == 0, first.error
    assert "will not be equal to the last bit" in first.out


def refused(job, tmp_path, **limits):
    """What the first of two processes says; both end alike, and the second one is silent."""
    first, second = together(options(job, "x"), tmp_path, **limits)
    assert (first.status, second.status) == (2, 2), first.error + second.error
    assert second.error == ""
    (line,) = [line for line in first.error.split("\n") if line.startswith("error: ")]
    assert "Traceback" not in first.error
    return line


def test_both_refuse_what_one_refuses(job, tmp_path):
    out = job.out.with_name("x")
    with claimed(out, resume=False, force=False):
        assert "another training process is writing there" in refused(job, tmp_path)
    assert not out.exists()
    assert "x: the training cannot be written (" in refused(job, tmp_path, most_bytes=10_000)
    assert not (out.with_name("x.training") / "lock").exists()
