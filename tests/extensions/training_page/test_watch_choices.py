"""What a visitor may choose of a training is a command that the trainer takes and a page shows, or one sentence."""

import io
import itertools
import re
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import pytest

from glassformer.extensions.training.train_command import config_of
from glassformer.extensions.training_page import watch_choices as module
from glassformer.extensions.training_page.training_panels import in_lines
from glassformer.extensions.training_page.trainings import MOST_MINUTES
from glassformer.extensions.training_page.watch_choices import (
    LIMITS,
    OWN,
    PRESETS,
    TASKS,
    Choices,
    compared,
    n_parameters,
    packed,
    plan,
    read_pairs,
    shown,
)
from glassformer.shared.model_notes import effort
from transformer.__main__ import main
from transformer.errors import DataError, QueryError
from transformer.model.position_kinds import KINDS
from transformer.model.transformer import Transformer

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
def test_a_preset_is_commands_of_the_trainer(name, monkeypatch):
    chosen, made = PRESETS[name][2], plan(PRESETS[name][2])
    fewer = ("--longest", "8", "--train", "20000") if chosen.compare else ()
    assert made.commands[0] == ("task", chosen.task, "--out", "data", *fewer)
    models = compared(chosen)
    assert len(made.trains) == len(models)
    for train, model in zip(made.trains.values(), models.values(), strict=True):
        options = parsed(list(train), monkeypatch)
        config = config_of(SimpleNamespace(**options))
        assert (config.n_encoder_layers, config.n_decoder_layers) == (model.layers, model.layers)
        for name, value in vars(model).items():
            assert getattr(config, "n_heads" if name == "heads" else name, value) == value
        assert (config.score_scale, config.activation) == (None if model.scaled else 1.0, "relu")
        assert config.final_norm == (model.norm == "pre" and model.norm_kind != "none")
        assert options["causal_mask"] == model.causal_mask
        assert bool(options["warmup"]) == chosen.warmup
        assert options["peak_rate"] == chosen.rate
        assert options["snapshots"] == (12 if chosen.compare else 24)
        assert options["max_minutes"] == pytest.approx(chosen.minutes / len(models))
        assert options["card"].name in made.files
    assert plan(replace(chosen, minutes=600)).minutes == MOST_MINUTES


def test_other_norms_a_gate_and_dropout_inside_are_options_of_the_trainer(monkeypatch):
    chosen = replace(Choices(), norm_kind="rms", gated=True, norm="post")
    [train] = plan(chosen).trains.values()
    words = [*train, "--attention-dropout", "0.25", "--ffn-dropout", "0.5"]
    config = config_of(SimpleNamespace(**parsed(words, monkeypatch)))
    assert (config.norm_kind, config.gated, config.activation, config.norm) == ("rms", True, "silu", "post")
    assert (config.dropout, config.attention_dropout, config.ffn_dropout) == (0.0, 0.25, 0.5)
    assert config.count_parameters() == sum(one.numel() for one in Transformer(config).parameters())


def test_each_model_from_minimal_to_complete_has_one_part_more():
    models = list(compared(replace(Choices(), compare="parts", heads=4)).values())
    changes = [
        [(name, value) for name, value in vars(after).items() if value != vars(before)[name]]
        for before, after in itertools.pairwise(models)
    ]
    assert changes == [
        [("causal_mask", True)], [("positions", "learned")], [("scaled", True)], [("heads", 4)], [("residual", True)],
        [("norm_kind", "layer")], [("layers", 2)],
    ]  # fmt: skip
    assert models[-1] == replace(Choices(), compare="parts", heads=4)
    one_layer = compared(replace(Choices(), compare="parts", layers=1))  # with one head
    assert list(one_layer) == ["minimal", "causal_mask", "positions", "scaled", "residual", "norm_kind"]
    assert {str(module.label_of(f"my-{end}")) for end in one_layer} >= {"minimal", "+ scale", "+ residual connections"}


