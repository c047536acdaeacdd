"""What is asked about cost, a cache and parts has the answer of products by hand, and of runs without a part."""

from dataclasses import replace

import numpy as np
import pytest

from glassformer.extensions.lessons.library.lesson import QuestionNotApplicable
from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.posing import pose
from glassformer.extensions.lessons.library.subjects import cost_questions
from glassformer.extensions.what_if.interventions import NoFeedForward, NoPositions, NoResidual, ScoreScale
from tests.extensions.lessons.library.posed import approx, case, picked, told

CACHE = lessons()["cache"].steps


def work_by_hand(run, n_source, n_target):
    """Multiply-adds of the n² part and of all the rest, product by product."""
    config = run.checkpoint.config
    d, ff, enc, dec = config.d_model, config.d_ff, config.n_encoder_layers, config.n_decoder_layers
    squares = 2 * d * (enc * n_source**2 + dec * (n_target**2 + n_target * n_source))
    rest = (enc * n_source + dec * n_target) * (4 * d * d + 2 * d * ff)
    return squares, rest + dec * 2 * (n_target + n_source) * d * d + n_target * d * config.tgt_vocab_size


def test_lengths_and_work(run):
    posed = picked(cost_questions.sentence_lengths, run)
    n_source, n_target = len(posed.trace.src_ids), len(posed.trace.read_ids)
    now, double = (work_by_hand(posed, times * n_source, times * n_target) for times in (1, 2))
    times, share = sum(double) / sum(now), now[0] / sum(now)
    told(cost_questions.length_doubled(posed), "two", times=approx(times), share=approx(share))
    n = cost_questions.where_it_overtakes(posed).values["n"]
    overtakes = [squares > rest for squares, rest in (work_by_hand(posed, one, one) for one in (n - 1, n))]
    assert overtakes == [False, True]
    told(cost_questions.grows_with_length(posed), "maps", times=2)


@pytest.mark.parametrize("n", [2, 5, 14])
def test_a_convolution_reaches_one_token_further_with_each_layer_and_a_dilated_one_three_times_as_far(n):
    """Walked along: the tokens that the last one's vector depends on."""
    layers = {}
    for name, widens in (("n_layers", 1), ("dilated", 3)):
        seen, step, layers[name] = {n - 1}, 1, 0
        while 0 not in seen:
            seen |= {i + move for i in seen for move in (-step, step) if 0 <= i + move < n}
            step, layers[name] = step * widens, layers[name] + 1
    run = replace(case("reverse", "lantern"), picked={"n_source": n, "n_target": n})
    answer = cost_questions.layers_of_convolution(run)
    assert answer.values == layers
    assert [one.label for one in answer.options if one.word == answer.right] == [str(layers["n_layers"])]


@pytest.mark.parametrize(("n", "right"), [(250, "three"), (5000, "four")])
def test_the_same_question_says_three_or_four_where_texts_are_long(n, right):
    run = replace(case("reverse", "lantern"), picked={"n_source": n, "n_target": n})
    answer = cost_questions.length_doubled(run)
    assert answer.right == right


def test_parts_are_missed_as_runs_without_them_say(run):
    posed = picked(cost_questions.parts_to_take, run)
    written = posed.trace.tgt_ids[: posed.picked["pieces"]]
    parts = {"positions": NoPositions(), "scale": ScoreScale(), "feed_forward": NoFeedForward()}
    lost, n_same = {}, 0
    for word, part in {**parts, "residual": NoResidual()}.items():
        trace = posed.another(forced=written, interventions=(part,), max_new=len(written))
        lost[word] = float(trace.log_probs[np.arange(len(written)), list(written)].sum())
        n_same += trace.log_probs.argmax(axis=-1).tolist() == list(written)
    values = {f"no_{word}": approx(log_prob, abs=1e-3) for word, log_prob in lost.items()}
    told(cost_questions.parts_that_can_go(posed), str(n_same), **values)
    assert cost_questions.most_missed(posed).right == min(parts, key=lost.__getitem__)


def test_a_cache_keeps_what_a_run_without_one_computes_again(run):
    n, s, config = run.trace.n_steps, len(run.trace.src_ids), run.checkpoint.config
    kept, afresh = (cost_questions.write_again(run, cached=cached) for cached in (True, False))
    assert (kept.own, kept.source) == ((1,) * n, (s, *[0] * (n - 1)))
    assert (afresh.own, afresh.source, afresh.held) == (tuple(range(1, n + 1)), (s,) * n, 0)
    assert kept.held == 2 * config.n_decoder_layers * config.d_model * (n + s)
    first, total, same, source, size = (pose(step, run).answer for step in CACHE)
    assert (first.right, same.right, source.right, size.right) == ("own", "rounding", "once", "both")
    assert (total.right, total.usual, source.values["without"]) == (n * (n + 1) / 2, n * n, n)
    assert size.values["a_token"] * (n + s) == size.values["held"]


def test_a_long_output_is_not_written_twice(monkeypatch):
    monkeypatch.setattr(cost_questions, "MOST_STEPS", 3)
    with pytest.raises(QuestionNotApplicable, match="too long"):
        pose(CACHE[1], case("en-fr", "The dog bit the man."))
