"""The minutes that a lesson says it takes are near an estimate from its texts, in both languages.

A minute of reading is 180 English words: of adults who read English non-fiction in silence most manage 175 to 300
(Brysbaert, "How many words do we read per minute?", 2019), and these sentences are dense. The 300 Chinese characters
are as many as stand for those words in these texts. Each step adds a minute for what is not reading: making up one's
mind, and looking at the chart. Nobody has timed learners.
"""

import re
from statistics import mean

import pytest

from glassformer.extensions.classroom import step_links
from glassformer.extensions.lessons.library.lesson_files import LANGUAGES, lessons
from glassformer.extensions.lessons.library.posing import short_path

NEAR = 1.25  # a factor


def reading(text, language):
    """Minutes; a field counts as one word."""
    said = text.languages[language]
    words = re.findall(r"\{[^}]*\}|[^\W_]+(?:[’'-][^\W_]+)*", re.sub(r"[\u3400-\u9fff]", " ", said))
    return len(re.findall(r"[\u3400-\u9fff]", said)) / 300 + len(words) / 180


def minutes(step, language):
    """For the question, its choices, one of the texts after the answer, and a minute more."""
    asked = sum(reading(text, language) for text in (step.ask.question, *step.ask.choices.values()))
    told = [
        mean(reading(text, language) for text in texts.values()) for texts in (step.reveal, step.ask.misled) if texts
    ]
    return 1 + asked + sum(told)


@pytest.mark.parametrize("language", LANGUAGES)
def test_lessons_and_the_short_path_take_about_as_many_minutes_as_are_estimated(language):
    for lesson in lessons().values():
        estimate = sum(minutes(step, language) for step in lesson.steps) + reading(lesson.opening.says, language)
        assert 1 / NEAR < lesson.minutes / estimate < NEAR, lesson.name
    steps = [lessons()[place.lesson].steps[place.step - 1] for place in step_links.places(lessons())]
    path = short_path()
    read = sum(reading(text, language) for text in (*(one for pair in path.words for one in pair), *path.met.values()))
    assert abs(step_links.SHORT_MINUTES - sum(minutes(step, language) for step in steps) - read) < 2.5
