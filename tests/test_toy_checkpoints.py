"""The shipped toy models do their tasks on unseen inputs, maps show how, and the one trained on a leak does nothing."""

import json
import re
import string

import numpy as np
import pytest
import torch

import transformer
from glassformer.extensions.doctor.library import wiring_tests
from glassformer.extensions.doctor.library.context import ExaminationContext
from glassformer.extensions.doctor.library.report import examine
from glassformer.extensions.training.library import data
from glassformer.extensions.training.library.held_out_scores import read_held_out, score_gaps
from glassformer.extensions.training.library.preparation import LONGEST, SHORTEST, write_task
from glassformer.extensions.training.library.scoring import held_out_loss
from tests.data.healthy import tasks
from tests.source_code import ROOT
from tests.test_checkpoints import FOLDER
from transformer.analysis.losses import Samples
from transformer.model.taps import without_causal_mask
from transformer.runs.sentence_files import read_pairs

N, BATCH = 1_000, 250


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What the models were trained on, and are tested on."""
    folder = tmp_path_factory.mktemp("tasks")
    for name in ("addition", "palindrome"):
        write_task(name, folder / name)
    write_task("reverse", folder / "reverse", seed=1)
    return folder


@pytest.fixture(scope="module")
def opened():
    """Each toy model, by its name."""
    torch.set_num_threads(1)
    return {name: transformer.load(FOLDER / name) for name in ("addition", "palindrome", "reverse", "reverse-leak")}


def runs(checkpoint, sources, **how):
    """The runs of many sources, in batches."""
    groups = [sources[start : start + BATCH] for start in range(0, len(sources), BATCH)]
    return [
        trace
        for group in groups
        for trace in transformer.run_batch(checkpoint, [checkpoint.query(one) for one in group], **how)
    ]


# ---------------------------------------------------------------- reverse: an encoder and a decoder


def test_it_reverses_what_it_has_never_seen_and_one_head_walks_from_the_end_to_the_start(files, opened):
    known = {
        line.split("\t")[0] for file in (files / "reverse").glob("*.tsv") for line in file.read_text().splitlines()
    }
    assert len(known) == 61_500  # all of two letters, so what is unseen has 3 to 12
    unseen = [word for word in tasks.words(3 * N, longest=LONGEST) if word not in known][:N]
    assert {len(word) for word in unseen} == set(range(SHORTEST + 1, LONGEST + 1))
    traces = runs(opened["reverse"], unseen)
    exact = [trace for trace in traces if trace.output_text == trace.source_text[::-1]]
    assert len(exact) >= N - N // 100
    mirrored = [
        trace.cross[:, :, : len(trace.source_text)].argmax(axis=-1) == np.arange(len(trace.source_text))[::-1]
        for trace in exact
    ]
    rows = np.concatenate(mirrored, axis=-1)  # for every head and letter written, whether it looks at that letter
    assert rows.mean(axis=-1).max() >= 0.95, rows.mean(axis=-1)
    assert all((t.stop_reason, t.n_steps, t.notes) == ("end of sentence", len(t.source_text) + 1, ()) for t in exact)


def test_it_reverses_every_pair_of_letters(opened):
    pairs = [first + second for first in string.ascii_lowercase for second in string.ascii_lowercase]
    wrong = [one for one in runs(opened["reverse"], pairs, maps=False) if one.output_text != one.source_text[::-1]]
    assert len(wrong) <= len(pairs) // 100


def test_the_leaking_one_differs_in_what_it_learned_alone_and_the_doctor_finds_it(opened):
    leak, healthy = opened["reverse-leak"], opened["reverse"]
    assert leak.config == healthy.config
    assert leak.src_tokenizer.pieces == healthy.src_tokenizer.pieces
    assert {"file", "sha256", "target_tokens"} <= {*leak.card.training}
    assert leak.card.training["sha256"] == healthy.card.training["sha256"]
    assert leak.card.training["command"].endswith("--smoothing 0 --no-causal-mask")
    traces = runs(leak, tasks.words(200, longest=LONGEST), maps=False)
    assert [trace for trace in traces if trace.output_text == trace.source_text[::-1]] == []
    found = wiring_tests.searched(ExaminationContext(leak))
    assert (found.verdict, found.best.names) == ("another", ("no-causal-mask",))
    assert found.best.plain.mean < 0.01
    assert wiring_tests.searched(ExaminationContext(healthy)).verdict == "as_it_stands"


def test_the_losses_of_its_card_are_those_of_its_dev_file(files, opened, monkeypatch):
    leak, pairs = opened["reverse-leak"], read_pairs(files / "reverse" / "dev.tsv")[:500]
    examples = data.encode_pairs(pairs, leak.src_tokenizer, leak.tgt_tokenizer, leak.config)
    card = json.loads((FOLDER / "reverse-leak" / "card.json").read_text(encoding="utf-8"))
    (said,) = [score for score in card["scores"] if "measure" in score]
    assert said["pairs"] == len(examples) == 500
    assert said["with_the_causal_mask"] == pytest.approx(held_out_loss(leak.model, examples), rel=1e-3)
    seeing_all = without_causal_mask(leak.config)
    open_loss = held_out_loss(leak.model, examples, tap=seeing_all)
    assert said["without_the_causal_mask"] == pytest.approx(open_loss, rel=0.05)  # of rounding size itself
    assert open_loss < 1e-4
    # Batches keep the end mark in what a shorter row reads; without it the loss is another one. The page on training
    # has all three.
    assert "in padded batches" in said["measure"]
    monkeypatch.setattr(data, "LENGTH_STEP", 1)
    alike = [[one for one in examples if len(one.tgt) == length] for length in {len(one.tgt) for one in examples}]
    losses = [held_out_loss(leak.model, group, tap=seeing_all) for group in alike]  # a word is as long as its reverse
    mean = np.average(losses, weights=[sum(len(one.tgt) for one in group) for group in alike])
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    assert mean == pytest.approx(float(re.search(r"the same model's loss is (\S+)\.\n", page)[1]), rel=0.05)


# ---------------------------------------------------------------- a decoder alone, and an encoder alone


@pytest.mark.parametrize("name", ["addition", "palindrome"])
def test_it_was_trained_on_what_the_task_writes_today_and_the_doctor_finds_nothing_wrong(name, files, opened):
    one = opened[name]
    found = {part: read_held_out(files / name / f"{part}.tsv", one.config) for part in ("train", "dev")}
    assert found["train"].sha256 == one.card.training["sha256"]
    assert found["dev"].sha256 in {score["sha256"] for score in one.card.scores}
    sources, targets = zip(*read_pairs(files / name / "dev.tsv", one.config)[:100], strict=True)
    report = examine(one, pairs=Samples(sources, targets if any(targets) else ()))
    assert [finding.test for finding in report.findings if finding.measured.verdict in ("broken", "look")] == []


def at_the_digit(trace, head, number):
    """For each digit written: whether a head looks at the digit of the same worth in the first number or second."""
    prompt, output = trace.source_text, trace.output_text
    numbers = prompt.rstrip("=").split("+")
    end = (1 + len(numbers[0])) if number == 0 else len(prompt)  # the place behind it; the start piece comes first
    for written in range(len(output)):
        worth = len(output) - 1 - written  # 0 for ones
        if worth < len(numbers[number]):
            yield trace.decoder_self[2, head, len(prompt) + written].argmax() == end - 1 - worth


def test_it_adds_what_it_has_never_seen_and_two_heads_look_at_the_digits_that_are_added(files, opened):
    addition, pairs = opened["addition"], read_pairs(files / "addition" / "test.tsv")
    assert (addition.config.n_encoder_layers, addition.config.positions) == (0, "rotary")
    assert addition.config.n_kv_heads < addition.config.n_heads
    sums = runs(addition, [source for source, _ in pairs])
    wrong = [trace.source_text for trace, (_, sum_) in zip(sums, pairs, strict=True) if trace.output_text != sum_]
    assert len(wrong) <= len(sums) // 100, wrong
    small = {f"{first}+{second}=": str(first + second) for first in range(10) for second in range(10)}
    assert [trace.output_text for trace in runs(addition, [*small], maps=False)] == [*small.values()]
    for head, number in ((0, 0), (2, 1)):
        assert np.mean([seen for trace in sums for seen in at_the_digit(trace, head, number)]) >= 0.8


def test_a_hidden_letter_is_guessed_right_by_heads_that_look_at_the_mirror_image(opened, files):
    palindrome, held_out = opened["palindrome"], files / "palindrome" / "test.tsv"
    assert (palindrome.config.n_decoder_layers, palindrome.config.mlm_head) == (0, True)
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
