"""What a visitor may choose of a training is a command that the trainer takes, within limits, or one sentence."""

import io
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import pytest

from glassformer.extensions.training_page.trainings import MOST_MINUTES
from glassformer.extensions.training_page.watch import watch_choices as module
from glassformer.extensions.training_page.watch.watch_choices import (
    LIMITS,
    MOST_LAYERS,
    OWN,
    PRESETS,
    TASKS,
    Choices,
    check,
    packed,
    plan,
    read_pairs,
    shown,
)
from transformer.__main__ import main
from transformer.errors import DataError, QueryError

PAIRS = "\n".join(
    f"{word} => {word[::-1]}" for word in ("ab", "cd", "abc", "bcd", "dab", "cab", "bad", "dcb", "da", "ca")
)


def parsed(words, monkeypatch):
    """What the trainer's own command line makes of a command."""
    found = []
    monkeypatch.setattr("glassformer.extensions.training.train_command._run", found.append)
    assert main(words) == 0
    return vars(found[0])


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_a_command_of_the_trainer(name, monkeypatch):
    chosen = PRESETS[name][2]
    task, train = plan(chosen).commands
    assert task == ("task", "reverse", "--out", "data")
    options = parsed(train, monkeypatch)
    assert options["causal_mask"] == chosen.causal_mask
    assert (options["layers"], options["heads"], options["norm"]) == (chosen.layers, chosen.heads, chosen.norm)
    assert bool(options["warmup"]) == chosen.warmup
    assert options["peak_rate"] == chosen.rate
    assert options["snapshots"] == 24
    assert options["max_minutes"] == chosen.minutes
    assert plan(replace(chosen, minutes=600)).minutes == MOST_MINUTES


@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_known_by_the_program_and_fits(task, tmp_path):
    """Its characters and its longest side are those that the form counts with."""
    assert main(["task", task, "--out", str(tmp_path)]) == 0
    text = (tmp_path / "train.tsv").read_text()
    assert len(set(text) - {"\t", "\n"}) == TASKS[task].characters
    sides = text.replace("\n", "\t").split("\t")
    assert max(map(len, sides)) + 1 == TASKS[task].longest


def test_parameters_are_as_many_as_the_trainer_makes_and_too_many_are_refused_with_a_remedy():
    assert check(Choices(layers=1)) == 120_576  # what the trainer says of one layer
    counts = [module.config_of(Choices(layers=n)).count_parameters() for n in range(1, MOST_LAYERS + 1)]
    most = sum(count <= 500_000 for count in counts)
    assert 0 < most < MOST_LAYERS
    assert check(Choices(layers=most)) <= 500_000
    with pytest.raises(QueryError, match=r"would have 5\d\d,\d\d\d parameters.* Choose fewer layers\."):
        plan(Choices(layers=most + 1))


def test_pairs_are_split_with_none_in_both_parts_and_long_ones_get_pieces_of_words():
    pairs = read_pairs(PAIRS, label="What was typed")
    assert len(pairs.train) == 9
    assert len(pairs.dev) == 1
    assert not set(pairs.train) & set(pairs.dev)
    assert pairs == read_pairs(PAIRS, label="again")
    made = plan(replace(Choices(), task=OWN), pairs)
    [train] = made.commands
    assert sorted(made.files) == ["card.json", "dev.tsv", "train.tsv"]
    assert made.files["train.tsv"].decode() == "".join(f"{s}\t{t}\n" for s, t in pairs.train)
    assert train[train.index("--pieces") + 1] == "char"
    assert train[train.index("--max-len") + 1] == "5"
    long = "".join(f"a sentence with many letters, {n}\tits target, which is long, too: {n}\n" for n in range(30))
    [train] = plan(replace(Choices(), task=OWN), read_pairs(long.encode(), label="f.tsv")).commands
    assert train[train.index("--pieces") + 1] == "unigram"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("ab\tba\nalone\n", r"What was typed, line 2: Expected a source and a target .* one text only"),
        ("\n".join(f"a{n}\t{'b' * 81}" for n in range(10)), r"line 1: The line has 81 characters; the limit is 80"),
        ("ab\tba\n" * 20, r"has 1 different pairs; give at least 10"),
        ("\n".join(f"{n}\t{n}" for n in range(LIMITS.lines + 1)), r"has 5,001 lines with text; the limit is 5,000"),
        ("x" * (LIMITS.n_bytes + 1), r"is larger than the limit"),
    ],
)
def test_bad_pairs_are_one_clear_sentence(given, said):
    with pytest.raises(DataError, match=said):
        read_pairs(given, label="What was typed")


def test_what_is_taken_home_is_whole(tmp_path):
    out = tmp_path / "reverse-model"
    for file in ("reverse-model/config.json", "reverse-model.snapshots/3.safetensors.xz", "reverse-model.training/x"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes(file.encode())
    (out / ".hidden").touch()
    made = plan(Choices())
    with zipfile.ZipFile(io.BytesIO(packed(SimpleNamespace(out=out, plan=made), "Über das."))) as archive:
        assert sorted(archive.namelist()) == [
            "card.json", "commands.txt", "reverse-model.snapshots/3.safetensors.xz", "reverse-model/config.json",
        ]  # fmt: skip
        assert archive.read("commands.txt").decode().splitlines() == ["# Über das.", *shown(made.commands)]