def test_models_of_all_positions_are_alike_and_read_as_far_as_they_are_asked(tmp_path):
    made = plan(PRESETS["lengths"][2])
    assert [name.partition("-")[2] for name in made.trains] == [kind for kind in KINDS if kind != "none"]
    [_, far] = [words for words in made.commands if words[0] == "task"]
    assert main([*far[:3], str(tmp_path), *far[4:]]) == 0
    longest = max(map(len, (tmp_path / "test.tsv").read_text().replace("\n", "\t").split("\t")))
    words = [" ".join(words) for words in made.trains.values()]
    assert {re.search(r"--max-len (\d+)", one)[1] for one in words} == {str(longest + 1)}
    assert len({re.sub(r"--(positions|out|card) \S+", "", one) for one in words}) == 1
    scored = [words for words in made.commands if words[0] == "evaluate"]
    assert [words[1] for words in scored] == list(made.trains)
    assert {words[3] for words in scored} == {"far/test.tsv"}
    own = plan(replace(Choices(), task=OWN, compare="positions"), read_pairs(PAIRS, label="x"))
    assert {words[3] for words in own.commands if words[0] == "evaluate"} == {"dev.tsv"}


@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_known_by_the_program_and_fits(task, tmp_path):
    """Its characters and its longest side are those that the form counts with."""
    assert main(["task", task, "--out", str(tmp_path)]) == 0
    text = "".join((tmp_path / f"{part}.tsv").read_text() for part in ("train", "dev", "test"))
    assert len(set(text) - {"\t", "\n"}) == TASKS[task].characters
    sides = text.replace("\n", "\t").split("\t")
    assert max(map(len, sides)) + 1 == TASKS[task].longest


def test_parameters_are_as_many_as_the_trainer_makes_and_too_many_are_refused_with_a_remedy():
    assert n_parameters(plan(Choices(layers=1))) == 120_576  # what the trainer says of one layer
    assert n_parameters(plan(Choices(layers=4))) <= 500_000
    with pytest.raises(QueryError, match=r"would have 5\d\d,\d\d\d parameters.* Choose fewer layers\."):
        plan(Choices(layers=5))


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
    with zipfile.ZipFile(io.BytesIO(packed(SimpleNamespace(outs={out.name: out}, plan=made), "Über das."))) as archive:
        assert sorted(archive.namelist()) == [
            "card.json", "commands.txt", "reverse-model.snapshots/3.safetensors.xz", "reverse-model/config.json",
        ]  # fmt: skip
        assert archive.read("commands.txt").decode().splitlines() == ["# Über das.", *shown(made.commands)]


def test_the_effort_in_words_without_what_is_no_number():
    record = {"epochs": 17, "target_tokens": 10_856_421, "seconds": 4712.2}
    assert effort(record) == "17 epochs, 10,856,421 target tokens, 79 min"
    assert effort({"epochs": 1, "seconds": 42}) == "1 epoch, 42 s"
    assert effort({"seconds": 7300}) == "2 h 2 min"
    for odd in (None, "many", -1, True, float("inf"), 10**400, [3]):
        assert effort({"epochs": odd, "target_tokens": odd, "seconds": 60}) == "60 s"


def test_a_long_command_is_broken_before_options_and_stays_the_same_and_one_with_quotes_is_left_alone():
    command = "python -m transformer train " + " ".join(f"--option{place} value{place}" for place in range(12))
    broken = in_lines(command)
    lines = broken.split("\n")
    assert len(lines) > 2
    assert max(map(len, lines)) <= 92
    assert all(line.startswith("    --option") for line in lines[1:])
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert " ".join(broken.replace("\\\n", " ").split()) == command
    quoted = (f"train {sign}{'a --b ' * 40}{sign}" for sign in ("'", '"', "\\", "\n"))
    for alone in ("train --out x", *quoted):
        assert in_lines(alone) == alone
