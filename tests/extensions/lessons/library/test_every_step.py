"""A step of a lesson has one right answer for any sentence and model, or says in a sentence why it has none.

Each step meets one checkpoint in turn with one piece or an unknown piece, in `make test-deep` each checkpoint;
`test_survey` poses it to a sentence as people write them.
"""

import re
from collections import Counter
from statistics import mean

import pytest

from glassformer.extensions.classroom import step_links
from glassformer.extensions.lessons.library.lesson_files import LANGUAGES, lessons
from glassformer.extensions.lessons.library.posing import short_path
from glassformer.extensions.lessons.library.survey import SHIPPED, case_of
from glassformer.runs.picture import PAGES, PICTURES, declare_all
from tests.extensions.lessons.library.posed import (
    IN_TURN,
    LONGEST,
    NAMES,
    ONE_PIECE,
    STEPS,
    UNKNOWN,
    case,
    check,
    in_turn,
    n_sentences,
)
from tests.healthy import FOREIGN, texts
from transformer.checkpoint.load import load

NO_PICTURES = {"*", "part", "results", "trained_for"}


@pytest.mark.parametrize(("which", "name"), IN_TURN)
def test_a_step_has_one_right_answer_or_says_why_it_has_none(which, name):
    _, _, step = STEPS[which]
    own = name in NAMES
    run = case(name, (ONE_PIECE, UNKNOWN)[which // 3 % 2][name]) if own else case_of(load(SHIPPED / name), "lesson")
    check(step, run)


@pytest.mark.deep
@pytest.mark.parametrize(("which", "name"), [one for one in IN_TURN if one.values[1] in NAMES])
def test_so_it_is_with_an_example_or_random_words(which, name):
    for sentence in in_turn(name, which, each=1):
        check(STEPS[which][2], case(name, sentence))


@pytest.mark.parametrize(("name", "every"), [("reverse", 1), ("en-fr", 30), ("zh-en", 30)])
def test_a_step_takes_the_longest_sentence(name, every):
    run = case(name, LONGEST[name])
    assert len(run.trace.src_ids) > 0.9 * run.checkpoint.config.max_len, "it could be longer"
    for _, _, step in STEPS[::every]:
        if step.on in ("", name):
            check(step, run)


ONE_OF_EACH_KIND = ("marian", "llama", "bert")
OTHERS = [pytest.param(name, marks=[pytest.mark.deep] * (name not in ONE_OF_EACH_KIND)) for name in FOREIGN]


@pytest.mark.parametrize("name", OTHERS)
def test_a_model_of_another_program_is_asked_what_makes_sense(name):
    posed, run = Counter(), case(name, texts(name).sources[0])
    for lesson, _, step in STEPS:
        if not step.on:
            posed[lesson.name] += check(step, run) is not None
    assert sum(posed.values()) > 3
    assert name == "bert" or posed["one-piece"] > 1, "a model that writes can be asked how it writes"
    assert (posed["looking"] > 0) == (name not in ("gpt2", "llama", "bert")), "it has cross-attention"


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
    assert (lesson.opening.cover, n_sentences(lesson.opening.says) <= 2) == ((), True)
    for language, watch in (("en", "watch"), ("zh", "观察")):
        assert watch in lesson.opening.says.languages[language], "it opens with something to watch"


def test_lessons_outline_and_cover_pictures_that_there_are():
    declare_all()
    whole = {path for path, page in PAGES.items() if all(part.pictures for part in page.parts.values())}
    steps = [step for _, _, step in STEPS if step.page in whole]
    words = {(step.page, word) for step in steps for word in {*step.look, *step.cover} - NO_PICTURES}
    assert words <= {(picture.part.page.path, key) for key, picture in PICTURES.items()}


def test_names_and_numbers_of_lessons_are_their_own():
    numbers = [lesson.number for lesson in lessons().values()]
    assert numbers == sorted(set(numbers))
    assert all(1 <= number <= 18 for number in numbers)
    fingerprints = [(step.page, step.fingerprint) for _, _, step in STEPS]
    assert len(set(fingerprints)) == len(fingerprints), "two steps ask the same"


# The minutes that a lesson says it takes are near an estimate. A minute of reading is 180 English words: of adults who
# read English non-fiction in silence most manage 175 to 300 (Brysbaert, "How many words do we read per minute?", 2019),
# and these sentences are dense. 300 Chinese characters stand for those words in these texts. Each step adds a minute
# for making up one's mind, and looking at the chart. Nobody has timed learners.
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
