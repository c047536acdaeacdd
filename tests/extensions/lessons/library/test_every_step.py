r"""Every step of every lesson on every shipped checkpoint: one answer is right, and every text can be shown.

All sentences on all steps take minutes more, as some questions run the model again. So each step meets each
checkpoint with one piece or an unknown piece in turn, and a sentence of its own; together the steps meet all
sentences. In `make test-deep` each meets one piece and an unknown one with each checkpoint.
The survey (`python -m glassformer.extensions.lessons.library.survey`) poses each step to a hundred sentences, and its
table stands in `tests/data`. The whole product, before lessons are changed much:

    ALL_SENTENCES=1 .venv/bin/python -m pytest tests/extensions/lessons/library/test_every_step.py \
        tests/extensions/classroom/lessons/test_links.py
"""

import pytest

from glassformer.extensions.lessons.library.lesson_files import lessons
from glassformer.extensions.lessons.library.survey import SHIPPED, case_of
from tests.extensions.lessons.library.posed import (
    LONGEST,
    NAMES,
    ONE_PIECE,
    SEEDED,
    STEPS,
    UNKNOWN,
    case,
    check,
    in_turn,
    n_sentences,
    seeded,
)
from transformer.checkpoint.load import load

IDS = [f"{lesson.name}-{n}" for lesson, n, _ in STEPS]


@pytest.mark.parametrize("odd", [False, pytest.param(True, marks=pytest.mark.deep)], ids=["usual", "odd"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", range(len(STEPS)), ids=IDS)
def test_a_step_has_one_right_answer_or_says_why_it_has_none(which, name, odd):
    _, _, step = STEPS[which]
    if step.on not in ("", name):
        if step.on not in NAMES:
            check(step, case_of(load(SHIPPED / step.on), "lesson"))
        return
    odds = [ONE_PIECE[name], UNKNOWN[name]]
    for sentence in odds if odd else {odds[(which + NAMES.index(name)) % 2], *in_turn(name, which, each=1)}:
        check(step, case(name, sentence))


@pytest.mark.parametrize("name", ["reverse"])
@pytest.mark.parametrize("which", range(len(STEPS)), ids=IDS)
def test_a_step_takes_the_longest_sentence(which, name):
    _, _, step = STEPS[which]
    if step.on in ("", name):
        check(step, case(name, LONGEST[name]))


@pytest.mark.parametrize("name", NAMES)
def test_the_longest_sentence_can_be_no_longer(name):
    run = case(name, LONGEST[name])
    assert len(run.trace.src_ids) > 0.9 * run.checkpoint.config.max_len
    for _, _, step in STEPS[:: max(1, len(STEPS) // 4)]:
        if step.on in ("", name):
            check(step, run)


@pytest.mark.parametrize("lesson", lessons().values(), ids=lessons())
def test_a_lesson_is_short_and_says_the_same_in_both_languages(lesson):
    assert 5 <= len(lesson.steps) <= 8
    assert len(lesson.steps) * 0.8 <= lesson.minutes <= len(lesson.steps) * 2.5
    assert set(lesson.after) <= set(lessons()), "comes after a lesson that there is not"
    for step in lesson.steps:
        ask = step.ask
        for text in (ask.question, *ask.choices.values(), *ask.misled.values(), *step.reveal.values()):
            assert n_sentences(text) <= 2, text
        assert ask.form == "choice" or not ask.choices


def test_names_and_numbers_of_lessons_are_their_own():
    numbers = [lesson.number for lesson in lessons().values()]
    assert numbers == sorted(set(numbers))
    assert all(1 <= number <= 18 for number in numbers)
    fingerprints = [(step.page, step.fingerprint) for _, _, step in STEPS]
    assert len(set(fingerprints)) == len(fingerprints), "two steps ask the same"


def test_seeded_sentences_differ():
    assert all(len(set(seeded(name))) > 0.8 * SEEDED for name in NAMES)
