"""The shipped toy model does its task on letters it has never seen, and its attention shows how."""

import itertools
import random
import string
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from glassformer.extensions.training.library.tasks import LONGEST, SHORTEST, write_reverse

FOLDER = Path(__file__).resolve().parents[1] / "checkpoints" / "reverse"
N, BATCH = 1_000, 250


def unseen(known, n=N):
    """Sequences that are in none of the training generator's files; those of two letters all are, so of 3 to 12."""
    rng, found = random.Random(20_260_101), {}
    while len(found) < n:
        letters = "".join(rng.choices(string.ascii_lowercase, k=rng.randint(SHORTEST, LONGEST)))
        if letters not in known:
            found[letters] = None
    return list(found)


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reverse")
    write_reverse(folder, seed=1)
    known = {line.split("\t")[0] for file in folder.glob("*.tsv") for line in file.read_text().splitlines()}
    assert len(known) == 61_500
    return unseen(known)


@pytest.fixture(scope="module")
def traces(letters):
    torch.set_num_threads(1)
    checkpoint = transformer.load(FOLDER)
    groups = [letters[start : start + BATCH] for start in range(0, N, BATCH)]
    return [
        trace
        for group in groups
        for trace in transformer.run_batch(checkpoint, [checkpoint.query(row) for row in group])
    ]


def on_anti_diagonal(trace):
    """For every head and every letter written: whether it looks at that letter. Bool [layer, head, query]."""
    n = len(trace.source_text)
    best = trace.cross[:, :, :n, :].argmax(axis=-1)  # [layer, head, query]
    return best == np.arange(n)[::-1]


def test_all_lengths_are_tried(letters):
    assert len(set(letters)) == N
    assert {len(row) for row in letters} == set(range(SHORTEST + 1, LONGEST + 1))


def test_it_reverses_every_pair_of_letters():
    checkpoint = transformer.load(FOLDER)
    pairs = ["".join(pair) for pair in itertools.product(string.ascii_lowercase, repeat=2)]
    traces = transformer.run_batch(checkpoint, [checkpoint.query(pair) for pair in pairs])
    wrong = [trace.source_text for trace in traces if trace.output_text != trace.source_text[::-1]]
    assert len(wrong) <= len(pairs) // 100, wrong


def test_it_reverses_what_it_has_never_seen(letters, traces):
    wrong = [(row, t.output_text) for row, t in zip(letters, traces, strict=True) if t.output_text != row[::-1]]
    assert len(wrong) <= N // 100, wrong[:10]


def test_one_head_walks_from_the_end_to_the_start(traces):
    exact = [trace for trace in traces if trace.output_text == trace.source_text[::-1]]
    rows = np.concatenate([on_anti_diagonal(trace) for trace in exact], axis=-1)  # [layer, head, all rows]
    assert rows.mean(axis=-1).max() >= 0.95, rows.mean(axis=-1)


def test_every_output_ends_and_reads_as_many_pieces_as_it_writes(traces):
    exact = [trace for trace in traces if trace.output_text == trace.source_text[::-1]]
    assert all(trace.stop_reason == "end of sentence" for trace in exact)
    assert all(trace.n_steps == len(trace.source_text) + 1 for trace in exact)
    assert all(trace.notes == () for trace in exact)
