"""Import report: fate of every tensor, source of every config field, questions; lazy reading of the values.

Every tensor of the file and of the model and every field of the config is accounted for. What nothing says is asked: a
field with its choices, best first where they were scored. Nothing can be written while something is missing, left over
or asked. Tensors are read from the file one at a time, so a model is in memory once.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import Any, Final, Literal

import torch
from torch import Tensor

from glassformer.extensions.importers.library import keys
from glassformer.extensions.importers.library.keys import AS_IS, Facts, Match, Rule
from glassformer.extensions.tokenizers.tokenizer_families import Vocabularies
from glassformer.extensions.weight_files.weights import Weights
from transformer.checkpoint.consistency import Places, Shapes
from transformer.checkpoint.parameter_layout import Halves
from transformer.checkpoint.save import CheckpointContents
from transformer.errors import CheckpointError
from transformer.files.tensorfile import FLOATS, NARROW
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.config import ModelConfig

Stored = tuple[bytes, ...] | Vocabularies  # tokenizers, as `CheckpointContents` has them
Fate = Literal["renamed", "ignored", "unknown"]
How = Literal["read", "inferred", "decided", "answered", "asked"]
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


@dataclass(frozen=True)
class FileTensor:
    """What became of one tensor of the file."""

    name: str  # as the file has it, without the prefixes of wrappers
    dtype: str  # the format's name of the dtype, such as "F16"
    shape: tuple[int, ...]  # as the file has it
    # "ignored": the model does not use it; "unknown": the model may compute something else.
    fate: Fate
    targets: tuple[str, ...] = ()  # the tensors of the model that it became, or a part of
    how: Sentence | None = None  # how its values were moved, None if they stayed as they are; or why it is ignored


@dataclass(frozen=True)
class Choice:
    """An answer that a question may have."""

    value: Any  # of the field
    score: float | None = None  # mean loss of a piece with it, lower is better; None if it was not tried
    output: str | None = None  # what the model writes with it for the first text; None if it was not tried


@dataclass(frozen=True)
class Field:
    """How the value of one field of the config is known."""

    name: str  # of the field, as config.json has it
    how: How  # "read" from a file, "inferred" from the weights, "decided" by pairs, "answered" by the user, or "asked"
    value: Any  # None if it is asked
    evidence: Sentence  # where it was read, or what it was inferred from; why it has to be asked
    choices: tuple[Choice, ...] = ()  # the answers that are possible, best first; empty if any value of the field is
    usual: tuple[Any, ...] = ()  # the default of the code that such files come from; none if it has none

    @property
    def is_assumed(self) -> bool:
        """Whether nearly all code has this value and the file does not say it: another one may be answered."""
        return self.how == "inferred" and len(self.choices) > 1

    def answered(self, value: Any) -> "Field":
        """The field with the user's answer."""
        is_usual = any(type(value) is type(one) and value == one for one in self.usual)
        why = say("Your answer, which is the usual value.") if is_usual else say("Your answer.")
        return replace(self, how="answered", value=value, evidence=why)

    def ranked(self, by: "Field") -> "Field":
        """The field with the choices of another one as texts rank them; with its value if they decided that."""
        if self.how == "read":
            return self
        same = (self.how, by.how, self.value) == ("answered", "decided", by.value)
        return by if same else replace(self, choices=by.choices, usual=by.usual, evidence=by.evidence)


def ask(name: str, why: Sentence, *values: Any) -> Field:
    """A question, with the answers that are possible, likeliest first."""
    return Field(name, "asked", None, why, tuple(map(Choice, dict.fromkeys(values))))


def inferred(name: str, value: Any, why: Sentence, *values: Any) -> Field:
    """A value that the file shows; with other `values` it is assumed."""
    return Field(name, "inferred", value, why, tuple(map(Choice, dict.fromkeys(values))))


