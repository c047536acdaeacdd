"""The checkpoints that are shipped are whole, described and small, and their examples run."""

import csv
import hashlib
from pathlib import Path

import pytest
import torch

import transformer
from transformer.checkpoint.save import CURVE
from transformer.i18n import ENGLISH, languages
from transformer.i18n import said as said_in

FOLDER = Path(__file__).resolve().parents[1] / "checkpoints"
LEAK = "reverse-leak"  # trained on a leak on purpose: it writes nothing
FILLS = "palindrome"  # an encoder alone: it writes nothing, and has no target
SHIPPED = ["addition", "en-fr", FILLS, "reverse", LEAK, "zh-en"]
FOUND = sorted(
    path.name for path in FOLDER.iterdir() if path.is_dir() and path.suffix != ".snapshots" and path.name[0] != "."
)
SAID = ("title", "description", "source_language", "target_language", "data")
MEGABYTE = 1_000_000
MOST_BYTES = 60 * MEGABYTE  # of all, so that a clone stays quick
MOST_IN_A_FILE = 50 * MEGABYTE  # above it a git host complains


@pytest.fixture(scope="module", params=SHIPPED)
def folder(request):
    return FOLDER / request.param


@pytest.fixture(scope="module")
def checkpoint(folder):
    torch.set_num_threads(1)
    return transformer.load(folder)


def test_its_card_is_whole_and_describes_these_very_files(folder, checkpoint):
    card, config = checkpoint.card, checkpoint.config
    assert (checkpoint.warnings, card.other) == ((), {})
    tokenizers = {"pieces.model"} if config.shared_vocab else {"source.model", "target.model"}
    described = {"config.json", "model.safetensors"} | tokenizers
    assert set(card.sha256) == described == {path.name for path in folder.iterdir()} - {"card.json", CURVE}
    for name, expected in card.sha256.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected, name
    n_parameters = sum(tensor.numel() for tensor in checkpoint.model.parameters())
    assert card.parameters == n_parameters == config.count_parameters()
    said = {name: getattr(card, name) for name in SAID}
    assert [name for name, text in said.items() if not text.strip()] == ["target_language"] * (checkpoint.name == FILLS)
    assert card.licence.strip()
    assert card.examples
    assert all(example.strip() for example in card.examples)
    for language in set(languages()) - {ENGLISH}:
        assert all(said_in(text, language) != text for text in said.values() if text)
    assert "train" in card.training["command"]
    assert len(card.training["sha256"]) == 64
    assert card.scores
    for score in card.scores:
        assert score["file"]
        assert len(score["sha256"]) == 64
        assert "measure" in score or 0 <= score["chrf"] <= 100
    with (folder / CURVE).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    steps = [int(row["step"]) for row in rows]
    assert steps == sorted(steps) != []
    assert {"loss", "dev_loss"} <= set(rows[0])
    assert all(float(row["loss"]) > 0 for row in rows)


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
        "Xiao Mei is beautiful and beautiful.",  # an example of what 人 attends to; its translation is half right
    ]


def test_these_are_shipped_and_they_are_small_enough_to_clone():
    assert FOUND == SHIPPED
    sizes = {str(path): path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()}
    assert sum(sizes.values()) <= MOST_BYTES
    assert [path for path, size in sizes.items() if size > MOST_IN_A_FILE] == []
