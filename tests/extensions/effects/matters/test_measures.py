"""Where attention and effect are compared: each outcome from made-up numbers, and what is said of it."""

import numpy as np
import pytest

from glassformer.extensions.effects.matters.head_effect_pictures import said, verdict, written

SHARP = np.array([[0.3, 0.9], [0.5, 0.4]])


def told(effects, measure="log_prob", step=None, kind="cross"):
    one = verdict(np.array(effects), SHARP, least=0.01)
    return one, str(said(one, kind, np.array(effects), SHARP, measure, step))


def test_the_same_head():
    one, text = told([[0.1, -2.0], [0.3, 0.0]])
    assert (one.outcome, one.seen, one.owed, one.rank) == ("agree", (0, 1), (0, 1), 1)
    assert "layer 1, head 2 has the most concentrated weights (its largest weight is 0.90" in text
    assert "agree here" in text
    assert "−2.000 nats" in text


def test_another_head_with_both_numbers():
    one, text = told([[0.1, -0.02], [0.3, -0.4]])
    assert (one.outcome, one.owed, one.rank) == ("disagree", (1, 1), 3)
    for part in ("−0.020 nats", "−0.400 nats, comes from removing layer 2, head 2", "ranks number 3 of 4", "is 0.40)"):
        assert part in text


def test_none_that_matters():
    one, text = told([[0.001, 0.0], [0.0, -0.002]])
    assert one.outcome == "nothing"
    assert "No head of this kind of attention matters much on its own" in text
    assert "−0.002 nats" in text


def test_a_step_has_its_own_words():
    assert "in this step's row" in told([[0.1, 1.0], [0, 0]], step=2)[1]
    assert "on average over all rows" in told([[0.1, 1.0], [0, 0]], step=2, kind="encoder")[1]
    assert "the distribution of this step" in told([[0.1, 1.0], [0, 0]], "kl", step=2)[1]


@pytest.mark.parametrize("effects", [np.zeros((0, 4)), np.full((2, 2), np.nan)])
def test_without_numbers_nothing_is_said(effects):
    assert verdict(effects, SHARP if effects.size else effects, least=0.01) is None


def test_a_head_without_a_number_is_not_the_first():
    one = verdict(np.array([[np.nan, 0.1], [0.2, 0.0]]), SHARP, least=0.01)
    assert one.owed == (1, 0)


def test_numbers_in_words():
    assert str(written(1.0, "pieces")) == "1 changed choice"
    assert str(written(3.0, "pieces")) == "3 changed choices"
    assert str(written(-0.25, "probability")) == "−0.2500"
    assert "0.0100 nats" in str(written(0.01, "kl"))
    assert str(written(float("nan"), "kl")) == "not a finite number"