@dataclass(frozen=True)
class ImportReport:
    """All that is known of an import before it is done."""

    source: str  # how messages call the file or folder
    recognised: Sentence  # what kind of model the names are those of
    file_tensors: tuple[FileTensor, ...]  # every tensor of the file, in its order
    missing: tuple[str, ...]  # tensors of the model that nothing gives
    filled: Mapping[str, Sentence]  # those that the file need not have, and what they are filled with, such as ones
    fields: tuple[Field, ...]  # every field of the config that is not at its default
    notes: tuple[Sentence, ...] = ()  # sentences about the rest
    pieces: tuple[str, ...] = ()  # the files of the tokenizers; none if texts are typed as ids
    unused_answers: tuple[Sentence, ...] = ()  # notes about kept answers of other models, said with questions, too

    @property
    def left_over(self) -> tuple[str, ...]:
        """Tensors of the file that nobody knows."""
        return tuple(tensor.name for tensor in self.file_tensors if tensor.fate == "unknown")

    @property
    def asked(self) -> tuple[Field, ...]:
        """Fields that the user has to answer."""
        return tuple(one for one in self.fields if one.how == "asked")

    @property
    def usual(self) -> dict[str, Any]:
        """The usual values of fields that are asked, by name: answers that a user may take, all at once."""
        return {one.name: one.usual[0] for one in self.asked if one.usual}

    @property
    def lacks_embeddings(self) -> bool:
        """Whether it is the layers of a model without its embeddings, as `torch.nn.Transformer` is: no answer helps."""
        asked = (one.name for one in self.asked)
        return "src_table" in self.missing and not self.left_over and "src_table" not in asked

    @property
    def tried(self) -> tuple[Field, ...]:
        """Fields whose choices texts can rank: those that are asked, and those that are assumed."""
        return tuple(one for one in self.fields if one.how == "asked" or one.is_assumed)

    @property
    def decided(self) -> dict[str, Any]:
        """What pairs decided, by the names of the fields."""
        return {one.name: one.value for one in self.fields if one.how == "decided"}

    def ranked(self, by: "ImportReport") -> "ImportReport":
        """The report with the choices as texts rank them in another one, and what these decided unless answered."""
        known = {one.name: one for one in by.fields if any(choice.score is not None for choice in one.choices)}
        notes = (*self.notes, *(note for note in by.notes if note not in self.notes))
        return replace(self, fields=tuple(one.ranked(known.get(one.name, one)) for one in self.fields), notes=notes)

    @property
    def decisions(self) -> tuple[Sentence, ...]:
        """What pairs decided, and by which losses."""
        said = (one for one in self.fields if one.how == "decided")
        return tuple(
            say("{field} = {value}. {why}", field=o.name, value=_written(o.value), why=o.evidence) for o in said
        )

    @property
    def can_be_written(self) -> bool:
        """Whether every tensor and every field is accounted for."""
        return not (self.left_over or self.missing or self.asked)

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Rows of sentences or data, layers together: a tensor's name, shape, outcome, and how or why."""
        kinds: dict[tuple[object, ...], list[FileTensor]] = {}
        for one in self.file_tensors:
            names = tuple(_NUMBER.sub("#", name, count=1) for name in (one.name, *one.targets))
            kinds.setdefault((names, one.dtype, one.shape, one.fate, one.how), []).append(one)
        rows = list[tuple[str, str, str, str]]()
        for alike in kinds.values():
            one, name = alike[0], collapsed(other.name for other in alike)
            targets = ", ".join(collapsed(column) for column in zip(*(other.targets for other in alike), strict=True))
            told = {"renamed": say("becomes {targets}", targets=targets), "ignored": say("ignored")}
            rows.append((name, f"{one.dtype} {[*one.shape]}", told.get(one.fate, say("unknown")), one.how or ""))
        return rows

    def filled_rows(self) -> list[tuple[str, Sentence]]:
        """A row for each tensor of the model that the file does not have, layers together, and what it is instead."""
        kinds: dict[tuple[str, Sentence], list[str]] = {}
        for name, what in self.filled.items():
            kinds.setdefault((_NUMBER.sub("#", name, count=1), what), []).append(name)
        return [(collapsed(names), what) for (_, what), names in kinds.items()]

    def field_rows(self) -> list[tuple[str, str, str, str]]:
        """A row for each field: its name, its value or the choices, how it is known, and from what."""
        return [(one.name, _value(one), HOW[one.how], one.evidence) for one in self.fields]

    def lines(self) -> list[str]:
        """The report, for a terminal."""
        return [
            say("{title}: {text}", title=self.source, text=self.recognised),
            *self.notes,
            *_part("tensors:", self.rows()),
            *_part("stand-ins:", self.filled_rows()),
            *_part("config.json:", self.field_rows()),
            *_part("missing:", [(name,) for name in self.missing]),
            *_part("unknown:", [(name,) for name in self.left_over]),
            self.verdict(),
        ]

    def verdict(self) -> Sentence:
        """Whether it can be written, and what is in the way."""
        if self.can_be_written:
            return say("All tensors and fields are accounted for, so the model can be imported.")
        counts = [
            (len(self.missing), say_n("{n} tensor is missing", "{n} tensors are missing", len(self.missing))),
            (len(self.left_over), say_n("{n} tensor is left over", "{n} tensors are left over", len(self.left_over))),
            (len(self.asked), say_n("{n} field needs an answer", "{n} fields need answers", len(self.asked))),
        ]
        return say(
            "The model cannot be imported yet: {problems}.",
            problems=joined(", ", [clause for count, clause in counts if count]),
        )

    def __str__(self) -> str:
        return "\n".join(self.lines())


NO_EMBEDDINGS: Final = say(
    "The file has layers, but no table of token embeddings, so the model cannot read a text. PyTorch’s "
    "`nn.Transformer` holds none: save the module that it is a part of, with its embeddings and its output layer."
)
HOW: dict[How, Sentence] = {
    "read": say("read"),
    "inferred": say("inferred"),
    "decided": say("decided by pairs"),
    "answered": say("answered"),
    "asked": say("asked"),
}


