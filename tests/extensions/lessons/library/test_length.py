"""The minutes that the list of lessons tells are near the estimate from their texts, in both languages."""

import pytest

from glassformer.extensions.classroom.lessons import short
from glassformer.extensions.lessons.library.lesson import Ask, LessonStep, Text
from glassformer.extensions.lessons.library.lesson_files import LANGUAGES, lessons
from glassformer.extensions.lessons.library.path import short_path
from tests.extensions.lessons.library.length import A_STEP, minutes, reading

NEAR = 1.25  # a factor


def step(en, zh, *reveals):
    ask = Ask(oracle="branch", kind="law", form="choice", question=Text({"en": en, "zh": zh}), choices={})
    told = {str(n): Text({"en": en, "zh": zh}) for n, (en, zh) in enumerate(reveals)}
    return LessonStep(
        page="step", link={}, then={}, pick="", on="", cover=(), look=(), ask=ask, reveal=told, short=False
    )


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("lesson", lessons().values(), ids=list(lessons()))
def test_a_lesson_tells_about_as_many_minutes_as_are_estimated(lesson, language):
    assert 1 / NEAR < lesson.minutes / minutes(lesson.steps, language) < NEAR


@pytest.mark.parametrize("language", LANGUAGES)
def test_so_does_the_short_path(language):
    steps = [lessons()[place.lesson].steps[place.step - 1] for place in short.places(lessons(), "", short=True)]
    path = short_path()
    read = reading([text for pair in path.words for text in pair] + [*path.met.values()], language)
    assert abs(short.SHORT_MINUTES - minutes(steps, language) - read) < 2.5


def test_words_and_characters_are_counted():
    words, characters = " ".join(["one"] * 90), "一" * 150
    one = step(words, characters, ("{a} {b:.2f}", "{a} {b:.2f}"))
    for language in LANGUAGES:
        assert minutes([one], language) == pytest.approx(A_STEP + 0.5 + 2 / 180)
    assert minutes([step("", "", (words, characters), ("", ""))], "zh") == pytest.approx(A_STEP + 0.25)
