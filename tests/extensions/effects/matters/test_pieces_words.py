"""Each outcome of attention against effect has a text, with both numbers."""

import numpy as np
import pytest

from glassformer.extensions.effects.matters.attribution_pictures import StepView, in_all_steps, in_words

PIECES = ["a", "b", "a"]
NAN = float("nan")


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
    (NONE, "none", ["No single piece decides", "“b”", "only from 0.900 to 0.896", "0.70"]),
    (NOTHING, "nothing", ["has not read any piece that can be hidden"]),
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
    assert "same piece at 2 of 5 steps" in said
    assert "point to different pieces at step 2." in said  # where the piece cannot be hidden, nothing is compared
    assert "read last, which cannot be hidden: 1." in said
    assert "At 1 step, hiding any single piece" in said
    assert str(in_all_steps([SAME])) == "In this sentence, attention and hiding point to the same piece at 1 of 1 step."
    assert "1, 2, 3, 4, 5, 6, 7, 8…" in str(in_all_steps([DIFFER] * 9))