def collapsed(names: Iterable[str]) -> str:
    """Names that differ in one number as one: those of the layers of a stack.

    Example:
        >>> collapsed(["encoder.layers.0.norm1.weight", "encoder.layers.1.norm1.weight"])
        'encoder.layers.0–1.norm1.weight'
    """
    names = list(names)
    numbers = [int(found[0]) for name in names if (found := _NUMBER.search(name))]
    if len(names) == 1 or len(numbers) != len(names):
        return names[0]
    return _NUMBER.sub(f"{min(numbers)}–{max(numbers)}", names[0], count=1)


def _value(one: Field) -> str:
    if one.how != "asked":
        return _written(one.value)
    choices = [(_written(choice.value), choice.score) for choice in one.choices]
    return ", ".join(value if score is None else f"{value} ({score:.3f})" for value, score in choices)


def _written(value: Any) -> str:
    """A value as config.json has it, but for the quotes around a word."""
    record = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    return value if isinstance(value, str) else json.dumps(record)


def _part(head: str, rows: Sequence[Iterable[str]]) -> list[str]:
    lines = [joined("  ", ["", *filter(None, cells)]) for cells in rows]
    return [head, *lines] if lines else []


@dataclass(frozen=True)
class Opened:
    """The values of a model in an open file of another program."""

    match: Match  # what becomes of the file's tensors
    facts: Facts  # what the reshapes need to know
    weights: Weights  # the file

    @property
    def shapes(self) -> Shapes:
        """Names and shapes in the model."""
        return keys.shapes(self.match, self.weights, self.facts)

    @property
    def narrow(self) -> Halves:
        """The tensors that 16 bits of the file are enough for, and which."""
        kinds: dict[str, torch.dtype] = {}
        for one in self.match.taken:
            if one.reshape.exact and (kind := FLOATS.get(self.weights.tensors[one.source].dtype)) in NARROW:
                kinds |= dict.fromkeys(one.targets, kind)
        return kinds

    def write(self, places: Places) -> Iterator[str]:
        """Write each tensor into its place, straight from the file where it stays as it is; name it after that."""
        for one in self.match.taken:
            if one.reshape is AS_IS:
                self.weights.read(one.source, places[one.targets[0]])
            else:
                for target, values in self._made(one):
                    places[target].copy_(values)
            yield from one.targets

    def read(self) -> Iterator[tuple[str, Tensor]]:
        """Each tensor's name and float32 values, one of the file at a time; parts of it share its memory."""
        for one in self.match.taken:
            yield from self._made(one)

    def _made(self, one: Rule) -> Iterator[tuple[str, Tensor]]:
        made = one.reshape.apply(self.weights.read(one.source), self.facts)
        return zip(one.targets, made, strict=True)


@dataclass(frozen=True)
class Content:
    """A model that is understood, and still in its file."""

    config: ModelConfig  # the features of the model
    vocabularies: Stored  # its tokenizers
    card: Mapping[str, object]  # what `card.json` shall say
    match: Match  # what becomes of the file's tensors
    facts: Facts  # what the reshapes need to know, such as the number of heads
    open_again: Callable[[], AbstractContextManager[Weights]]  # opens the file

    @contextmanager
    def values(self) -> Iterator[Opened]:
        """The tensors of the model, to be read one at a time while their file is open; refused if it changed."""
        with self.open_again() as weights:
            if not {one.source for one in self.match.taken} <= set(weights.tensors):
                raise CheckpointError("{label}: was replaced by a different file; open it again.", label=weights.label)
            yield Opened(self.match, self.facts, weights)

    def parts(self) -> CheckpointContents:
        """What a checkpoint folder is made of; the tensors stay in their file until they are written."""
        return CheckpointContents(self.config, self.values, self.vocabularies, self.card)


@dataclass(frozen=True)
class UnopenedTensors:
    """The tensors of a file whose model has open questions."""

    match: Match  # what is known of them so far
    open_again: Callable[[], AbstractContextManager[Weights]]  # opens the file

    def each(self, weights: Weights) -> Iterator[tuple[str, Tensor]]:
        """Each tensor of the open file, with its name in the model, or in the file if nobody knows what it is."""
        absent = self.match.standing_in
        known = [one for one in self.match.taken if not one.reshape.needs]
        named = {one.source for one in known}
        for name, values in Opened(replace(self.match, taken=tuple(known)), {}, weights).read():
            if name not in absent:
                yield name, values
        for name in (*(one.source for one in self.match.taken), *self.match.left_over):
            if name not in named and weights.tensors[name].dtype in FLOATS:
                yield name, weights.read(name)


@dataclass(frozen=True)
class Imported:
    """A file or folder as it was understood."""

    report: ImportReport  # what became of every tensor, and where every field comes from
    content: Content | None  # the model; None while the report asks something
    tensors: UnopenedTensors | None = None  # of a file of weights, while the report asks something
    named: Match | None = None  # what the names alone say; None where a config or a card says it

    @property
    def parts(self) -> CheckpointContents | None:
        """What a checkpoint folder is made of; None while the report asks something."""
        return None if self.content is None else self.content.parts()
