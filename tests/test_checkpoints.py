"""The checkpoints that are shipped are whole, described and small, and their examples run."""

import csv
import hashlib

import pytest
import torch

import transformer
from tests.source_code import ROOT
from transformer.checkpoint.save import CURVE
from transformer.i18n import ENGLISH, languages, said

FOLDER = ROOT / "checkpoints"
LEAK = "reverse-leak"  # trained on a leak on purpose: it writes nothing
FILLS = "palindrome"  # an encoder alone: it writes nothing, and has no target
SHIPPED = ["addition", "en-fr", FILLS, "reverse", LEAK, "zh-en"]
SAID = ("title", "description", "source_language", "target_language", "data")
MOST_IN_A_FILE = 50_000_000  # bytes; above it a git host complains
TRANSLATED = (
    "I like coffee.",
    "Tom has two children.",
    "Can you help me?",
    "He goes to school by bus every day.",
    "If it rains tomorrow, we'll stay home.",
    "I don't know why she got angry.",  # once "I don't know why she crying."
    "Xiao Mei is beautiful and beautiful.",  # an example of what 人 attends to; its translation is half right
)


@pytest.fixture(scope="module", params=SHIPPED)
def checkpoint(request):
    torch.set_num_threads(1)
    return transformer.load(FOLDER / request.param)


def test_its_card_is_whole_and_describes_these_very_files(checkpoint):
    card, config, folder = checkpoint.card, checkpoint.config, FOLDER / checkpoint.name
    assert (checkpoint.warnings, card.other) == ((), {})
    described = {"config.json", "model.safetensors"}
    described |= {"pieces.model"} if config.shared_vocab else {"source.model", "target.model"}
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert described == files.keys() - {"card.json", CURVE}
    assert card.sha256 == {name: hashlib.sha256(files[name]).hexdigest() for name in described}
    n_parameters = sum(tensor.numel() for tensor in checkpoint.model.parameters())
    assert card.parameters == n_parameters == config.count_parameters()
    texts = {name: getattr(card, name) for name in SAID}
    assert [name for name, text in texts.items() if not text.strip()] == ["target_language"] * (folder.name == FILLS)
    for language in set(languages()) - {ENGLISH}:
        assert all(said(text, language) != text for text in texts.values() if text)
    assert card.licence.strip()
    assert card.examples
    assert all(example.strip() for example in card.examples)
    assert "train" in card.training["command"]
    assert card.scores
    assert all(score["file"] and ("measure" in score or 0 <= score["chrf"] <= 100) for score in card.scores)
    assert {len(one["sha256"]) for one in (card.training, *card.scores)} == {64}


def test_its_curve_of_losses_is_there(checkpoint):
    rows = list(csv.DictReader((FOLDER / checkpoint.name / CURVE).read_text(encoding="utf-8").splitlines()))
    steps = [int(row["step"]) for row in rows]
    assert steps == sorted(steps) != []
    assert {"loss", "dev_loss"} <= set(rows[0])
    assert all(float(row["loss"]) > 0 for row in rows)


def test_every_example_runs_and_those_of_zh_en_show_what_it_can(checkpoint):
    examples = checkpoint.card.examples
    traces = transformer.run_batch(checkpoint, [checkpoint.query(example) for example in examples])
    ended = "no decoder" if checkpoint.name == FILLS else "end of sentence"
    assert {trace.stop_reason for trace in traces} == {ended}
    assert {bool(trace.output_text.strip()) for trace in traces} == {checkpoint.name not in (LEAK, FILLS)}
    assert not [trace for trace in traces if checkpoint.config.unk_id in trace.src_ids]
    if checkpoint.name == "zh-en":
        assert tuple(checkpoint.run(example).output_text for example in examples) == TRANSLATED


def test_these_are_shipped_and_none_of_their_files_is_too_large():
    there = {path.name for path in FOLDER.iterdir() if path.is_dir() and path.name[0] != "."}
    assert [name for name in sorted(there) if not name.endswith(".snapshots")] == SHIPPED
    assert [path for path in FOLDER.rglob("*") if path.is_file() and path.stat().st_size > MOST_IN_A_FILE] == []
