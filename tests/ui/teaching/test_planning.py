"""A plan for a class, and what a lesson of one's own can ask: both say what the lessons' files and the code say."""

import pytest

import transformer
from transformer.lessons import Case, NotHere, lessons, pose
from transformer.lessons.subjects import ORACLES, PICKS
from ui.teaching import lesson_reference, planning


@pytest.mark.parametrize("minutes", planning.LENGTHS)
@pytest.mark.parametrize("votes", [0, 2, 4])
@pytest.mark.parametrize("first", list(lessons()))
def test_a_plan_fits_and_puts_first_what_comes_first(minutes, votes, first):
    found = planning.plan(lessons(), minutes=minutes, first=first, votes=votes)
    assert (
        not found or found[0].lesson.name == first or planning.AROUND + lessons()[first].minutes > minutes - 3 * votes
    )
    names = list(lessons())
    known, at = set(names[: names.index(first)]), planning.AROUND
    for one in found:
        assert one.begins == at
        assert one.ends - one.begins == one.lesson.minutes + planning.VOTE_MINUTES * one.votes
        assert one is found[0] or known.issuperset(one.lesson.after)
        known.add(one.lesson.name)
        at = one.ends
    assert at <= minutes


def test_a_lecture_has_room_for_lessons():
    assert len(planning.plan(lessons(), minutes=45, first="one-piece", votes=2)) >= 2
    assert len(planning.plan(lessons(), minutes=90, first="one-piece", votes=2)) >= 5


def rows(table):
    return {row[0]: row for row in table.itertuples(index=False)}


def test_every_oracle_and_pick_is_listed_with_what_it_means():
    listed, picked = rows(lesson_reference.oracles()), rows(lesson_reference.picks())
    assert set(listed) == set(ORACLES)
    assert set(picked) == set(PICKS)
    for row in listed.values():
        assert all(str(cell).strip() for cell in (row[1], row[3], row[5], row[6])), row
    assert all(str(row[4]).strip() for row in picked.values())
    assert "branch" in picked["hardest_step"][2]


def test_values_that_are_listed_are_values_of_a_run():
    reverse = transformer.load("checkpoints/reverse")
    trace, seen = reverse.run("transformer"), 0
    for one in lessons().values():
        for step in one.steps:
            try:
                posed = pose(step, Case(checkpoint=reverse, trace=trace))
            except NotHere:
                continue
            seen += 1
            in_this_outcome = step.reveal[posed.answer.variant].names | step.ask.question.names
            assert in_this_outcome <= set(posed.values)
            assert in_this_outcome <= lesson_reference.values(step)
    assert seen > 60
