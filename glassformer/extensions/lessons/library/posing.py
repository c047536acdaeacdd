"""A lesson step posed to a learner's run: question, right answer, check of what was typed; the short path.

The steps of the short path through all lessons are those that lessons mark as `short`, in their order; `path.toml` has
the rest.
"""

import hashlib
import math
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from glassformer.extensions.lessons.library.lesson import (
    ALWAYS,
    USUAL,
    Answer,
    Case,
    LessonError,
    LessonStep,
    Opening,
    Option,
    QuestionNotApplicable,
    Refusal,
    Text,
    refuse_if,
    worded,
)
from glassformer.extensions.lessons.library.subjects import oracles, picks
from glassformer.extensions.lessons.library.subjects.weights_questions import keys_of, queries_of, walk_of
from transformer.errors import GlassformerError, shown
from transformer.i18n import Sentence, say
from transformer.model.anatomy import Kind, anatomy

_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Posed:
    """A step, as it is for one run."""

    step: LessonStep  # the step
    picked: Mapping[str, Any]  # what its pick found; the question and the link may name these values
    answer: Answer  # what the oracle found; hold it back until the learner has answered
    options: tuple[Option, ...]  # the choices as they are shown, in their order

    @property
    def values(self) -> dict[str, Any]:
        """What the texts after the answer may name."""
        return {**self.picked, **self.answer.values}

    @property
    def question(self) -> Sentence:
        """What is asked."""
        return self.step.ask.question.said(self.picked)

    @property
    def variant(self) -> str:
        """Which of the step's texts tells the outcome."""
        right = str(self.answer.right)
        return self.answer.variant or (right if right in self.step.reveal else ALWAYS)

    @property
    def reveal(self) -> Sentence:
        """What is said after the answer."""
        return self.step.reveal[self.variant].said(self.values)

    def link(self) -> dict[str, str]:
        """The parameters of the address that the step opens."""
        return {name: text.format_map(self.picked) for name, text in self.step.link.items()}

    def then(self) -> dict[str, str]:
        """The parameters of the address after the answer."""
        return self.link() | {name: text.format_map(self.values) for name, text in self.step.then.items()}

    def label(self, word: str) -> str:
        """What a choice is called, by its word."""
        return {option.word: option.label for option in self.options}[word]

    @property
    def right(self) -> str:
        """What is right, as a reader sees it."""
        answer = self.answer.right
        if self.options:
            return self.label(str(answer))
        return answer if isinstance(answer, str) else f"{answer:.4g}"

    def is_right(self, given: str) -> bool:
        """Tell whether an answer is right: the word of a choice, or what was typed."""
        right = self.answer.right
        if isinstance(right, str):
            return given.strip() == right or given.strip() in self.answer.accepted
        number = number_in(given)
        return number is not None and abs(number - right) <= self.step.ask.within + 1e-9

    def misled(self, given: str) -> Sentence | None:
        """What to say after a wrong answer that is a known misconception; None otherwise."""
        if self.is_right(given):
            return None
        word = given
        if self.step.ask.form == "number":
            usual, right = self.answer.usual, float(self.answer.right)
            if usual is None or abs(usual - right) <= self.step.ask.within:
                return None  # here the misconception leads to what is right
            word = USUAL
        text = self.step.ask.misled.get(word)
        return None if text is None else text.said(self.values)


def pose(step: LessonStep, case: Case) -> Posed:
    """Pose a step to a run.

    Raises:
        QuestionNotApplicable: The step makes no sense for it; the message says why.
        QueryError: The model cannot run what the step needs.
        LessonError: The lesson has no text for what was found, or a text names what was not found.
    """
    if step.pick:
        case = replace(case, picked=dict(picks()[step.pick](case)))
    answer = oracles()[step.ask.oracle](case) if step.ask.oracle else Answer(step.ask.right)
    with _named():
        posed = Posed(step=step, picked=case.picked, answer=answer, options=_options(step, case, answer))
        texts = posed.question, posed.reveal, *(text.said(posed.values) for text in step.ask.misled.values())
        _ = texts, posed.right, posed.then()
    return posed


def opening_link(opening: Opening, case: Case) -> dict[str, str]:
    """The parameters of the address that an opening shows of a run; errors are those of `pose`."""
    picked = picks()[opening.pick](case) if opening.pick else {}
    with _named():
        return {name: text.format_map(picked) for name, text in opening.link.items()}


