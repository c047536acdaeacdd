"""How long steps of a lesson take: an estimate from their texts; nobody has timed learners with them.

A minute of reading is 180 English words: of adults who read English non-fiction in silence most manage 175 to 300
(Brysbaert, "How many words do we read per minute?", 2019), and these sentences are dense. The 300 Chinese characters
are as many as stand for those words in these texts. Each step adds a minute for what is not reading: making up one's
mind, and looking at the chart.

Knows nothing of a run: a field counts as one word, and of the texts after an answer the mean of all is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from glassformer.extensions.lessons.library.lesson import LessonStep, Text

WORDS_A_MINUTE: Final = 180
CHARACTERS_A_MINUTE: Final = 300
A_STEP: Final = 1.0  # minutes for a prediction, and for a look at what comes of it
_CHINESE: Final = re.compile(r"[\u3400-\u9fff]")
_WORD: Final = re.compile(r"\{[^}]*\}|[^\W_]+(?:[’'-][^\W_]+)*")


def minutes(steps: Iterable[LessonStep], language: str) -> float:
    """How long steps take, with a look at each chart, by their texts in "en" or "zh"."""
    return sum(A_STEP + _reading(step, language) for step in steps)


def reading(texts: Iterable[Text], language: str) -> float:
    """How long texts take to be read, such as those at the ends of a path."""
    return sum(_time(text, language) for text in texts)


def _reading(step: LessonStep, language: str) -> float:
    """Minutes for the question, its choices and what is said after the answer."""
    asked = _time(step.ask.question, language) + sum(_time(text, language) for text in step.ask.choices.values())
    told = [_time(text, language) for text in step.reveal.values()]
    misled = [_time(text, language) for text in step.ask.misled.values()]
    return asked + sum(told) / len(told) + (sum(misled) / len(misled) if misled else 0.0)


def _time(text: Text, language: str) -> float:
    said = text.languages[language]
    characters = len(_CHINESE.findall(said))
    words = len(_WORD.findall(_CHINESE.sub(" ", said)))
    return characters / CHARACTERS_A_MINUTE + words / WORDS_A_MINUTE
