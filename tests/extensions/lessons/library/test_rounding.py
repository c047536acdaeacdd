"""No answer hangs on rounding, which differs by processor and number of threads."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.extensions.lessons.library.lesson import (
    QuestionNotApplicable,
    above,
    between,
    clear,
    counted,
    largest,
    only_rounding,
)
from glassformer.extensions.lessons.library.posing import pose
from glassformer.extensions.lessons.library.subjects import masks_questions
from glassformer.extensions.lessons.library.survey import SHIPPED, case_of
from tests.extensions.lessons.library.posed import NAMES, STEPS, TURN, case, picked, seeded
from transformer.analysis.mask_checks import Movement, PaddingMovement
from transformer.analysis.one_weight import hardest_step
from transformer.checkpoint.load import load
from transformer.errors import QueryError

FEW = 2
MOVED = 2e-6  # of each weight: makes a little more than another order of summing does


def moved(name):
    """The checkpoint as another processor would compute it."""
    checkpoint, rng = load(SHIPPED / name), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weights in checkpoint.model.parameters():
            weights.mul_(1 + MOVED * torch.randn(weights.shape, generator=rng))
    return checkpoint


def posed(step, of):
    try:
        found = pose(step, of)
    except (QuestionNotApplicable, QueryError) as why:
        return str(why.sentence)
    right = found.answer.right
    return right if isinstance(right, str) else pytest.approx(right, rel=1e-3), found.variant


@pytest.mark.parametrize("in_turn", [True, pytest.param(False, marks=pytest.mark.deep)])
@pytest.mark.parametrize("name", NAMES)
def test_each_step_has_the_same_answer_where_sums_are_rounded_in_another_way(name, in_turn):
    checkpoint, said = moved(name), seeded(name)[: 1 if in_turn else FEW]
    cases = {sentence: case_of(checkpoint, sentence) for sentence in said}
    for which, (lesson, n, step) in enumerate(STEPS):
        if step.on in ("", name) and not (in_turn and TURN[which % 6] != name != step.on):
            sentence = said[which % len(said)]  # few, so that steps share runs
            assert posed(step, cases[sentence]) == posed(step, case(name, sentence)), (lesson.name, n, sentence)


@pytest.mark.parametrize("by", [-1e-6, 0.0, 1e-6])
def test_what_lies_on_a_bar_has_no_answer(by):
    for call in (
        lambda: above(0.5 + by, 0.5),
        lambda: above(by),
        lambda: between((0.1, 0.3, 0.7), 0.3 + by, "abcd"),
        lambda: only_rounding(3e-4 + by),
        lambda: counted(np.array([True, False]), np.array([False, True]), str),
    ):
        with pytest.raises(QuestionNotApplicable, match="rounding would decide"):
            call()


def test_what_is_clear_has_one():
    assert [above(value, 0.5) for value in (0.49, 0.51)] == [False, True]
    assert [between((0.1, 0.3, 0.7), value, "abcd") for value in (0.05, 0.2, 0.5, 0.9)] == list("abcd")
    assert [only_rounding(value) for value in (0.0, 5e-5, 0.01)] == [True, True, False]
    assert counted(np.array([True, False]), np.array([False, True]), lambda n: "few" if n < 2 else "many") == "few"


@pytest.mark.parametrize("by", [-1e-6, 0.0, 1e-6])
def test_of_equals_the_first_is_taken(by):
    row = np.array([0.2, 0.4, 0.4 + by])
    assert largest(row) == hardest_step(row, range(3)) == 1
    assert list(clear(np.stack([row, np.array([0.2, 0.4, 0.5])]))) == [False, True]
    assert clear(np.ones((2, 1))).all()


@pytest.mark.parametrize("by", [-1e-6, 0.0, 1e-6])
def test_an_output_whose_choice_was_nearly_another_is_compared_with_nothing(by):
    own = case("reverse", "house")
    log_probs = own.trace.log_probs.copy()
    log_probs[1, (own.trace.tgt_ids[1] + 1) % log_probs.shape[1]] = log_probs[1].max() + by
    near = replace(own, run=lambda query: replace(own.trace, log_probs=log_probs))
    with pytest.raises(QuestionNotApplicable, match="rounding would decide"):
        near.another(max_new=30)


@pytest.mark.parametrize("target", [0.0, 1e-6])
def test_padding_that_moves_nothing_and_that_moves_a_last_digit_are_told_alike(monkeypatch, target):
    def found(*_, **__):
        one, other = (Movement(kept=np.zeros(3), taken=np.full(3, by), largest=10.0) for by in (0.5, target))
        return PaddingMovement(source=one, target=other)

    monkeypatch.setattr(masks_questions, "check_padding", found)
    run = picked(masks_questions.pads_that_fit, case("reverse", "house"))
    answer = masks_questions.sides_moved_without_mask(run)
    assert answer.right == "source"
    assert masks_questions.pads_move(run).right == "rounding"
