"""`Toolkit` record of an importer, its options and files; limited readers of YAML settings and token lists."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.extensions.importers.library.config_settings import Fields, Present, Settings
from glassformer.extensions.importers.library.renaming import Becomes
from glassformer.extensions.weight_files.weight_folder import parsed_yaml
from glassformer.extensions.weight_files.weights import Weights
from transformer.checkpoint.tokenizer_files import MAX_TOKENIZER
from transformer.errors import ClauseError, shown, within
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import Sentence, say
from transformer.text.sentencepiece_check import MAX_PIECES

NOTHING: tuple[Any, ...] = (None, False, 0, 0.0, "", [], {}, "none")  # what an option that is not used is saved as


class ToolkitOptions(Settings):
    """The options that a toolkit trained a model with, wherever it saves them."""

    def where(self, *keys: str) -> Sentence:
        """Where a value was found."""
        return say("{key} in the model's training options", key=", ".join(keys))

    def nowhere(self, key: str) -> Sentence:
        """That an option is absent, so its default is used."""
        return say("default value, because the model's training options have no {key}", key=key)

    def refuse(self, *keys: str) -> None:
        """Refuse what each of these keys asks for, unless it says that it is not used."""
        for key in keys:
            found = self.raw(key)
            if found not in NOTHING:
                raise self.refused(key, found, say("no value, or a value that turns this option off"))

    def check_asked(self, prefixes: tuple[str, ...], without_effect: Collection[str] = ()) -> None:
        """Refuse keys of unknown meaning among those that begin so."""
        others = {key for key in self.keys() if not key.startswith(prefixes)}
        self.check_all_asked({*others, *without_effect})


def part(record: Any, name: str) -> dict[str, Any]:
    """A nested record; empty if there is none."""
    inside = record.get(name) if isinstance(record, Mapping) else None
    return {str(key): value for key, value in inside.items()} if isinstance(inside, Mapping) else {}


@dataclass(frozen=True)
class ToolkitFiles:
    """Where weights lie, with what lies beside them."""

    weights: Weights  # the open file
    folder: Path  # its folder
    name: str  # of the file; empty where the folder was named
    files: FolderFiles  # the folder's files

    def names(self, *endings: str) -> list[str]:
        """Files beside it that end so, in order."""
        try:
            return sorted(one.name for one in self.folder.iterdir() if one.name.endswith(endings) and one.is_file())
        except OSError:
            return []

    def lines(self, name: str) -> list[str]:
        """The lines of a text file, without line breaks; refused if it is not UTF-8 or has too many lines."""
        content = self.files.read(name, limit=MAX_TOKENIZER)
        with within(self.files.label(name)):
            try:
                text = content.decode("utf-8-sig")
            except UnicodeDecodeError as error:
                raise ClauseError("is not UTF-8 (error at byte {byte})", byte=error.start) from None
            count = text.count("\n") + (text[-1:] not in ("", "\n"))
            if not 1 <= count <= MAX_PIECES:
                raise ClauseError("has {n:,} lines; expected a list of 1 to {most:,} tokens", n=count, most=MAX_PIECES)
            found = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
            longest = max(range(count), key=lambda place: len(found[place]))
            if (n := len(found[longest])) > MAX_LINE:
                raise ClauseError(
                    "line {line:,} has {n:,} characters; the limit is {most:,}", line=longest + 1, n=n, most=MAX_LINE
                )
            return found

    def by_ids(self, name: str) -> tuple[str, ...]:
        """The pieces of a YAML file of `piece: id`, in the order of their ids, which are those from 0 on."""
        rows = self.lines(name)
        with within(self.files.label(name)):
            return _by_ids(rows)

    def settings(self, name: str) -> dict[str, Any]:
        """A file of settings, as `settings` reads it."""
        return settings(self.files.read(name, limit=MAX_SETTINGS), label=self.files.label(name))


@dataclass(frozen=True)
class ToolkitPieces:
    """The lists of pieces of both sides."""

    source: tuple[str, ...]  # the pieces in the order of their ids
    target: tuple[str, ...]  # the pieces in the order of their ids
    # SentencePiece's files, which split texts; None without them.
    models: tuple[str, str] | None = None

    def id_of(self, piece: str) -> int:
        """The id of a special piece, the same on both sides; refused if a side lacks it, or they differ."""
        found = [names.index(piece) if piece in names else None for names in (self.source, self.target)]
        if found[0] is None or found[0] != found[1]:
            raise ClauseError(
                "{piece} has the id {source} in the source's list of tokens and {target} in the target's; expected "
                "the same id in both",
                piece=shown(piece),
                source=shown(found[0]),
                target=shown(found[1]),
            )
        return found[0]


@dataclass(frozen=True)
class Toolkit:
    """A toolkit."""

    name: str  # its display name
    # Whether weights are its own, by tensor names and saved metadata.
    recognises: Callable[[Weights], bool]
    options: Callable[[ToolkitFiles], Mapping[str, Any]]  # training options
    # Its lists of pieces, or a sentence about what is missing.
    pieces: Callable[[ToolkitOptions, ToolkitFiles], ToolkitPieces | Sentence]
    names: Callable[[ToolkitOptions, ToolkitFiles], Mapping[str, Becomes]]  # of its tensors
    # From options, tensors and lists to the fields of our config.
    fields: Callable[[ToolkitOptions, Present, ToolkitPieces | None], Fields]
    tied: tuple[str, ...]  # options of which any says that the output is the target's table of embeddings


MAX_SETTINGS = 100_000  # bytes: real ones have 10,000, and PyYAML takes a second for so many
MAX_DEPTH = 12
MAX_LINE = 1_000  # characters of a line of a list
MAX_SLOW = 10_000  # lines that PyYAML has to read, 10,000 in a second
_PLAIN = re.compile(
    r"""(?: "([^"\\]*)" | '([^']*)' | ([^\s"'\#&*!|>%@`\[\]{},:?-][^\s\#:"'\\]*) ) \ *: \ *(\d+)""", re.VERBOSE
)
_UNICODE = re.compile(r'("(?:[^"\\]|\\u[0-9A-Fa-f]{4})*") *: *(\d+)')  # as PyYAML escapes non-ASCII text


def settings(content: bytes | str, *, label: str) -> dict[str, Any]:
    """A YAML file of settings; refused if it is damaged, or nested too deeply."""
    with within(label):
        if len(content) > MAX_SETTINGS:
            raise ClauseError("has {n:,} bytes of settings; the limit is {most:,}", n=len(content), most=MAX_SETTINGS)
        found = parsed_yaml(content)
        if not isinstance(found, dict) or not _fits(found, MAX_DEPTH):
            raise ClauseError("expected settings in YAML, found {found}", found=shown(found))
        return {str(key): value for key, value in found.items()}


def _fits(value: Any, depth: int) -> bool:
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_fits(one, depth - 1) for one in inside)
    return True


def no_lists(names: Iterable[str]) -> Sentence:
    """What is said where the lists of tokens are missing."""
    return say(
        "The model's lists of tokens, {names}, are not in the folder of the model's file.", names=", ".join(names)
    )


def _by_ids(rows: Iterable[str]) -> tuple[str, ...]:
    found, slow = dict[int, str](), 0
    for number, line in enumerate(rows, start=1):
        if not line.strip() or line.lstrip().startswith("#") or line.strip() == "---":
            continue
        known = _known(line.strip())
        slow += known is None
        if slow > MAX_SLOW:
            raise ClauseError(
                "more than {most:,} lines are in a form that is slow to read; write each line in the form {example}",
                most=MAX_SLOW,
                example='`"piece": 5`',
            )
        piece, i = known or _piece(line, number)
        if i in found:
            raise ClauseError(
                "{piece} has the id {i}, which {other} already has", piece=shown(piece), i=i, other=shown(found[i])
            )
        found[i] = piece
    try:
        "".join(found.values()).encode()
    except UnicodeEncodeError:
        raise ClauseError("contains an unpaired surrogate, which is not a valid character") from None
    missing = next((i for i in range(len(found)) if i not in found), None)
    if missing is not None or not found:
        raise ClauseError("lists {n:,} tokens, but none has the id {i}", n=len(found), i=missing or 0)
    return tuple(found[i] for i in range(len(found)))


def _known(line: str) -> tuple[str, int] | None:
    """A piece and its id, if both are well-formed."""
    if plain := _PLAIN.fullmatch(line):
        return next(piece for piece in plain.groups()[:3] if piece is not None), int(plain[4])
    if found := _UNICODE.fullmatch(line):
        return json.loads(found[1]), int(found[2])
    return None


def _piece(line: str, number: int) -> tuple[str, int]:
    read = parsed_yaml(line, words=True)
    if isinstance(read, dict) and len(read) == 1:
        ((piece, i),) = read.items()
        if isinstance(piece, str) and isinstance(i, str) and i.isdecimal() and len(i) < 10:
            return piece, int(i)
    raise ClauseError(
        "line {line:,} is {found}; expected a token and its id, as in `the: 5`", line=number, found=shown(line)
    )
