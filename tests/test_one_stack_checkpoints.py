"""The shipped decoder-only and encoder-only models do their tasks on what they have never seen, and maps show how."""

from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from glassformer.extensions.doctor.library.report import examine
from glassformer.extensions.training.library.evaluation import read_held_out, score_gaps
from glassformer.extensions.training.library.tasks import write_task
from transformer.runs.pairs import read_pairs
from transformer.trying.losses import Samples

FOLDER = Path(__file__).resolve().parents[1] / "checkpoints"
MOST_BYTES = 2_000_000


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    for name in ("addition", "palindrome"):
        write_task(name, folder / name)
    return folder


@pytest.fixture(scope="module", params=["addition", "palindrome"])
def either(request):
    torch.set_num_threads(1)
    return transformer.load(FOLDER / request.param)


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


def test_it_is_small_and_of_the_kind_that_it_is_shipped_for(either):
    assert sum(file.stat().st_size for file in either.folder.iterdir()) < MOST_BYTES
    config = either.config
    if either.name == "addition":
        assert (config.n_encoder_layers, config.positions) == (0, "rotary")
        assert config.n_kv_heads < config.n_heads
    else:
        assert (config.n_decoder_layers, config.mlm_head) == (0, True)


def test_it_was_trained_on_what_the_task_writes_today(either, files):
    found = {part: read_held_out(files / either.name / f"{part}.tsv", either.config) for part in ("train", "dev")}
    assert found["train"].sha256 == either.card.training["sha256"]
    assert found["dev"].sha256 in {score["sha256"] for score in either.card.scores}


def test_the_doctor_finds_nothing_wrong(either, files):
    pairs = read_pairs(files / either.name / "dev.tsv", either.config)[:100]
    sources, targets = zip(*pairs, strict=True)
    report = examine(either, pairs=Samples(sources, targets if any(targets) else ()))
    assert [finding.test for finding in report.findings if finding.measured.verdict in ("broken", "look")] == []


def test_it_adds_what_it_has_never_seen(sums):
    wrong = [(trace.source_text, trace.output_text) for trace, target in sums if trace.output_text != target]
    assert len(wrong) <= len(sums) // 100, wrong


def test_its_steps_are_those_of_one_pass(addition, sums):
    for trace, _ in sums[:40]:
        read, end = torch.tensor([trace.read_ids]), trace.n_tokens("decoder")
        with torch.inference_mode():
            logits = addition.model(torch.zeros(1, 0, dtype=torch.long), read)[0, trace.first_row : end]
        np.testing.assert_allclose(trace.log_probs, logits.log_softmax(-1).numpy(), atol=1e-4)


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


def test_no_sum_of_numbers_below_ten_is_wrong(addition):
    queries = [addition.query(f"{first}+{second}=") for first in range(10) for second in range(10)]
    outputs = [trace.output_text for trace in transformer.run_batch(addition, queries, maps=False)]
    assert outputs == [str(first + second) for first in range(10) for second in range(10)]


def test_a_hidden_letter_is_guessed_right(palindrome, files):
    record = score_gaps(palindrome, read_held_out(files / "palindrome" / "test.tsv", palindrome.config))
    assert record["exact"] >= 0.99, record


def test_every_head_of_the_last_layer_looks_at_the_mirror_image(palindrome, files):
    texts = [text for text, _ in read_pairs(files / "palindrome" / "test.tsv", palindrome.config)[:200]]
    whole, gaps = [], []
    for i, text in enumerate(texts):
        place = i % len(text)
        rows = palindrome.run(text).encoder_self[1, :, 1:-1]  # [head, letter, key]; the start piece comes first
        whole.append((rows.argmax(axis=-1) == np.arange(len(text), 0, -1)).mean(axis=-1))
        hidden = palindrome.run(f"{text[:place]}[MASK]{text[place + 1 :]}")
        gaps.append(hidden.encoder_self[1, :, place + 1].argmax(axis=-1) == len(text) - place)
    assert (np.mean(whole, axis=0) >= 0.95).all(), np.mean(whole, axis=0)
    assert (np.mean(gaps, axis=0) >= 0.95).all(), np.mean(gaps, axis=0)


def test_a_head_of_the_first_layer_finds_the_end(palindrome, files):
    texts = [text for text, _ in read_pairs(files / "palindrome" / "test.tsv", palindrome.config)[:200]]
    shares = [(palindrome.run(text).encoder_self[0, 3, 1:-1].argmax(axis=-1) == len(text) + 1).mean() for text in texts]
    assert np.mean(shares) >= 0.95
