"""The checkpoints that are shipped: whole, described, small, and their examples run."""

import csv
import hashlib
import json
from pathlib import Path

import pytest
import torch

import transformer
from transformer.checkpoint.save import CURVE
from transformer.i18n import ENGLISH, languages, said

FOLDER = Path(__file__).resolve().parents[1] / "checkpoints"
LEAK = "reverse-leak"  # trained on a leak on purpose: it writes nothing
FILLS = "palindrome"  # an encoder alone: it writes nothing, and has no target
SHIPPED = ["addition", "en-fr", FILLS, "reverse", LEAK, "zh-en"]
FOUND = sorted(
    path.name for path in FOLDER.iterdir() if path.is_dir() and path.suffix != ".snapshots" and path.name[0] != "."
)
MEGABYTE = 1_000_000
MOST_BYTES = 60 * MEGABYTE  # of all, so that a clone stays quick
MOST_IN_A_FILE = 50 * MEGABYTE  # above it a git host complains


@pytest.fixture(scope="module", params=sorted({*SHIPPED, *FOUND}))
def folder(request):
    return FOLDER / request.param


@pytest.fixture(scope="module")
def checkpoint(folder):
    torch.set_num_threads(1)
    return transformer.load(folder)


def test_it_loads_without_a_warning(checkpoint):
    assert checkpoint.warnings == ()


@pytest.mark.parametrize("field", ["title", "description", "source_language", "target_language", "data"])
def test_its_card_is_said_in_every_language(checkpoint, field):
    english = getattr(checkpoint.card, field)
    if (checkpoint.name, field) == (FILLS, "target_language"):
        assert not english
        return
    for language in set(languages()) - {ENGLISH}:
        assert said(english, language) != english


def test_its_card_describes_these_very_files(folder, checkpoint):
    files = {path.name for path in folder.iterdir()}
    assert set(checkpoint.card.sha256) == files - {"card.json", CURVE}
    for name, expected in checkpoint.card.sha256.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected, name
    assert checkpoint.card.parameters == sum(tensor.numel() for tensor in checkpoint.model.parameters())
    assert checkpoint.card.parameters == checkpoint.config.count_parameters()


@pytest.mark.parametrize(
    "name", ["title", "description", "source_language", "target_language", "data", "licence", "examples"]
)
def test_its_card_says(checkpoint, name):
    value = getattr(checkpoint.card, name)
    if (checkpoint.name, name) == (FILLS, "target_language"):
        assert not value
        return
    assert value
    assert all(part.strip() for part in value) if isinstance(value, tuple) else value.strip()


def test_its_card_says_how_it_was_trained_and_how_good_it_is(checkpoint):
    assert "train" in checkpoint.card.training["command"]
    assert len(checkpoint.card.training["sha256"]) == 64
    assert checkpoint.card.scores
    for score in checkpoint.card.scores:
        assert score["file"]
        assert len(score["sha256"]) == 64
        assert "measure" in score or 0 <= score["chrf"] <= 100


def test_its_card_has_no_field_that_nobody_reads(checkpoint):
    assert checkpoint.card.other == {}


def test_every_example_runs(checkpoint):
    examples = checkpoint.card.examples
    traces = transformer.run_batch(checkpoint, [checkpoint.query(example) for example in examples])
    fills = checkpoint.name == FILLS
    for example, trace in zip(examples, traces, strict=True):
        assert trace.stop_reason == ("no decoder" if fills else "end of sentence"), example
        assert bool(trace.output_text.strip()) == (checkpoint.name not in (LEAK, FILLS)), example
        assert checkpoint.config.unk_id not in trace.src_ids, example


def test_an_example_of_zh_en_shows_what_it_can():
    """One of them once came out as "I don't know why she crying."."""
    checkpoint = transformer.load(FOLDER / "zh-en")
    outputs = [checkpoint.run(example).output_text for example in checkpoint.card.examples]
    assert outputs == [
        "I like coffee.",
        "Tom has two children.",
        "Can you help me?",
        "He goes to school by bus every day.",
        "If it rains tomorrow, we'll stay home.",
        "I don't know why she got angry.",
    ]


def test_its_learning_curve_can_be_drawn(folder):
    with (folder / CURVE).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    steps = [int(row["step"]) for row in rows]
    assert steps
    assert steps == sorted(steps)
    assert {"loss", "dev_loss"} <= set(rows[0])
    assert all(float(row["loss"]) > 0 for row in rows)


def test_it_holds_nothing_else(folder):
    files = {path.name for path in folder.iterdir()}
    shared = json.loads((folder / "config.json").read_text(encoding="utf-8"))["shared_vocab"]
    tokenizers = {"pieces.model"} if shared else {"source.model", "target.model"}
    assert files == {"config.json", "model.safetensors", "card.json", CURVE} | tokenizers


def test_they_are_small_enough_to_clone():
    sizes = {str(path): path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()}
    assert sum(sizes.values()) <= MOST_BYTES
    assert [path for path, size in sizes.items() if size > MOST_IN_A_FILE] == []


@pytest.mark.parametrize("name", SHIPPED)
def test_it_is_shipped(name):
    assert name in FOUND
