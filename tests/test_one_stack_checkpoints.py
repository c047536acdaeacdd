"""The shipped decoder-only and encoder-only models do their tasks on unseen inputs, and maps show how."""

from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from glassformer.extensions.doctor.library.report import examine
from glassformer.extensions.training.library.preparation import write_task
from glassformer.extensions.training.library.scoring import read_held_out, score_gaps
from transformer.analysis.losses import Samples
from transformer.runs.sentence_files import read_pairs

FOLDER = Path(__file__).resolve().parents[1] / "checkpoints"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    for name in ("addition", "palindrome"):
        write_task(name, folder / name)
    return folder


@pytest.fixture(scope="module")
def addition():
    torch.set_num_threads(1)
    return transformer.load(FOLDER / "addition")


@pytest.fixture(scope="module")
def palindrome():
    torch.set_num_threads(1)
    return transformer.load(FOLDER / "palindrome")


@pytest.fixture(scope="module")
def sums(addition, files):
    """The runs of the whole test file, with what should come out."""
    pairs = read_pairs(files / "addition" / "test.tsv")
    queries = [addition.query(source) for source, _ in pairs]
    traces = [one for i in range(0, len(queries), 250) for one in transformer.run_batch(addition, queries[i : i + 250])]
    return list(zip(traces, [target for _, target in pairs], strict=True))


def test_each_is_of_the_kind_that_it_is_shipped_for(addition, palindrome):
    assert (addition.config.n_encoder_layers, addition.config.positions) == (0, "rotary")
    assert addition.config.n_kv_heads < addition.config.n_heads
    assert (palindrome.config.n_decoder_layers, palindrome.config.mlm_head) == (0, True)


@pytest.mark.parametrize("name", ["addition", "palindrome"])
def test_it_was_trained_on_what_the_task_writes_today_and_the_doctor_finds_nothing_wrong(name, files):
    one = transformer.load(FOLDER / name)
    found = {part: read_held_out(files / name / f"{part}.tsv", one.config) for part in ("train", "dev")}
    assert found["train"].sha256 == one.card.training["sha256"]
    assert found["dev"].sha256 in {score["sha256"] for score in one.card.scores}
    sources, targets = zip(*read_pairs(files / name / "dev.tsv", one.config)[:100], strict=True)
    report = examine(one, pairs=Samples(sources, targets if any(targets) else ()))
    assert [finding.test for finding in report.findings if finding.measured.verdict in ("broken", "look")] == []


def test_it_adds_what_it_has_never_seen_and_no_sum_of_numbers_below_ten_is_wrong(addition, sums):
    wrong = [(trace.source_text, trace.output_text) for trace, target in sums if trace.output_text != target]
    assert len(wrong) <= len(sums) // 100, wrong
    queries = [addition.query(f"{first}+{second}=") for first in range(10) for second in range(10)]
    outputs = [trace.output_text for trace in transformer.run_batch(addition, queries, maps=False)]
    assert outputs == [str(first + second) for first in range(10) for second in range(10)]


def at_the_digit(trace, layer, head, number):
    """For each digit written: whether a head looks at the digit of the same worth in the first number or second."""
    prompt, output = trace.source_text, trace.output_text
    numbers = prompt.rstrip("=").split("+")
    end = (1 + len(numbers[0])) if number == 0 else len(prompt)  # the place behind it; the start piece comes first
    for written in range(len(output)):
        worth = len(output) - 1 - written  # 0 for ones
        if worth < len(numbers[number]):
            yield trace.decoder_self[layer, head, len(prompt) + written].argmax() == end - 1 - worth


@pytest.mark.parametrize(("head", "number"), [(0, 0), (2, 1)])
def test_two_heads_look_at_the_digits_that_are_added(sums, head, number):
    seen = [found for trace, _ in sums for found in at_the_digit(trace, 2, head, number)]
    assert np.mean(seen) >= 0.8


def test_a_hidden_letter_is_guessed_right_by_heads_that_look_at_the_mirror_image(palindrome, files):
    held_out = files / "palindrome" / "test.tsv"
    record = score_gaps(palindrome, read_held_out(held_out, palindrome.config))
    assert record["exact"] >= 0.99, record
    whole, gaps, ends = [], [], []
    for i, (text, _) in enumerate(read_pairs(held_out, palindrome.config)[:100]):
        place = i % len(text)
        rows = palindrome.run(text).encoder_self[:, :, 1:-1].argmax(axis=-1)  # the start piece comes first
        whole.append((rows[1] == np.arange(len(text), 0, -1)).mean(axis=-1))
        ends.append((rows[0, 3] == len(text) + 1).mean())  # one head finds the end
        hidden = palindrome.run(f"{text[:place]}[MASK]{text[place + 1 :]}")
        gaps.append(hidden.encoder_self[1, :, place + 1].argmax(axis=-1) == len(text) - place)
    assert (np.mean(whole, axis=0) >= 0.95).all(), np.mean(whole, axis=0)
    assert (np.mean(gaps, axis=0) >= 0.95).all(), np.mean(gaps, axis=0)
    assert np.mean(ends) >= 0.95
