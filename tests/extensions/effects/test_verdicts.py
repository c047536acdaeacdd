"""Where attention and effect are compared, each outcome has a sentence with both numbers."""

import numpy as np
import pytest

from glassformer.extensions.effects.attribution_pictures import StepView, in_all_steps, in_words
from glassformer.extensions.effects.head_effect_pictures import said, verdict, written

PIECES = ["a", "b", "a"]
NAN = float("nan")
SHARP = np.array([[0.3, 0.9], [0.5, 0.4]])


def told(effects, measure="log_prob", step=None, kind="cross"):
    one = verdict(np.array(effects), SHARP, least=0.01)
    return one, str(said(one, kind, np.array(effects), SHARP, measure, step))


@pytest.mark.parametrize(
    ("effects", "how", "outcome", "owed", "parts"),
    [
        ([[0.1, -2.0], [0.3, 0.0]], {}, "agree", (0, 1),
         ["layer 1, head 2 has the most concentrated weights (its largest weight is 0.90", "agree", "−2.000 nats"]),
        ([[0.1, -0.02], [0.3, -0.4]], {}, "disagree", (1, 1),
         ["−0.020 nats", "−0.400 nats, comes from removing layer 2, head 2", "ranks number 3 of 4", "is 0.40)"]),
        ([[0.001, 0.0], [0.0, -0.002]], {}, "nothing", (1, 1),
         ["No head of this kind of attention matters much on its own", "−0.002 nats"]),
        ([[NAN, 0.1], [0.2, 0.0]], {}, "disagree", (1, 0), []),  # without a number it is not the first
        ([[0.1, 1.0], [0, 0]], {"step": 2}, "agree", (0, 1), ["in this step's row"]),
        ([[0.1, 1.0], [0, 0]], {"step": 2, "kind": "encoder"}, "agree", (0, 1), ["on average over all rows"]),
        ([[0.1, 1.0], [0, 0]], {"step": 2, "measure": "kl"}, "agree", (0, 1), ["the distribution of the next token"]),
    ],
)  # fmt: skip
def test_the_head_that_looks_most_is_compared_with_the_one_that_matters_most(effects, how, outcome, owed, parts):
    one, text = told(effects, **how)
    assert (one.outcome, one.owed) == (outcome, owed)
    for part in parts:
        assert part in text


@pytest.mark.parametrize("effects", [np.zeros((0, 4)), np.full((2, 2), np.nan)])
def test_without_numbers_nothing_is_said(effects):
    assert verdict(effects, SHARP if effects.size else effects, least=0.01) is None


def test_numbers_in_words():
    assert str(written(1.0, "pieces")) == "1 changed choice"
    assert str(written(3.0, "pieces")) == "3 changed choices"
    assert str(written(-0.25, "probability")) == "−0.2500"
    assert "0.0100 nats" in str(written(0.01, "kl"))
    assert str(written(NAN, "kl")) == "not a finite number"


def view(weights, hidden, *, plain=0.9):
    return StepView(PIECES, np.array(weights), plain, np.array(hidden))


SAME = view([0.7, 0.2, 0.1], [0.1, 0.8, 0.9])
DIFFER = view([0.7, 0.2, 0.1], [0.85, 0.3, 0.9])
NONE = view([0.7, 0.2, 0.1], [0.9, 0.896, 0.9])
NOTHING = view([1.0, 0.0, 0.0], [NAN, NAN, NAN])
OWN = view([0.1, 0.2, 0.7], [0.85, 0.3, NAN])
RISES = view([0.7, 0.2, 0.1], [0.5, 0.55, 0.6], plain=0.4)


@pytest.mark.parametrize(("step", "outcome", "parts"), [
    (SAME, "same", ["agree", "“a” (1)", "0.70", "from 0.900 to 0.100"]),
    (DIFFER, "differ", ["disagree", "“a” (1)", "0.70", "from 0.900 to 0.850", "“b”", "0.20", "0.300"]),
    (NONE, "none", ["No single token decides", "“b”", "only from 0.900 to 0.896", "0.70"]),
    (NOTHING, "nothing", ["has not read any token that can be hidden"]),
    (OWN, "own", ["“a” (3)", "0.70", "“b”", "from 0.900 to 0.300"]),
    (RISES, "differ", ["from 0.400 to 0.500", "“a” (3)", "to 0.600"]),
])  # fmt: skip
def test_each_outcome_is_said_with_its_numbers(step, outcome, parts):
    assert step.outcome == outcome
    said = str(in_words(step, "x"))
    for part in parts:
        assert part in said


def test_all_steps_are_counted():
    said = str(in_all_steps([SAME, DIFFER, NONE, OWN, SAME]))
    assert "same token at 2 of 5 steps" in said
    assert "point to different tokens at step 2." in said  # where the piece cannot be hidden, nothing is compared
    assert "read last, which cannot be hidden: 1." in said
    assert "At 1 step, hiding any single token" in said
    assert str(in_all_steps([SAME])) == "In this sentence, attention and hiding point to the same token at 1 of 1 step."
    assert "1, 2, 3, 4, 5, 6, 7, 8…" in str(in_all_steps([DIFFER] * 9))
