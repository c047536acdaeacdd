"""What is asked about cost and parts has the answer of products counted by hand, and of runs without a part."""

from dataclasses import replace

import numpy as np
import pytest

from glassformer.extensions.lessons.library.case import Case
from glassformer.extensions.lessons.library.subjects import cost_questions
from glassformer.extensions.lessons.library.survey import case_of
from glassformer.extensions.what_if.interventions import NoFeedForward, NoPositions, NoResidual, ScoreScale
from tests.extensions.lessons.library.posed import picked
from tests.healthy import healthy

SENTENCES = {"zh-en": "他看见那只猫。", "en-fr": "She wants bread.", "reverse": "house"}


def case(name: str) -> Case:
    return case_of(healthy(name), SENTENCES[name])


def work_by_hand(case: Case, n_source: int, n_target: int) -> tuple[int, int]:
    """Multiply-adds of the n² part and of all the rest, product by product."""
    config = case.checkpoint.config
    d, ff, enc, dec = config.d_model, config.d_ff, config.n_encoder_layers, config.n_decoder_layers
    squares = 2 * d * (enc * n_source**2 + dec * (n_target**2 + n_target * n_source))
    rest = enc * n_source * (4 * d * d + 2 * d * ff)
    rest += dec * n_target * (4 * d * d + 2 * d * ff) + dec * (2 * n_target + 2 * n_source) * d * d
    return squares, rest + n_target * d * config.tgt_vocab_size


@pytest.mark.parametrize("name", SENTENCES)
def test_lengths_and_work(name):
    posed = picked(cost_questions.sentence_lengths, case(name))
    n_source, n_target = len(posed.trace.src_ids), len(posed.trace.read_ids)
    now, double = (work_by_hand(posed, times * n_source, times * n_target) for times in (1, 2))
    answer = cost_questions.length_doubled(posed)
    assert answer.values["times"] == pytest.approx(sum(double) / sum(now))
    assert answer.values["share"] == pytest.approx(now[0] / sum(now))
    assert answer.right == "two"
    n = cost_questions.where_it_overtakes(posed).values["n"]
    assert work_by_hand(posed, n, n)[0] > work_by_hand(posed, n, n)[1]
    assert work_by_hand(posed, n - 1, n - 1)[0] <= work_by_hand(posed, n - 1, n - 1)[1]
    grows = cost_questions.grows_with_length(posed)
    assert grows.right == "maps"
    assert grows.values["times"] == 2


@pytest.mark.parametrize("n", [2, 5, 14])
def test_a_convolution_reaches_one_token_further_with_each_layer_and_a_dilated_one_three_times_as_far(n):
    """Walked along: the tokens that the last one's vector depends on."""
    layers = {}
    for name, widens in (("n_layers", 1), ("dilated", 3)):
        seen, step, layers[name] = {n - 1}, 1, 0
        while 0 not in seen:
            seen |= {i + move for i in seen for move in (-step, step) if 0 <= i + move < n}
            step, layers[name] = step * widens, layers[name] + 1
    answer = cost_questions.layers_of_convolution(replace(case("reverse"), picked={"n_source": n, "n_target": n}))
    assert answer.values == layers
    (right,) = (one for one in answer.options if one.word == answer.right)
    assert right.label == str(layers["n_layers"])


def test_the_same_question_says_three_or_four_where_texts_are_long():
    posed = case("reverse")
    for n, right in ((250, "three"), (5000, "four")):
        answer = cost_questions.length_doubled(replace(posed, picked={"n_source": n, "n_target": n}))
        assert answer.right == answer.variant == right


@pytest.mark.parametrize("name", SENTENCES)
def test_parts_are_missed_as_runs_without_them_say(name):
    posed = picked(cost_questions.parts_to_take, case(name))
    written = posed.trace.tgt_ids[: posed.picked["pieces"]]
    parts = {"positions": NoPositions(), "scale": ScoreScale(), "feed_forward": NoFeedForward()}
    left = {}
    for word, part in {**parts, "residual": NoResidual()}.items():
        trace = posed.another(forced=written, interventions=(part,), max_new=len(written))
        steps = trace.log_probs[np.arange(len(written)), list(written)]
        left[word] = (float(steps.sum()), [int(row.argmax()) for row in trace.log_probs] == list(written))
    answer = cost_questions.parts_that_can_go(posed)
    assert answer.right == str(sum(same for _, same in left.values()))
    for word, (log_prob, _) in left.items():
        assert answer.values[f"no_{word}"] == pytest.approx(log_prob, abs=1e-3)
    missed = cost_questions.most_missed(posed)
    assert missed.right == min(parts, key=lambda word: left[word][0])
