"""A report accounts for every tensor and every field, and says what is in the way of writing the model."""

import pytest

from glassformer.extensions.importers.library.report import Choice, Field, FileTensor, ImportReport, collapsed
from transformer.i18n import say

WHY = say("Nothing says so.")


def a_report(**changes):
    how = say("transposed")
    layers = [FileTensor(f"l.{n}.w", "F16", (2, 3), "renamed", (f"layers.{n}.q",), how) for n in range(3)]
    parts = {
        "source": "m/model.pt",
        "recognised": say("A toy."),
        "file_tensors": (*layers, FileTensor("l.0.mask", "BOOL", (1,), "ignored", how=say("it is a mask"))),
        "missing": (),
        "filled": {"bias": say("zeros")},
        "fields": (Field("d_model", "inferred", 3, say("It has 3 columns.")),),
    }
    return ImportReport(**(parts | changes))


def test_a_report_in_which_everything_is_accounted_for():
    report = a_report()
    assert report.can_be_written
    assert str(report).splitlines() == [
        "m/model.pt: A toy.",
        "tensors:",
        "  l.0–2.w  F16 [2, 3]  becomes layers.0–2.q  transposed",
        "  l.0.mask  BOOL [1]  ignored  it is a mask",
        "stand-ins:",
        "  bias  zeros",
        "config.json:",
        "  d_model  3  inferred  It has 3 columns.",
        "All tensors and fields are accounted for, so the model can be imported.",
    ]
    assert [collapsed(names) for names in (["a.0.b"], ["a.b"], ["a.2.3.b", "a.4.3.b"])] == ["a.0.b", "a.b", "a.2–4.3.b"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"file_tensors": (FileTensor("x", "F32", (1,), "unknown"),)}, "1 tensor is left over"),
        ({"missing": ("a", "b")}, "2 tensors are missing"),
        ({"fields": (Field("n_heads", "asked", None, WHY, (Choice(4, 0.5), Choice(8))),)}, "1 field needs an answer"),
    ],
)
def test_what_is_in_the_way_of_writing_is_named(changes, problem):
    report = a_report(**changes)
    assert not report.can_be_written
    assert str(report).endswith(f"The model cannot be imported yet: {problem}.")


def test_a_question_shows_its_choices_with_their_scores_until_it_is_answered():
    asked = Field("n_heads", "asked", None, WHY, (Choice(4, 0.5), Choice(8, 1.25), Choice(1)))
    report = a_report(fields=(asked,))
    assert report.field_rows() == [("n_heads", "4 (0.500), 8 (1.250), 1", "asked", "Nothing says so.")]
    answered = a_report(fields=(asked.answered(8),))
    assert answered.field_rows() == [("n_heads", "8", "answered", "Your answer.")]
    assert answered.can_be_written
