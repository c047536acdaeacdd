"""The shipped toy model reverses letters it has never seen, and its twin, trained on a leak, does nothing right."""

import json
import random
import re
import string
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from glassformer.extensions.doctor.library import wiring_tests
from glassformer.extensions.doctor.library.context import ExaminationContext
from glassformer.extensions.training.library import data
from glassformer.extensions.training.library.data import encode_pairs
from glassformer.extensions.training.library.preparation import LONGEST, SHORTEST, write_task
from glassformer.extensions.training.library.scoring import held_out_loss
from transformer.model.taps import without_causal_mask
from transformer.runs.sentence_files import read_pairs

FOLDER = Path(__file__).resolve().parents[1] / "checkpoints"
N, BATCH = 1_000, 250


def words(n, known=frozenset()):
    """Sequences that are in none of the training generator's files; those of two letters all are, so of 3 to 12."""
    rng, found = random.Random(20_260_101), {}
    while len(found) < n:
        letters = "".join(rng.choices(string.ascii_lowercase, k=rng.randint(SHORTEST, LONGEST)))
        if letters not in known:
            found[letters] = None
    return list(found)


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """The files that both were trained on."""
    folder = tmp_path_factory.mktemp("reverse")
    write_task("reverse", folder, seed=1)
    return folder


@pytest.fixture(scope="module")
def healthy():
    torch.set_num_threads(1)
    return transformer.load(FOLDER / "reverse")


@pytest.fixture(scope="module")
def leak():
    torch.set_num_threads(1)
    return transformer.load(FOLDER / "reverse-leak")


def on_anti_diagonal(trace):
    """For every head and every letter written: whether it looks at that letter. Bool [layer, head, query]."""
    n = len(trace.source_text)
    best = trace.cross[:, :, :n, :].argmax(axis=-1)  # [layer, head, query]
    return best == np.arange(n)[::-1]


def test_it_reverses_what_it_has_never_seen_and_one_head_walks_from_the_end_to_the_start(task, healthy):
    known = {line.split("\t")[0] for file in task.glob("*.tsv") for line in file.read_text().splitlines()}
    assert len(known) == 61_500
    letters = words(N, known)
    assert {len(row) for row in letters} == set(range(SHORTEST + 1, LONGEST + 1))
    groups = [letters[start : start + BATCH] for start in range(0, N, BATCH)]
    traces = [t for group in groups for t in transformer.run_batch(healthy, [healthy.query(row) for row in group])]
    exact = [trace for trace in traces if trace.output_text == trace.source_text[::-1]]
    assert len(exact) >= N - N // 100
    rows = np.concatenate([on_anti_diagonal(trace) for trace in exact], axis=-1)  # [layer, head, all rows]
    assert rows.mean(axis=-1).max() >= 0.95, rows.mean(axis=-1)
    assert all((t.stop_reason, t.n_steps, t.notes) == ("end of sentence", len(t.source_text) + 1, ()) for t in exact)


def test_it_reverses_every_pair_of_letters(healthy):
    pairs = [first + second for first in string.ascii_lowercase for second in string.ascii_lowercase]
    traces = transformer.run_batch(healthy, [healthy.query(pair) for pair in pairs], maps=False)
    wrong = [trace.source_text for trace in traces if trace.output_text != trace.source_text[::-1]]
    assert len(wrong) <= len(pairs) // 100, wrong


def test_the_leaking_one_differs_in_what_it_learned_alone_and_the_doctor_finds_it(leak, healthy):
    assert leak.config == healthy.config
    assert leak.src_tokenizer.pieces == healthy.src_tokenizer.pieces
    assert {"file", "sha256", "target_tokens"} <= {*leak.card.training}
    assert leak.card.training["sha256"] == healthy.card.training["sha256"]
    assert leak.card.training["command"].endswith("--smoothing 0 --no-causal-mask")
    traces = transformer.run_batch(leak, [leak.query(word) for word in words(200)], maps=False)
    assert [trace for trace in traces if trace.output_text == trace.source_text[::-1]] == []
    found = wiring_tests.searched(ExaminationContext(leak))
    assert (found.verdict, found.best.names) == ("another", ("no-causal-mask",))
    assert found.best.plain.mean < 0.01
    assert wiring_tests.searched(ExaminationContext(healthy)).verdict == "as_it_stands"


def test_the_losses_of_its_card_are_those_of_its_dev_file(task, leak, monkeypatch):
    examples = encode_pairs(read_pairs(task / "dev.tsv")[:500], leak.src_tokenizer, leak.tgt_tokenizer, leak.config)
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
    monkeypatch.setattr(data, "LENGTH_STEP", 1)
    alone = [held_out_loss(leak.model, [one], tap=without_causal_mask(leak.config)) for one in examples]
    pieces = [len(one.tgt) for one in examples]
    mean = sum(loss * n for loss, n in zip(alone, pieces, strict=True)) / sum(pieces)
    page = (FOLDER.parent / "docs" / "training.md").read_text(encoding="utf-8")
    assert mean == pytest.approx(float(re.search(r"the same model's loss is (\S+)\.\n", page)[1]), rel=0.05)
