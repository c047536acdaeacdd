"""The query parameters of a run as a `Link`: decoding settings, answers to an import, a nested second run.

A `Link` is read from query parameters and written back to them. It never trusts them: what is unknown or out of
range is corrected, with a note. Only differences from the defaults are written.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

from glassformer.state import fields
from glassformer.state.fields import (
    MOST_COMPANIONS,
    Reader,
    declared,
    integer,
    read_fields,
    spelled,
    text,
    write_fields,
)
from glassformer.state.view import View, parameters, read_view, write_view
from transformer.errors import QueryError
from transformer.i18n import say
from transformer.runs.interventions import MAX_CHARACTERS, Intervention, parse, write
from transformer.runs.query import MAX_BEAM, MAX_NEW, MAX_SEED, MAX_TOP_K, Beam, Decoding, Greedy, Query, Sampling

# ------------------------------------------------------------------------------------------------ answers to an import

Answer = bool | int | float | str | None
Answers = tuple[tuple[str, Answer], ...]

LONGEST_ANSWERS = 4_000  # characters in an address
MOST_ANSWERS = 60
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LONGEST_VALUE = 300  # a path
_UNESCAPED = "/ ._:-+"  # beside letters and numbers, what needs no escape


def write_answers(answers: Answers) -> str:
    """Answers as text; `read_answers` reads it."""
    return ",".join(f"{name}={quote(_answer_text(value), safe=_UNESCAPED)}" for name, value in answers)


def read_answers(text: str) -> Answers | None:
    """The answers that a text says; None if it says something else, or one field twice."""
    found: dict[str, Answer] = {}
    for part in text.split(",") if text else ():
        name, equals, value = part.partition("=")
        value = unquote(value)
        if not equals or not _NAME.fullmatch(name) or name in found or not 0 < len(value) <= _LONGEST_VALUE:
            return None
        found[name] = value_of(value)
    return tuple(found.items()) if len(found) <= MOST_ANSWERS else None


def value_of(text: str) -> Answer:
    """The value that a text stands for: true, false, null, a number, or a text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, float) and not math.isfinite(value):
        return text
    return value if value is None or isinstance(value, bool | int | float | str) else text


def with_answer(answers: Answers, name: str, value: Answer) -> Answers:
    """Answers with another one, in the order in which they were given."""
    return tuple({**dict(answers), name: value}.items())


def without_answer(answers: Answers, name: str) -> Answers:
    """Answers without one of them."""
    return tuple((one, value) for one, value in answers if one != name)


def _answer_text(value: Answer) -> str:
    if isinstance(value, str) and value_of(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)


RUN: Final = ("model", "rev", "answers", "src", "how", "beam", "lp", "temp", "k", "p", "seed", "max", "forced",
              "result", "do")  # fmt: skip
LOOKED_AT: Final = ("kind", "layer", "head", "together")
STEP: Final = "step"
NAMES: Final = (*RUN, *LOOKED_AT, STEP)
"""The parameters that a second run may have of its own; all others are those of the first."""

LONGEST: Final = 14_000  # characters: a source of 4,000, each of them up to three once written


def write_nested(said: Mapping[str, str]) -> str:
    """What the second run differs in as text, always in the same order; nothing for nothing."""
    return urlencode({name: said[name] for name in NAMES if name in said}, safe="@")


