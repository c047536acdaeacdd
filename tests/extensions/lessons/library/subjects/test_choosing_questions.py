"""What is asked about temperature, top-p and draws has the answer of plain numpy on the logits."""

import dataclasses

import numpy as np
import pytest

from glassformer.extensions.lessons.library.case import Case, QuestionNotApplicable
from glassformer.extensions.lessons.library.subjects import decoding_questions
from tests.extensions.lessons.library.posed import RUNS, case_at

SENTENCES = [*RUNS, ("zh-en", "你知道火车站在哪里吗？")]


def case_of(name: str, sentence: str) -> Case:
    """A run of a shipped checkpoint, at the step that the pick finds."""
    return case_at(name, sentence, decoding_questions.open_choice)


def softmax(case: Case, step: int, temperature: float) -> np.ndarray:
    """The distribution by hand: no rule of these models closes a piece but padding and the start."""
    scores = case.trace.log_probs[step].astype(np.float64)
    scores[list(case.trace.never_written)] = -np.inf
    powers = np.exp((scores - scores.max()) / temperature)
    return powers / powers.sum()


def bits(probs: np.ndarray) -> float:
    return float(-sum(p * np.log2(p) for p in probs if p > 0))


@pytest.mark.parametrize(("name", "sentence"), SENTENCES)
def test_temperature_and_top_p_are_what_numpy_makes_of_the_logits(name: str, sentence: str) -> None:
    case = case_of(name, sentence)
    before = softmax(case, int(case.picked["step"]) - 1, 1.0)
    squared, roots = before**2 / (before**2).sum(), np.sqrt(before) / np.sqrt(before).sum()
    answer = decoding_questions.sharpened(case)
    assert answer.right == "surer"
    assert answer.values["p"] == pytest.approx(before.max(), abs=1e-5)
    assert answer.values["p2"] == pytest.approx(squared.max(), abs=1e-5)
    assert answer.values["piece"] == case.trace.vocabulary[int(squared.argmax())]
    answer = decoding_questions.flattened(case)
    assert answer.values["h2"] == pytest.approx(bits(roots), abs=1e-3)
    share = bits(roots) / np.log2(len(roots))
    assert answer.right == ("half" if share <= 0.5 else "between" if share <= 0.9 else "above")
    kept = int((np.cumsum(np.sort(before)[::-1]) < 0.9).sum()) + 1
    answer = decoding_questions.kept_by_top_p(case)
    assert answer.values["n"] == kept
    label = next(option.label for option in answer.options if option.word == answer.right)
    least, _, most = label.replace(",", "").partition(" – ")
    assert int(least) <= kept <= int(most or least)


def test_a_flat_distribution_keeps_nine_tenths_and_has_no_favourite() -> None:
    case = case_of("reverse", "lantern")
    n_pieces = len(case.trace.vocabulary)
    flat = np.full_like(case.trace.log_probs, -np.log(n_pieces))
    case = dataclasses.replace(case, trace=dataclasses.replace(case.trace, log_probs=flat))
    assert decoding_questions.kept_by_top_p(case).values["n"] >= 0.9 * (n_pieces - 3)
    for oracle in (decoding_questions.sharpened, decoding_questions.flattened):
        with pytest.raises(QuestionNotApplicable):
            oracle(case)


@pytest.mark.parametrize(("name", "sentence"), SENTENCES)
def test_an_output_is_drawn_as_often_as_the_product_of_its_steps_says(name: str, sentence: str) -> None:
    case = case_of(name, sentence)
    chances = [softmax(case, step, 1.0)[piece] for step, piece in enumerate(case.trace.tgt_ids)]
    answer = decoding_questions.draws_like_greedy(case)
    assert answer.values["n"] == round(1000 * np.prod(chances))
    assert answer.values["least"] == pytest.approx(min(chances), abs=1e-5)
