"""What is asked about where the decoder looks has the answer of loops over the maps."""

from dataclasses import replace

import pytest
from torch import Tensor

from glassformer.extensions.lessons.library.case import Case, QuestionNotApplicable
from glassformer.extensions.lessons.library.subjects import looking_questions
from tests.extensions.lessons.library.posed import RUNS, case
from transformer.model.taps import Replacer, tap_of

SENTENCES = [*RUNS, ("zh-en", "你知道火车站在哪里吗？")]


def case_of(name: str, sentence: str, **picked: object) -> Case:
    """A run of a shipped checkpoint."""
    return replace(case(name, sentence), picked=picked)


def mean_row(case: Case, step: int) -> list[float]:
    """The mean of all heads at a step, by hand."""
    layers = [head[step].tolist() for layer in case.trace.cross for head in layer]
    return [sum(row[key] for row in layers) / len(layers) for key in range(len(layers[0]))]


@pytest.mark.parametrize(("name", "sentence"), SENTENCES)
def test_the_strongest_key_of_the_mean_is_that_of_a_loop(name: str, sentence: str) -> None:
    case = case_of(name, sentence)
    asked = 0
    for step in range(case.trace.n_steps):
        row = mean_row(case, step)
        best, second = sorted(range(len(row)), key=lambda key: -row[key])[:2]
        posed = Case(checkpoint=case.checkpoint, trace=case.trace, picked={"step": step + 1})
        if row[best] - row[second] < looking_questions.CLEAR - 1e-6:
            with pytest.raises(QuestionNotApplicable):
                looking_questions.strongest_in_mean(posed)
            continue
        answer = looking_questions.strongest_in_mean(posed)
        asked += 1
        label = next(option.label for option in answer.options if option.word == answer.right)
        assert label == f"{best + 1} · {case.trace.src_tokens[best]}"
        assert answer.values["w"] == pytest.approx(row[best], abs=1e-6)
        assert answer.values["w2"] == pytest.approx(row[second], abs=1e-6)
        assert len({option.word for option in answer.options}) == len(answer.options) <= looking_questions.MOST_CHOICES
        assert (answer.variant == "special") == (best == len(row) - 1)
    assert asked


@pytest.mark.parametrize(("name", "sentence"), SENTENCES)
def test_heads_agree_where_their_strongest_piece_is_that_of_the_mean(name: str, sentence: str) -> None:
    case = case_of(name, sentence)
    picked = looking_questions.looked_at(case)
    step, texts = picked["step"] - 1, len(case.trace.src_tokens) - 1  # the end mark stands last
    means = mean_row(case, step)[:texts]
    assert picked["key"] - 1 == means.index(max(means))
    rows = [head[step].tolist()[:texts] for layer in case.trace.cross for head in layer]
    count = sum(row.index(max(row)) == picked["key"] - 1 for row in rows)
    answer = looking_questions.heads_that_agree(Case(checkpoint=case.checkpoint, trace=case.trace, picked=picked))
    assert answer.values["count"] == count
    assert answer.right == ("all" if count == len(rows) else "most" if count > len(rows) / 2 else "few")


@pytest.mark.parametrize(("name", "sentence"), SENTENCES)
def test_muting_a_piece_is_setting_its_weights_to_0_by_hand(name: str, sentence: str) -> None:
    case = case_of(name, sentence)
    picked = looking_questions.looked_at(case)

    def muted(weights: Tensor) -> Tensor:
        left = weights.clone()
        left[..., picked["key"] - 1] = 0
        return left / left.sum(-1, keepdim=True)

    by_hand = case.checkpoint.run(sentence, tap=tap_of(Replacer({"decoder.*.cross_attn.weights": muted}, causal=True)))
    answer = looking_questions.without_looking(Case(checkpoint=case.checkpoint, trace=case.trace, picked=picked))
    assert answer.values["after"] == by_hand.output_text
    assert (answer.right == "same") == (by_hand.tgt_ids == case.trace.tgt_ids)
    if answer.right != "same":
        at = answer.values["at"] - 1
        assert by_hand.tgt_ids[:at] == case.trace.tgt_ids[:at]
        assert by_hand.tgt_ids[at : at + 1] != case.trace.tgt_ids[at : at + 1]
        assert (answer.right == "here") == (at == picked["step"] - 1)