def read_nested(text: str) -> dict[str, str] | None:
    """What `write_nested` wrote, by name; None for anything else."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True, max_num_fields=len(NAMES)) if text else []
    except ValueError:
        return None
    said = dict(pairs)
    return said if len(said) == len(pairs) and set(said) <= set(NAMES) else None


def without(text: str, *names: str) -> str:
    """What a second run differs in, but for some names."""
    return write_nested({name: value for name, value in (read_nested(text) or {}).items() if name not in names})


MAX_NAME = 100
MAX_JOB = 40
DEFAULT_NEW = 128


class Setting(NamedTuple):
    """A number of a way of decoding."""

    field: str  # of its record
    name: str  # in an address
    key: str  # of its widget
    least: Any
    most: Any
    step: float  # of its widget
    label: str
    help: str | None = None  # what it says
    always: bool = True  # an address says it even where it is the default


_OF_LENGTH = say("At 0, only plain log-probabilities are compared; higher values favour longer outputs.")
_OF_TEMPERATURE = say("Values below 1 sharpen the distribution; values above 1 flatten it.")
_OF_SEED = say("The same seed always gives the same output.")
WAYS: Final[dict[str, tuple[type[Any], tuple[Setting, ...]]]] = {
    "beam": (
        Beam,
        (
            Setting("size", "beam", "beam_size", 1, MAX_BEAM, 1, say("Beams")),
            Setting("length_penalty", "lp", "length_penalty", 0.0, 2.0, 0.1, say("Length penalty"), _OF_LENGTH),
        ),
    ),
    "sampling": (
        Sampling,
        (
            Setting("temperature", "temp", "temperature", 0.05, 5.0, 0.05, say("Temperature"), _OF_TEMPERATURE),
            Setting("top_k", "k", "top_k", 0, MAX_TOP_K, 1, say("Top-k"), say("0 keeps all tokens."), always=False),
            Setting("top_p", "p", "top_p", 0.01, 1.0, 0.01, say("Top-p"), say("1 keeps all tokens."), always=False),
            Setting("seed", "seed", "seed", 0, MAX_SEED, 1, say("Seed"), _OF_SEED),
        ),
    ),
}
"""Each way of decoding but the greedy one."""


def _decoding(reader: Reader, name: str) -> Decoding:
    how = reader.text(name, MAX_NAME)
    if how in WAYS:
        kind, settings = WAYS[how]
        found = {one.field: reader.in_range(one.name, type(one.least), one.least, one.most) for one in settings}
        decoding: Decoding = kind(**{field: value for field, value in found.items() if value is not None})
        return decoding
    if how not in (None, "greedy"):
        note = say(
            "The link requests an unknown decoding method, “{how}”; greedy decoding is used instead.", how=how[:40]
        )
        reader.notes.append(note)
    return Greedy()


def _written(decoding: Decoding) -> dict[str, object]:
    how, settings = way_of(decoding)
    said: dict[str, object] = {"how": how}
    for one in settings:
        value = getattr(decoding, one.field)
        if one.always or value != getattr(type(decoding), one.field):  # as few digits as give the same number again
            said[one.name] = repr(value).removesuffix(".0")
    return said


def way_of(decoding: Decoding) -> tuple[str, tuple[Setting, ...]]:
    """What a way of decoding is called, and its numbers."""
    return next(((how, ones) for how, (kind, ones) in WAYS.items() if type(decoding) is kind), ("greedy", ()))


def _interventions(reader: Reader, name: str) -> tuple[Intervention, ...]:
    try:
        return parse(reader.text(name, MAX_CHARACTERS) or "")
    except QueryError as error:
        note = say(
            "The link's changes to the model were ignored: {problem} The unchanged run is shown instead.",
            problem=error.sentence,
        )
        reader.notes.append(note)
        return ()


def _beside(reader: Reader, name: str) -> str:
    said = read_nested(reader.text(name, LONGEST) or "")
    if said is None:
        reader.notes.append(say("The link's second run could not be read and was ignored."))
    return write_nested(said or {})


def _answers(reader: Reader, name: str) -> Answers | None:
    found = read_answers(reader.text(name, LONGEST_ANSWERS) or "")
    if found is None:
        reader.notes.append(fields.unread(name))
    return found


@dataclass(frozen=True, kw_only=True)
class Link:
    """Everything that an address can say, in this order."""

    model: str = text("model", most=MAX_NAME)  # name of a checkpoint; empty for the default one
    # Beginning of the content hash that the link was made with; empty if not said.
    revision: str = text("rev", most=MAX_NAME)
    # What the reader said of a model of another program that its files do not say.
    answers: Answers = spelled("answers", (), _answers, write_answers)
    source: str | None = spelled("src", None, Reader.source)  # the sentence; None for the checkpoint's first example
    # What should come out for it; None if nobody said.
    reference: str | None = spelled("ref", None, Reader.reference, lambda text: text or None)
    # These are as in `transformer.Query`, as are `forced`, `hypothesis` and `interventions`.
    max_new: int = integer("max", MAX_NEW, DEFAULT_NEW)
    decoding: Decoding = spelled("how", Greedy(), _decoding, _written)
    forced: tuple[int, ...] = spelled("forced", (), Reader.ids, lambda ids: ".".join(map(str, ids)))
    # Every branch that was tried, oldest first; nothing if there is only the one that is shown.
    tried: tuple[fields.Branch, ...] = spelled(
        "tried", (), Reader.branches, lambda tried: fields.write_branches(tried) or None
    )
    # Only beam search has several; `read_link` reads which.
    hypothesis: int = spelled("result", 0, lambda reader, name: None, lambda place: place + 1)
    interventions: tuple[Intervention, ...] = spelled("do", (), _interventions, write)
    # A file run (background job). Anyone who knows its name can see it, so only the URL of its own page has it.
    job: str = text("job", most=MAX_JOB)
    # Further sentences, which the Masks page runs in one batch with it; None for the page's own choice.
    companions: tuple[str, ...] | None = spelled(
        "with", None, lambda reader, name: reader.sentences(name, most=MOST_COMPANIONS), "\n".join
    )
    # What the second run of a comparison differs in, as `write_nested` writes it; nothing for no second.
    beside: str = spelled("b", "", _beside)
    view: View = spelled("", View(), lambda reader, name: read_view(reader), write_view)

    def query(self, content_hash: str) -> Query:
        """The query on the checkpoint that `model` means; raises `QueryError` where the source is too long."""
        return Query(
            checkpoint=content_hash,
            source=self.source or "",
            decoding=self.decoding,
            max_new=self.max_new,
            forced=self.forced,
            hypothesis=self.hypothesis,
            interventions=self.interventions,
        )


def address_words() -> tuple[str, ...]:
    """All names that an address may have."""
    own = (one.spelling.name for one in declared(Link) if one.spelling.name)
    return (*own, *parameters(), *(one.name for _, settings in WAYS.values() for one in settings))


def write_link(link: Link) -> dict[str, str]:
    """The query parameters of a link; what is at its default is left out."""
    said = write_fields((one, getattr(link, one.name)) for one in declared(Link))
    return {name: str(value) for name, value in said.items() if value is not None}


def read_link(said: Mapping[str, Sequence[str]]) -> tuple[Link, tuple[str, ...]]:
    """The link that query parameters say, each with all its values, and a note for what had to be put right."""
    reader = Reader(said)
    link = Link(**read_fields(declared(Link), reader))
    if isinstance(link.decoding, Beam):
        result = (reader.in_range("result", int, 1, link.decoding.size) or 1) - 1
        link = replace(link, hypothesis=result)
    if len(link.forced) > link.max_new:
        link = replace(link, forced=())
        reader.notes.append(
            say("The link forces more tokens than the maximum output length allows, so its forced tokens were ignored.")
        )
    return link, tuple(reader.notes)
