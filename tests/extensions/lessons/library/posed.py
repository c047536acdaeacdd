"""Sentences that lessons are tried on, and what has to hold of every step that is posed to one."""

import itertools
import math
import random
import re
import string
from dataclasses import replace
from functools import cache

import pytest

from glassformer.extensions.lessons.library.lesson import USUAL, QuestionNotApplicable
from glassformer.extensions.lessons.library.lesson_files import LANGUAGES, lessons
from glassformer.extensions.lessons.library.posing import pose
from glassformer.extensions.lessons.library.survey import case_of
from tests.healthy import healthy
from transformer.errors import QueryError
from transformer.i18n import Sentence

approx = pytest.approx
NAMES = ("zh-en", "en-fr", "reverse")
TURN = ("zh-en", "reverse", "reverse", "en-fr", "reverse", "reverse")  # the small one more often
STEPS = [(lesson, n, step) for lesson in lessons().values() for n, step in enumerate(lesson.steps, 1)]
# Each step with one checkpoint in turn whenever tests run, or with the one that it is about.
IN_TURN = [
    pytest.param(
        n, name, id=f"{lesson.name}-{number}-{name}", marks=[pytest.mark.deep] * (TURN[n % 6] != name != step.on)
    )
    for n, (lesson, number, step) in enumerate(STEPS)
    for name in ((step.on,) if step.on else NAMES)
]
SEEDED = 25

CHINESE = ("我", "他", "老师", "孩子们", "昨天", "在家", "喜欢", "看见", "吃", "一本书", "苹果", "那只猫", "火车",
           "和", "没有")  # fmt: skip
ENGLISH = ("I", "we", "the old man", "she", "yesterday", "often", "sees", "loves", "wants", "a book", "bread",
           "the cat", "a train", "with", "never")  # fmt: skip
WORDS = {"zh-en": (CHINESE, "", "。"), "en-fr": (ENGLISH, " ", ".")}
ONE_PIECE = {"zh-en": "好", "en-fr": "Yes", "reverse": "a"}
UNKNOWN = {"zh-en": "他看见 𓀀𓁀。", "en-fr": "She sees ꙮ𓀀.", "reverse": "ab漢c"}
LONGEST = {"zh-en": "他喜欢看书，" * 31, "en-fr": "she loves a book and " * 25, "reverse": "abcdefghijkl"}


@cache
def seeded(name: str) -> tuple[str, ...]:
    """Sentences of random words, the same ones always; most make little sense, as learners' own often do."""
    rng = random.Random(f"lessons of {name}")
    if name == "reverse":
        return tuple("".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 12))) for _ in range(SEEDED))
    words, between, end = WORDS[name]
    return tuple(between.join(rng.choices(words, k=rng.randint(2, 8))) + end for _ in range(SEEDED))


def sentences(name: str) -> tuple[str, ...]:
    """All that lessons are tried on with a shipped checkpoint, but for the longest."""
    return (*healthy(name).card.examples, *seeded(name), ONE_PIECE[name], UNKNOWN[name])


def in_turn(name: str, which: int, *, each: int) -> tuple[str, ...]:
    """So many sentences that a step meets, by its place among all: the steps together meet all of them."""
    start = which * each % len(sentences(name))
    return tuple(itertools.islice(itertools.cycle(sentences(name)), start, start + each))


@cache
def case(name, sentence):
    """The run of a sentence; its further runs are shared by all tests."""
    return case_of(healthy(name), sentence)


def picked(pick, case):
    """The same with what a pick finds in it."""
    return replace(case, picked=pick(case))


def told(answer, right, **values):
    """The answer is this one, and tells these values."""
    assert answer.right == right
    assert {name: answer.values[name] for name in values} == values


def check(step, case):
    """Pose a step, and look at all that a learner could be shown; None where it says why it cannot be posed."""
    try:
        posed = pose(step, case)
    except (QuestionNotApplicable, QueryError) as why:
        assert_sentence(why.sentence)
        return None
    assert_answers(posed)
    assert_texts(posed)
    return posed


def assert_answers(posed):
    """Exactly one choice is right, and they can be told apart; a number is right within what is allowed."""
    answer, ask, words = posed.answer, posed.step.ask, [option.word for option in posed.options]
    assert not posed.is_right("")
    if ask.form == "choice":
        assert [word for word in words if posed.is_right(word)] == [answer.right]
        assert len(set(words)) == len(words) >= 2
        for language in LANGUAGES:
            labels = {in_language(option.label, language).strip() for option in posed.options} - {""}
            assert len(labels) == len(words)
        return
    assert not words
    assert posed.is_right(f"{answer.right:.10f}" if ask.form == "number" else str(answer.right))
    if ask.form == "number":
        assert not posed.is_right(str(answer.right + 2 * ask.within + 1))
        assert set(ask.misled) == (set() if answer.usual is None else {USUAL})
        if answer.usual is not None:
            assert (posed.misled(str(answer.usual)) is None) == posed.is_right(str(answer.usual))


def assert_texts(posed):
    """Every text that may be shown fills in both languages, and is short."""
    assert posed.variant in posed.step.reveal
    assert all(math.isfinite(value) for value in posed.values.values() if isinstance(value, float))
    for sentence in (posed.question, posed.reveal, *(one.said(posed.values) for one in posed.step.ask.misled.values())):
        assert_sentence(sentence)
    assert all(len(in_language(option.label, "en")) <= 120 for option in posed.options)
    assert all(value for name, value in posed.link().items() if name != "with")  # with no other sentence
    assert set(posed.step.then) <= set(posed.then())


def assert_sentence(sentence):
    """It says something in every language, and leaves no field open."""
    for language in LANGUAGES:
        text = sentence.in_language(language)
        assert text.strip()
        assert "None" not in text.split()


def in_language(text, language):
    """A text in a language; data are the same in all."""
    return text.in_language(language) if isinstance(text, Sentence) else text


def n_sentences(text):
    """How many sentences a template has, in the language that has most."""
    ends = {"en": r"[.!?…](?=[\s”’)]|$)", "zh": r"[。！？]|……"}
    return max(len(re.findall(end, text.languages[language])) for language, end in ends.items())
