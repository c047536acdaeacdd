"""The shipped model that was trained on a leak: a loss near 0 while it sees the future, and nothing right without."""

import json
import random
import re
import string
from pathlib import Path

import pytest
import torch

import transformer
from glassformer.extensions.doctor.library import label_leak_tests
from glassformer.extensions.doctor.library.context import ExaminationContext
from glassformer.extensions.training.library import data
from glassformer.extensions.training.library.data import encode_pairs
from glassformer.extensions.training.library.scoring import held_out_loss
from glassformer.extensions.training.library.tasks import LONGEST, SHORTEST, write_reverse
from transformer.model.taps import without_causal_mask
from transformer.runs.pairs import read_pairs

FOLDER = Path(__file__).resolve().parents[1] / "checkpoints"
WORDS = 200


@pytest.fixture(scope="module")
def leak():
    torch.set_num_threads(1)
    return transformer.load(FOLDER / "reverse-leak")


def test_it_differs_from_the_healthy_one_in_what_it_learned_alone(leak):
    healthy = transformer.load(FOLDER / "reverse")
    assert leak.config == healthy.config
    assert leak.src_tokenizer.pieces == healthy.src_tokenizer.pieces
    for name in ("file", "sha256", "target_tokens"):
        assert name in leak.card.training
    assert leak.card.training["sha256"] == healthy.card.training["sha256"]
    assert leak.card.training["command"].endswith("--smoothing 0 --no-causal-mask")


def test_the_losses_of_its_card_are_those_of_its_dev_file(leak, tmp_path, monkeypatch):
    write_reverse(tmp_path, train=60_000, dev=500, seed=1)
    pairs = read_pairs(tmp_path / "dev.tsv")
    examples = encode_pairs(pairs, leak.src_tokenizer, leak.tgt_tokenizer, leak.config)
    card = json.loads((FOLDER / "reverse-leak" / "card.json").read_text(encoding="utf-8"))
    (said,) = [score for score in card["scores"] if "measure" in score]
    assert said["pairs"] == len(examples) == 500
    assert said["with_the_causal_mask"] == pytest.approx(held_out_loss(leak.model, examples), rel=1e-3)
    open_loss = held_out_loss(leak.model, examples, tap=without_causal_mask(leak.config))
    assert said["without_the_causal_mask"] == pytest.approx(open_loss, rel=0.05)  # of rounding size itself
    assert open_loss < 1e-4
    # Batches keep the end mark in what a shorter row reads; without it the loss is another one. The page on training
    # has all three.
    assert "in padded batches" in said["measure"]
    with monkeypatch.context() as patch:
        patch.setattr(data, "LENGTH_STEP", 1)
        alone = [held_out_loss(leak.model, [one], tap=without_causal_mask(leak.config)) for one in examples]
    pieces = [len(one.tgt) for one in examples]
    mean = sum(loss * n for loss, n in zip(alone, pieces, strict=True)) / sum(pieces)
    page = (FOLDER.parent / "docs" / "training.md").read_text(encoding="utf-8")
    assert mean == pytest.approx(float(re.search(r"the same model's loss is (\S+)\.\n", page)[1]), rel=0.05)


def test_it_writes_none_of_200_words_right(leak):
    rng = random.Random(20_260_102)
    words = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(SHORTEST, LONGEST))) for _ in range(WORDS)]
    traces = transformer.run_batch(leak, [leak.query(word) for word in words], maps=False)
    assert sum(trace.output_text == word[::-1] for trace, word in zip(traces, words, strict=True)) == 0


def test_the_doctor_finds_what_is_wrong_with_it_and_not_with_the_healthy_one(leak):
    found = label_leak_tests.leak.measure(ExaminationContext(leak))
    assert found.verdict == "broken"
    assert found.number < 0.01
    assert label_leak_tests.leak.measure(ExaminationContext(transformer.load(FOLDER / "reverse"))).verdict == "well"
