"""A plan for a class, and the list of what can be asked, say what the lessons' files and the code say."""

from itertools import combinations

import pytest

import transformer
from glassformer.extensions.classroom import teaching_panels
from glassformer.extensions.classroom.teaching_panels import TOPICS
from glassformer.extensions.lessons.library import Case, QuestionNotApplicable, lessons, pose
from glassformer.extensions.lessons.library.subjects import oracles, picks

TIMES = range(teaching_panels.LEAST, teaching_panels.MOST + 1)


@pytest.mark.parametrize("minutes", [45, 90])
@pytest.mark.parametrize(
    "names", [["one-piece", "looking"], ["looking", "masks", "order"], list(lessons())], ids=["two", "three", "all"]
)
def test_what_is_chosen_stands_in_a_row_with_as_many_votes_as_fit(minutes, names):
    chosen = [lessons()[name] for name in names]
    found = teaching_panels.plan(chosen, minutes=minutes)
    assert [one.lesson for one in found] == chosen
    at = teaching_panels.AROUND
    for one in found:
        assert one.begins == at
        assert one.ends - one.begins == one.lesson.minutes + teaching_panels.VOTE_MINUTES * one.votes
        assert one.votes <= len(one.lesson.steps)
        at = one.ends
    if at > minutes:
        assert not any(one.votes for one in found)
    elif any(one.votes < len(one.lesson.steps) for one in found):
        assert minutes - at < teaching_panels.VOTE_MINUTES


@pytest.mark.parametrize(
    "topics", [chosen for n in range(len(TOPICS) + 1) for chosen in combinations(TOPICS, n)], ids=".".join
)
def test_what_is_proposed_fills_any_time_to_within_two_minutes(topics):
    assert {name for names in TOPICS.values() for name in names} <= set(lessons())
    for minutes in TIMES:
        names = teaching_panels.proposed(lessons(), minutes=minutes, topics=topics)
        found = teaching_panels.plan([lessons()[name] for name in names], minutes=minutes)
        assert minutes - 2 <= found[-1].ends <= minutes
        about = {name for topic in topics for name in TOPICS[topic]}
        assert not topics or about & set(names), "of the topics first"
        if not topics:
            assert all(set(names[:n]).issuperset(lessons()[name].after) for n, name in enumerate(names))


def rows(table):
    return {row[0]: row for row in table.itertuples(index=False)}


def test_every_oracle_and_pick_is_listed_with_what_it_means():
    listed, picked = rows(teaching_panels.oracles()), rows(teaching_panels.picks())
    assert set(listed) == set(oracles())
    assert set(picked) == set(picks())
    for row in listed.values():
        assert all(str(cell).strip() for cell in (row[1], row[3], row[5], row[6])), row
    assert all(str(row[4]).strip() for row in picked.values())
    assert "branch" in picked["hardest_step"][2]


def test_values_that_are_listed_are_values_of_a_run():
    reverse = transformer.load("checkpoints/reverse")
    trace, seen = reverse.run("transformer"), 0
    for one in [*lessons().values()][::3]:
        for step in one.steps:
            try:
                posed = pose(step, Case(checkpoint=reverse, trace=trace))
            except QuestionNotApplicable:
                continue
            seen += 1
            in_this_outcome = step.reveal[posed.variant].names | step.ask.question.names
            assert in_this_outcome <= set(posed.values)
            assert in_this_outcome <= teaching_panels.values(step)
    assert seen > 20
