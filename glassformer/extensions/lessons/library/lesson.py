"""Lesson records (lesson, step, question, texts), a question's case and answer, refusals, comparison of numbers.

    Lesson            title, what it teaches, how long it takes, what comes first
    ├── Opening       which page, what to press there and what to watch, before the first question
    └── LessonStep    which page, which of its parts, what is covered until the learner has answered
        ├── Ask       the question: which oracle knows the answer, and how it is given
        └── reveal    a text for each outcome (variant)

A step's `link` holds query parameters. `{name}` in one is a value of the step's pick in the learner's own run; in
`then`, the link after the answer, also one of the oracle's. Every text has an English and a Chinese version, and is a
sentence (`words.in_languages`).

A pick finds in a run what is worth looking at: `(case) -> {name: value}`. An oracle computes the answer to a question
from the live run: `(case) -> Answer`. Both are pure functions of the case, and raise `QuestionNotApplicable` with the
reason where the sentence or the model does not fit the question. Steps, tokens, layers and heads count from 1.

Processors and numbers of threads sum in different orders, which changes values by about 1e-6. That must not change an
answer: a function raises `QuestionNotApplicable` where rounding could decide a comparison, and takes the first of
numbers that rounding could exchange.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from string import Formatter
from typing import Any, Final, Literal

import numpy as np

from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError, SentenceError
from transformer.i18n import Sentence, in_languages, say, say_n
from transformer.i18n.sentence import written
from transformer.model.anatomy import anatomy
from transformer.runs.drafting import verdict_of
from transformer.runs.interventions import Intervention
from transformer.runs.query import Beam, Query
from transformer.runs.trace import Trace

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


# ------------------------------------------------------------------------------------- what a question is asked about


class Refusal:
    """Why a question cannot be asked, where several subjects say so."""

    NEAR = say("For this sentence, two numbers are so close that rounding would decide the answer; try another one.")
    NO_WINNER = say(
        "For this sentence, two possible answers are about equally right, so there is no single answer; try another "
        "one."
    )
    NO_EFFECT = say("For this sentence, the change in this step has no visible effect; try another one.")
    TOO_SHORT = say("This sentence is too short for this step; try a longer one.")
    TOO_LONG = say("This sentence is too long for this step; try a shorter one.")
    ONLY_SPECIAL = say("The source has only special tokens; type a sentence.")
    EMPTY_OUTPUT = say("The model writes nothing for this sentence; try another one.")
    NEEDS_BOTH = say("This step needs a model that reads one text and writes another.")
    NO_ENCODER = say("This model has no encoder; choose a model that reads the whole source in one pass.")
    WRITES_NOTHING = say("This encoder-only model writes nothing; choose a model with a decoder.")
    ONE_HEAD = say("This model has one head per layer; choose a checkpoint with more heads.")
    OTHER_HEADS = say(
        "The vectors of this model cannot be cut into a different number of heads; choose another checkpoint."
    )
    NO_TABLE = say("This model does not add a table of positions to its embeddings; choose another checkpoint.")
    NO_PADS = say("This model has no padding token, so its batches are never padded.")
    NOT_FINITE = say("Some logits of this model are not finite, so they cannot be compared.")


class QuestionNotApplicable(SentenceError, Exception):  # noqa: N818  not an error, but an answer that is not one
    """A question that this sentence or this model cannot answer; the message says why."""


def refuse_if(so: object, why: Sentence) -> None:
    """Raise `QuestionNotApplicable` with the reason, if something is so."""
    if so:
        raise QuestionNotApplicable(why)


@dataclass(frozen=True)
class Option:
    """One of the choices."""

    word: str  # what it is called in the lesson's file and in what a browser remembers
    label: str = ""  # what a reader sees; "" if the lesson's file has the text


def worded(*words: str) -> tuple[Option, ...]:
    """Choices whose texts the lesson's file has."""
    return tuple(map(Option, words))


def numbered(numbers: Mapping[str, float], form: str = ",") -> tuple[Option, ...]:
    """Choices that are numbers, the smallest first; of those that read the same the first one is a choice."""
    shown: dict[str, str] = {}
    for word, number in numbers.items():
        shown.setdefault(format(number, form), word)
    return tuple(Option(shown[text], text) for text in sorted(shown, key=lambda text: numbers[shown[text]]))


@dataclass(frozen=True)
class Answer:
    """What an oracle found."""

    right: str | float  # the word of the right choice; the number; or the piece that is asked for
    values: Mapping[str, Any] = field(default_factory=dict)  # what the texts may name
    _: KW_ONLY
    # The choices, the right one included; by default those of the lesson's file. A number or a piece has none.
    options: tuple[Option, ...] = ()
    variant: str = (
        ""  # which of the step's texts tells the outcome; by default that of the right choice, or the only one
    )
    accepted: tuple[str, ...] = ()  # of a number or a piece that is typed: everything else that is right, too
    usual: float | None = None  # of a number: what the usual misconception gives for it; None where that is not known


