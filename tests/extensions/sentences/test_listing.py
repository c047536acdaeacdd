"""Lines are listed by what they are and hold, the worst first; a line without a number comes last."""

import pytest

from glassformer.extensions.sentences.line_runs import LineResult
from glassformer.extensions.sentences.line_table import all_orders, choices_of, listed
from transformer.analysis.chrf import chrf_counts
from transformer.i18n import say
from transformer.runs.sentence_files import SentenceLine


def result(number, source, output="", reference=None, **numbers):
    counts = None if reference is None else chrf_counts(output, reference)
    return LineResult(line=SentenceLine(number, source, reference), output=output, counts=counts, **numbers)


LINES = [
    result(1, "Ba lo", "the fox", "the fox", log_prob=-4.0, n_counted=2, n_source=2, n_output=2, ended=True),
    result(2, "mi", "a lake", "moon", log_prob=-9.0, n_counted=3, n_source=1, n_output=2, ended=False, n_unknown=1),
    result(3, "ta", "a a a", log_prob=-1.0, n_counted=3, n_source=1, n_output=3, repeated=0.5, ended=True),
    result(4, "ke", problem=say("Too long.")),
]


def numbers(which="all", order="file", holding=""):
    return [one.line.number for one in listed(LINES, which, order, holding)]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("file", [1, 2, 3, 4]),
        ("chrf", [2, 1, 3, 4]),
        ("log_prob", [2, 1, 3, 4]),
        ("ratio", [3, 2, 1, 4]),
        ("repeated", [3, 1, 2, 4]),
        ("unknown", [2, 1, 3, 4]),
    ],
)
def test_the_worst_stand_first(order, expected):
    assert numbers(order=order) == expected


def test_lines_are_chosen_by_what_they_are_and_hold():
    assert numbers("unknown") == [2]
    assert numbers("cut") == [2]
    assert numbers("problem") == [4]
    assert numbers(holding="LAKE") == [2]
    assert numbers(holding="moon") == [2]
    assert numbers(holding="ba") == [1]
    assert numbers("problem", holding="fox") == []


def test_only_what_lists_something_is_offered():
    assert list(choices_of(LINES[:1], counted=False)) == ["all"]
    assert choices_of(LINES, counted=True)["unknown"] == "With unknown tokens · 1"
    assert "entropy" not in all_orders(LINES)
    assert list(all_orders(LINES[3:])) == ["file", "unknown"]
