"""Scores by length are the app's own, sentence by sentence, and say what is longer than the training's sources."""

from pathlib import Path

import numpy as np
import pytest

from glassformer.extensions.training.library.length_scores import read_lengths, scores_by_length, write_lengths
from glassformer.extensions.training.library.preparation import write_task
from glassformer.extensions.training.library.run import train
from tests.extensions.training.library.training_jobs import make_job
from transformer.__main__ import main
from transformer.checkpoint.load import load
from transformer.errors import DataError
from transformer.runs.teacher_forcing import judge

SHIPPED = Path(__file__).parents[4] / "checkpoints"
WORDS = ("abc", "xyz", "bb", "glass", "abcdefghijkl", "lkjihgfedcba", "abcdefghijklm" * 4)


def test_each_is_what_runs_of_its_sentences_give_alone():
    checkpoint = load(SHIPPED / "reverse@219", inside=SHIPPED)  # which is right sometimes
    pairs = [(word, word[::-1]) for word in WORDS]
    found = {one.length: one for one in scores_by_length(checkpoint, pairs)}
    assert list(found) == [2, 3, 5, 12]  # the last one is too long for this model
    for length, one in found.items():
        group = [pair for pair in pairs if len(pair[0]) == length]
        runs = [checkpoint.run(checkpoint.query(source)) for source, _ in group]
        costs = [cost for run, (_, wanted) in zip(runs, group, strict=True) for cost in nats(checkpoint, run, wanted)]
        assert one.pairs == len(group)
        assert one.exact == np.mean([run.output_text == wanted for run, (_, wanted) in zip(runs, group, strict=True)])
        assert one.loss == pytest.approx(np.mean(costs), rel=1e-4)
        assert one.seen == -1  # its card is older
    assert len({one.exact for one in found.values()}) > 1


def nats(checkpoint, run, wanted):
    return judge(checkpoint, run.query, wanted).losses


def test_a_training_says_its_longest_source_and_the_command_what_is_longer(tmp_path, capsys):
    longest = 4
    write_task("reverse", tmp_path, train=300, dev=12, test=2, longest=longest)
    job = make_job(tmp_path)
    train(job)
    assert load(job.out).card.training["longest"] == longest
    (tmp_path / "far.tsv").write_text(f"ab\tba\n{'ab' * longest}\t{'ba' * longest}\n")
    words = ["evaluate", str(job.out), "--pairs", str(tmp_path / "far.tsv"), "--by-length", str(tmp_path / "l.csv")]
    assert main(words) == 0
    first, last = capsys.readouterr().out.splitlines()[-2:]
    assert not first.endswith("longer than in training")
    assert last.endswith("longer than in training")
    found = read_lengths(tmp_path / "l.csv")
    assert [(one.length, one.pairs, one.seen) for one in found] == [(2, 1, 1), (2 * longest, 1, 0)]
    write_lengths(tmp_path / "again.csv", found)
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "l.csv").read_bytes()
    assert read_lengths(tmp_path / "none.csv") == []
    assert main(["evaluate", str(job.out), "--by-length", "x.csv", "--alignments", "a", "b", "c"]) == 2
    assert "--by-length needs --pairs FILE" in capsys.readouterr().err


def test_a_model_that_writes_nothing_and_pairs_that_it_cannot_read_are_refused():
    with pytest.raises(DataError, match="palindrome: an encoder-only model writes nothing"):
        scores_by_length(load(SHIPPED / "palindrome"), [("abba", "")])
    with pytest.raises(DataError, match="reverse: cannot read any of the pairs; give shorter ones"):
        scores_by_length(load(SHIPPED / "reverse"), [("a" * 40, "a" * 40)])