@dataclass(frozen=True, kw_only=True)
class Case:
    """The learner's run, and what a step is about."""

    checkpoint: Checkpoint  # what is open
    trace: Trace  # the run of the learner's sentence: greedy, nothing forced, nothing changed
    picked: Mapping[str, Any] = field(default_factory=dict)  # what the step's pick found
    given: str = ""  # what the learner typed, where a piece is asked for; "" before that
    run: Callable[[Query], Trace] | None = None  # makes other runs on the same checkpoint; the app's keeps them

    def at(self, name: str) -> int:
        """A place that the pick found, from 0."""
        return int(self.picked[name]) - 1

    def another(self, **changes: Any) -> Trace:
        """Another run on the same checkpoint; `changes` are fields of the query that differ from the learner's.

        Raises:
            QuestionNotApplicable: Rounding decided between two nearly equal pieces.
        """
        query = replace(self.trace.query, **changes)
        trace = self.checkpoint.run(query) if self.run is None else self.run(query)
        refuse_if(trace.n_steps and not isinstance(query.decoding, Beam) and not verdict_of(trace).sure, Refusal.NEAR)
        return trace

    def written(self, *, least: int) -> int:
        """How many pieces the model wrote, if these are as many as a step needs."""
        n_steps = self.trace.n_steps
        refuse_if(not anatomy(self.checkpoint.config).writes, Refusal.WRITES_NOTHING)
        refuse_if(
            n_steps < least,
            say_n(
                "The output has only {n} token, but this step needs {least}; try a longer sentence.",
                "The output has only {n} tokens, but this step needs {least}; try a longer sentence.",
                n_steps,
                least=least,
            ),
        )
        return n_steps

    def outputs(self, other: Trace) -> dict[str, Any]:
        """What this run and another one wrote, as the texts of a lesson name it."""
        return {"before": self.trace.output_text, "after": other.output_text}

    def changed(self, *interventions: Intervention) -> Trace:
        """The run with changes inside the model."""
        return self.another(interventions=interventions)


APART: Final = 1e-3  # of a bar, or of 1 beside the bar 0: what is nearer to it lies on it
ROUNDING: Final = 1e-4  # of numbers that are around 1 or smaller: the most that rounding makes
VISIBLE: Final = 10  # times as much is not rounding; between the two nobody knows


def above(value: float, bar: float = 0.0, *, by: float = APART) -> bool:
    """Whether a number is above a bar."""
    refuse_if(abs(value - bar) <= by * (abs(bar) or 1.0), Refusal.NEAR)
    return value > bar


def between(bars: Sequence[float], value: float, words: Sequence[str], *, by: float = APART) -> str:
    """The word for where a number lies among bars: one more than there are bars, the lowest first."""
    return words[sum(above(value, bar, by=by) for bar in bars)]


def only_rounding(apart: float, limit: float = ROUNDING) -> bool:
    """Whether numbers that are so far apart are the same but for rounding."""
    refuse_if(limit < apart < VISIBLE * limit, Refusal.NEAR)
    return apart <= limit


def largest(values: np.ndarray) -> int:
    """The place of the largest number, in a flat array the first of those that are as large."""
    top = values.max()
    return int((values >= top - ROUNDING * max(abs(float(top)), 1.0)).argmax())


def clear(rows: np.ndarray) -> np.ndarray:
    """Whether the largest number of each row [..., n] is ahead of all others by more than rounding."""
    if rows.shape[-1] < 2:
        return np.ones(rows.shape[:-1], bool)
    two = np.sort(rows, axis=-1)[..., -2:]
    ahead: np.ndarray = two[..., 1] - two[..., 0] > ROUNDING * np.maximum(np.abs(two[..., 1]), 1.0)
    return ahead


def counted(hits: np.ndarray, sure: np.ndarray, word: Callable[[int], str]) -> str:
    """The word for how many hits there are, if it is the same whatever those come to that are not sure."""
    refuse_if(word(int((hits & sure).sum())) != word(int((hits | ~sure).sum())), Refusal.NEAR)
    return word(int(hits.sum()))


def first_difference(before: Trace, after: Trace) -> tuple[int, int]:
    """The first step at which two runs of a model wrote something else; the last one where they wrote the same.

    Returns:
        It, and the nearest step that the second run has, both from 1.
    """
    shorter = min(before.n_steps, after.n_steps)
    pairs = enumerate(zip(before.tgt_ids, after.tgt_ids, strict=False))
    last = shorter - 1 if before.tgt_ids == after.tgt_ids else shorter
    at = next((step for step, (a, b) in pairs if a != b), last)
    return at + 1, max(1, min(at + 1, after.n_steps))


@dataclass(frozen=True)
class AnswerDifference:
    """How far two runs are apart."""

    by: float  # the largest difference of any logit at the steps that both ran after the same pieces
    verdict: Literal["rounding", "visible"]  # whether that is rounding alone


def largest_difference(one: Trace, other: Trace) -> AnswerDifference:
    """Compare two runs of a model up to the first different piece.

    Raises:
        QuestionNotApplicable: The runs have no step, or numbers that are not finite, or the difference may be rounding.
    """
    n_steps = min(first_difference(one, other)[0], one.n_steps, other.n_steps)
    refuse_if(not n_steps, Refusal.EMPTY_OUTPUT)
    before, after = (logits(trace, n_steps) for trace in (one, other))
    by = float(np.abs(after - before).max())
    refuse_if(not np.isfinite(by), Refusal.NOT_FINITE)
    same = only_rounding(by / max(1.0, float(np.abs(before).max())))
    return AnswerDifference(by, "rounding" if same else "visible")


def logits(trace: Trace, n_steps: int) -> np.ndarray:
    """The logits of the first steps, float64 [step, tgt_vocab]."""
    return trace.log_probs[:n_steps].astype(np.float64) + trace.log_sums[:n_steps, None]


def amount(value: float) -> str:
    """A difference of at least 0 to two digits; only 0 itself is called so."""
    return say("exactly 0") if value == 0 else format(DisplayNumber(value), ".2g")
