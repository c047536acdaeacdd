"""Lesson records (lesson, opening, step, question, texts), `LessonError`, and the number format of texts.

    Lesson            title, what it teaches, how long it takes, what comes first
    ├── Opening       which page, what to press there and what to watch, before the first question
    └── LessonStep    which page, which of its parts, what is covered until the learner has answered
        ├── Ask       the question: which oracle knows the answer, and how it is given
        └── reveal    a text for each outcome (variant)

A step's `link` holds query parameters. `{name}` in one is a value of the step's pick in the learner's own run; in
`then`, the link after the answer, also one of the oracle's. Every text has an English and a Chinese version, and is a
sentence (`words.in_languages`).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Literal

from transformer.errors import GlassformerError
from transformer.i18n import Sentence, in_languages
from transformer.i18n.sentence import written

Kind = Literal["law", "finding"]
"""A law has the same answer for every sentence, on purpose; a finding differs, so that looking is needed."""

Form = Literal["choice", "number", "piece"]
"""How an answer is given: one of several, a number, or a piece that is typed."""

PAGES = (
    "start", "step", "attention", "positions", "masks", "inside", "search", "forcing", "glossary", "compare",
    "matters", "wrong", "training", "checkpoints", "doctor",
)  # fmt: skip
"""Paths of the pages that a step may open."""

USUAL = "usual"  # the word under which a question for a number says what the usual misconception gives
ALWAYS = "always"  # the variant of a step that has only one outcome


class DisplayNumber(float):
    """A number as a text has it: with a minus, not a hyphen, and with powers of ten written out."""

    def __format__(self, form: str) -> str:
        return written(super().__format__(form))


class LessonError(GlassformerError):
    """A lesson's file cannot be used as it is."""


@dataclass(frozen=True)
class Text:
    """A template in each language, with `{name}` or `{name:format}` for a value."""

    languages: Mapping[str, str]  # each language's template; English is among them

    @property
    def names(self) -> frozenset[str]:
        """The values that it names."""
        return frozenset(name for _, name, _, _ in Formatter().parse(self.languages["en"]) if name)

    def said(self, values: Mapping[str, object]) -> Sentence:
        """The sentence, with what stands for each name; sentences among the values are translated, too."""
        shown = {name: DisplayNumber(value) if isinstance(value, float) else value for name, value in values.items()}
        return in_languages(self.languages, **shown)


@dataclass(frozen=True, kw_only=True)
class Ask:
    """The question of a step."""

    oracle: str  # the function of `extensions.lessons.library.subjects` that knows the answer; "" of a plain question
    kind: Kind  # law or finding
    form: Form  # how the answer is given
    question: Text  # what is asked
    # Texts of choices by the oracle's word for each; a choice that is a piece or a number has its own.
    choices: Mapping[str, Text]
    # Choices are in the oracle's order, not shuffled: a row of numbers, pieces of a sentence.
    in_order: bool = False
    within: float = 0.0  # how far a number may be off
    # What to say after a wrong choice that is a common misconception; a number's misconception is the word `usual`.
    misled: Mapping[str, Text] = field(default_factory=dict)
    right: str = ""  # of a plain question, which no oracle answers: the word of the right choice


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a lesson shows of a page."""

    page: str  # the path of a page of the app
    link: Mapping[str, str]  # parameters of its address
    pick: str  # the function of `extensions.lessons.library.subjects` that finds what to look at; "" for none
    on: str  # A shipped checkpoint that the step runs on, with an example of its card; "" for the learner's own
    look: tuple[str, ...]  # keys of the charts that the step is about; they are outlined
    # Keys of the charts that are sent only after the answer; "*" for all of the page below the sentence.
    cover: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Opening(Scene):
    """What a lesson begins with: something that moves, with nothing covered and nothing asked."""

    says: Text  # what to press and what to watch


@dataclass(frozen=True, kw_only=True)
class LessonStep(Scene):
    """One step of a lesson."""

    then: Mapping[str, str]  # those parameters that change once the learner has answered
    ask: Ask  # the question
    reveal: Mapping[str, Text]  # what is said afterwards, for each variant
    short: bool  # it belongs to the short path through all lessons
    paper: bool = True  # it also makes sense on a handout; what has to be typed or tried in the app does not

    @property
    def fingerprint(self) -> str:
        """Changes with the question or its choices: an answer that a browser remembers is of this text."""
        texts = (self.ask.question, *self.ask.choices.values())
        said = "\n".join(text.languages["en"] for text in texts) + self.ask.oracle + self.ask.right
        return hashlib.sha256(said.encode()).hexdigest()[:8]


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A row of steps."""

    name: str  # in an address: letters, digits and hyphens
    number: int  # its place in the plan; 0 for a lesson that somebody wrote for a class
    title: Text  # A few words
    teaches: Text  # what the learner knows afterwards; one sentence
    minutes: int  # how long it takes; for those of the plan, an estimate, which a test computes
    after: tuple[str, ...]  # names of the lessons that come first
    opening: Opening | None  # what is shown before the first question; None in a class's own lesson without one
    steps: tuple[LessonStep, ...]  # in order