@contextmanager
def _named() -> Iterator[None]:
    """Raise a `LessonError` for a value that a text or link names and that is not there."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, GlassformerError):
            raise
        raise LessonError(
            "A text or link of this step uses the value {name}, but the step does not provide that value; correct "
            "the lesson's file.",
            name=shown(error.args[0] if error.args else ""),
        ) from error


def _options(step: LessonStep, case: Case, answer: Answer) -> tuple[Option, ...]:
    if step.ask.form != "choice":
        return ()
    options = tuple(
        option if option.label else replace(option, label=step.ask.choices[option.word].said(case.picked))
        for option in answer.options or worded(*step.ask.choices)
    )
    _check_options(options)
    return options if step.ask.in_order else tuple(sorted(options, key=lambda option: _place(option, step, case)))


def number_in(text: str) -> float | None:
    """The number that a reader typed, such as "0.25", "0,25", "25 %", "1,234" or "−3"; None if it is none."""
    plain = "".join(unicodedata.normalize("NFKC", text).split()).replace("−", "-")  # ０．５％ is 0.5%
    share = plain.endswith("%")
    plain = plain.removesuffix("%")
    plain = plain.replace(",", "") if _GROUPED.fullmatch(plain) else plain.replace(",", ".")
    if not _NUMBER.fullmatch(plain):
        return None
    number = float(plain)
    if not math.isfinite(number):
        return None
    return number / 100 if share else number


def _check_options(options: tuple[Option, ...]) -> None:
    """Raise an error if two choices look alike, or fewer than two are left."""
    for language in ("en", "zh"):
        said = (one.label.in_language(language) if isinstance(one.label, Sentence) else one.label for one in options)
        labels = [" ".join(label.split()) for label in said]
        if len(set(labels)) < len(labels):
            raise QuestionNotApplicable(
                "Two of the choices would look the same: {choices}.", choices=" · ".join(labels)
            )
    refuse_if(len(options) < 2, say("With this sentence, the question has only one choice left."))


def _place(option: Option, step: LessonStep, case: Case) -> bytes:
    """A place that depends on the run and the step alone: a class sees one order, and a reload keeps it."""
    asked = step.ask.oracle or step.ask.question.languages["en"]
    which = f"{case.trace.query.to_json()} {step.page} {asked} {option.word}"
    return hashlib.sha256(which.encode()).digest()


FILE: Final = Path(__file__).resolve().parent / "path.toml"


@dataclass(frozen=True)
class ShortPath:
    """The path."""

    minutes: int  # how long it takes, an estimate, which a test computes
    words: tuple[tuple[Text, Text], ...]  # terms, and what is said of each on a sentence
    met: Mapping[str, Text]  # what was met in each lesson, by the lesson's name


@cache
def short_path() -> ShortPath:
    """The path as its file has it."""
    record: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return ShortPath(
        minutes=record["minutes"],
        words=tuple((Text(one["term"]), Text(one["says"])) for one in record["word"]),
        met={one["lesson"]: Text(one["says"]) for one in record["met"]},
    )


def words_on(case: Case) -> dict[str, Any]:
    """What the words name of a run: the first row of the first head of its first layer."""
    config, trace = case.checkpoint.config, case.trace
    kind: Kind = "encoder" if anatomy(config).reads else "decoder"
    found = walk_of(case, {"kind": kind, "layer": 1, "head": 1, "query": 1})
    order = [int(key) for key in np.argsort(-found.weights, kind="stable") if found.allowed[key]]
    refuse_if(len(order) < 2, Refusal.TOO_SHORT)
    best, other, pieces = order[0], order[-1], keys_of(case, kind)
    return {
        "sentence": trace.query.source,
        "n": len(trace.src_ids) or len(trace.read_ids),
        "d_model": config.d_model,
        "d_head": config.d_head,
        "root": 1 / found.how.scale,
        "n_heads": config.n_heads,
        "vocabulary": len(trace.vocabulary) or config.tgt_vocab_size,
        "read": queries_of(case, kind)[0],
        "best": pieces[best],
        "other": pieces[other],
        "score": float(found.scores[best]),
        "score_other": float(found.scores[other]),
        "weight": float(found.weights[best]),
        "weight_other": float(found.weights[other]),
    }
