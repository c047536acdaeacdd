"""What is asked about writing one piece at a time has the answer of decoding written out."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.extensions.lessons.library.case import QuestionNotApplicable
from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.posing import pose
from glassformer.extensions.lessons.library.subjects import oracles
from tests.extensions.lessons.library.posed import case

CASES = [
    ("zh-en", "我们昨天看见那只猫。"),
    ("en-fr", "She never wants bread."),
    ("reverse", "lantern"),
    ("reverse", "abc"),
]


def step(n):
    return lessons()["one-piece"].steps[n - 1]


def next_logits(run, tgt_ids):
    """Of the piece that comes next, from the plain model."""
    with torch.no_grad():
        model = run.checkpoint.model
        read = [run.checkpoint.config.decoder_start_id, *tgt_ids]
        logits = model(torch.tensor([run.trace.src_ids]), torch.tensor([read]))
    return logits[0, -1].double().numpy()


def greedy(run, tgt_ids, most=128):
    """Write on, the most probable piece each time; padding and the start are never written."""
    ids = list(tgt_ids)
    while len(ids) < most and not (ids and ids[-1] == run.checkpoint.config.eos_id):
        logits = next_logits(run, ids)
        logits[list(run.trace.never_written)] = -np.inf
        ids.append(int(np.argmax(logits)))
    return ids


def log_softmax(logits):
    return logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())


@pytest.mark.parametrize(("name", "sentence"), CASES)
class TestOnASentence:
    def test_the_rank_of_a_guess(self, name, sentence):
        run = case(name, sentence)
        logits = next_logits(run, ())
        order = np.argsort(-logits, kind="stable")
        tokenizer = run.checkpoint.tgt_tokenizer
        for guess in ("the", "a", "Il", "She"):
            ids = [i for i in tokenizer.encode(guess).ids if not tokenizer.is_special(i)]
            found = oracles()["rank_of_guess"](case_with(run, guess))
            if not ids:
                assert found.variant == "unknown"
                continue
            rank = int(np.flatnonzero(order == ids[0])[0]) + 1
            assert abs(found.values["rank"] - rank) <= run.trace.n_steps  # pieces that may not be written stand apart
            assert found.values["p"] == pytest.approx(np.exp(log_softmax(logits)).max(), abs=1e-3)
            assert (found.variant == "first") == (ids[0] == run.trace.tgt_ids[0])

    def test_the_hardest_step_has_the_highest_entropy(self, name, sentence):
        run = case(name, sentence)
        rows = [log_softmax(next_logits(run, run.trace.tgt_ids[:n])) for n in range(run.trace.n_steps)]
        bits = np.array([-(np.exp(row) * row).sum() / np.log(2) for row in rows])
        try:
            answer = oracles()["hardest_step"](run)
        except QuestionNotApplicable:
            ahead = np.sort(bits)[-1] - np.sort(bits)[-2]
            assert len(bits) < 4 or (ahead < 0.201 and np.ptp(bits) > 0.199)
            return
        if answer.right == "equal":
            assert np.ptp(bits) < 0.201
        else:
            assert answer.right == f"step-{bits.argmax() + 1}"
            surest = np.exp(rows[int(bits.argmin())]).max()
            assert answer.variant == ("clear_sure" if surest >= 0.995 else "clear")
        assert answer.values["h"] == pytest.approx(bits.max(), abs=1e-3)

    def test_what_becomes_of_the_rest(self, name, sentence):
        run = case(name, sentence)
        posed = pose(step(4), run)
        at, alt = posed.picked["step"] - 1, posed.picked["alt_id"]
        written = greedy(run, (*run.trace.tgt_ids[:at], alt))
        before, after = list(run.trace.tgt_ids[at + 1 :]), written[at + 1 :]
        longer = max(len(before), len(after))
        same = sum(a == b for a, b in zip(before, after, strict=False))
        assert posed.answer.values["n"] == longer - same
        assert (posed.answer.right == "same") == (before == after)
        logits = next_logits(run, run.trace.tgt_ids[:at])
        allowed = [i for i in np.argsort(-logits) if i not in run.trace.never_written]
        assert allowed[1] == alt


def case_with(run, guess):
    return replace(run, given=guess)
