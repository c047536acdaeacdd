r"""Laws hold and findings differ over a hundred sentences a checkpoint, and a model answers as it did.

The counts stand in `tests/data/lessons.tsv`, as making them takes minutes:

    python -m glassformer.extensions.lessons.library.survey --sentences tests/data/{zh-en,en-fr,reverse}.tsv \
        --write tests/data/lessons.tsv

`--lesson NAME` makes those of one lesson only. Here one of each step is made once more.
"""

from collections import Counter
from dataclasses import replace

import pytest

from glassformer.extensions.lessons.library.survey import (
    COLUMNS,
    SurveyRow,
    constant,
    right_answer,
    sentences_of,
    survey,
    table,
)
from tests.extensions.lessons.library.posed import IN_TURN, NAMES, STEPS, case, check
from tests.source_code import ROOT

DATA = ROOT / "tests" / "data"
SENTENCES = {name: sentences_of(DATA / f"{name}.tsv") for name in NAMES}
LINES = (DATA / "lessons.tsv").read_text(encoding="utf-8").splitlines()
CELLS = [dict(zip(COLUMNS, line.split("\t"), strict=True)) for line in LINES[1:]]
TABLE = {(one["lesson"], int(one["step"]), one["checkpoint"]): one for one in CELLS}


def counts(cell, between=", "):
    """The counts that `listed` wrote; those of other answers together."""
    return Counter({name: int(n) for name, n in (pair.rsplit(" ", 1) for pair in cell.split(between) if pair)})


def test_the_table_has_every_step_as_it_is_asked_today():
    found = {of: (one["asks"], one["kind"]) for of, one in TABLE.items()}
    expected = {
        (lesson.name, n, name): (step.fingerprint, step.ask.kind)
        for lesson, n, step in STEPS
        for name in NAMES
        if step.on in ("", name)
    }
    changed = sorted({of[:2] for of in expected.items() ^ found.items() for of in [of[0]]})
    assert not changed, f"survey these once more, as the head of this file says: {changed}"
    assert LINES[0] == "\t".join(COLUMNS)


def test_laws_hold_and_findings_differ():
    rows = []
    for lesson, n, step in STEPS:
        for name in NAMES:
            if one := TABLE.get((lesson.name, n, name)):
                answers = list(counts(one["answers"]).elements())
                assert len(answers) == int(one["posed"])
                rows.append(SurveyRow(lesson=lesson.name, n=n, step=step, checkpoint=name, answers=answers))
    assert not constant(rows)


def test_a_sentence_that_a_step_is_not_posed_to_has_a_reason():
    for one in CELLS:
        reasons = counts(one["not here"], " | ")
        assert int(one["posed"]) + reasons.total() == len(SENTENCES[one["checkpoint"]]) == 100


@pytest.mark.parametrize(("which", "name"), [one for one in IN_TURN if one.values[1] in NAMES])
def test_the_table_is_what_the_models_say(which, name):
    lesson, n, step = STEPS[which]
    answers = TABLE[lesson.name, n, name]["first answers"].split(" | ")
    turn = which % len(answers)
    posed = check(step, case(name, SENTENCES[name][turn]))
    found = "–" if posed is None else right_answer(posed)
    assert alike(found, answers[turn]), SENTENCES[name][turn]


def alike(one, other):
    """The same, or numbers that rounding on another machine may tell apart."""
    try:
        return float(one) == pytest.approx(float(other), rel=0.02, abs=1e-6)
    except ValueError:
        return one == other


def row(kind, *answers, n=1, checkpoint="zh-en"):
    step = STEPS[0][2]
    step = replace(step, ask=replace(step.ask, kind=kind))
    return SurveyRow(lesson="made-up", n=n, step=step, checkpoint=checkpoint, answers=list(answers))


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([row("finding", *["a"] * 96, *["b"] * 4)], "a is right in 96% of 100"),
        ([row("finding", *["a"] * 95, *["b"] * 5)], ""),
        ([row("finding", *["a"] * 50), row("finding", *["b"] * 50, checkpoint="en-fr")], ""),
        ([row("law", *["a"] * 99, "b")], "is a law, but has other answers: a 99, b 1"),
        ([row("law", "a", None, "a")], ""),
        ([row("law", "a"), row("law", "b", checkpoint="reverse")], "is a law"),
        ([row("finding", None, None)], "was never posed"),
    ],
)
def test_what_is_no_law_and_no_finding_is_found(rows, problem):
    found = constant(rows)
    assert len(found) == bool(problem)
    assert not problem or problem in found[0]


def test_a_survey_counts_what_posing_gives():
    lesson = STEPS[0][0]
    own = {"reverse": case("reverse", "abc").checkpoint}
    rows = survey([lesson], own, {"reverse": ["abc", "lantern", "a"]})
    assert [one.n for one in rows] == [n for n, step in enumerate(lesson.steps, 1) if step.on in ("", "reverse")]
    for one in rows:
        assert one.counts.total() + one.reasons.total() == 3
        assert one.variants.total() == one.counts.total()
    assert rows[0].counts == {"start": 3}
    written = table(rows)
    assert table([], before=written) == written
    assert table(rows[:2], before=written) == written
