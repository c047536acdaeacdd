"""What a user adds to weights: tokenizers, and pairs of sentences to try answers on.

A tokenizer is a SentencePiece model, a tokenizer.json, a vocab.json next to its merges.txt, BERT's vocab.txt, or a
plain list of characters or words: one per line, or {"piece": id}. Without one the model works on ids.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer.checkpoint.tokenizer_files import MAX_JSON, MAX_TOKENIZER
from transformer.errors import CheckpointError, TokenizerError
from transformer.files.files import FolderFiles
from transformer.text import library, listed
from transformer.text.options import Options
from transformer.text.tokenizer import AnyTokenizer
from transformer.text.vocabularies import TARGET_JSON, Vocabularies, sentencepiece
from words import Sentence, say

SENTENCEPIECE, LIST = "SentencePiece", "list"
_WITH_MODEL = re.compile(rb'"model"\s*:\s*\{')  # in a list of pieces a number follows
_LINES_OF_BERT = (rb"^\[UNK\]\r?$", rb"^\[CLS\]\r?$", rb"^\[SEP\]\r?$")


@dataclass(frozen=True)
class Given:
    """The user's files for a model of another program."""

    source_pieces: Path | None = None  # A tokenizer for each side
    target_pieces: Path | None = None  # A tokenizer for each side
    pieces: Path | None = None  # one for both
    # Sources and references: one pair per line, with a tab between them; ids if there is no tokenizer.
    pairs: Path | None = None

    @property
    def has_tokenizer(self) -> bool:
        """Whether a tokenizer was given."""
        return any((self.source_pieces, self.target_pieces, self.pieces))


NOTHING = Given()


@dataclass(frozen=True)
class Tokenizers:
    """The tokenizers of a model."""

    stored: tuple[bytes, ...] | Vocabularies  # as a checkpoint stores them
    source: AnyTokenizer  # one object where they are alike
    target: AnyTokenizer  # one object where they are alike
    notes: tuple[Sentence, ...] = ()  # what a reader should know

    @property
    def raw(self) -> bool:
        """Whether texts are typed as ids."""
        return isinstance(self.stored, Vocabularies) and self.stored.family == "raw"


@dataclass(frozen=True)
class _File:
    """A tokenizer of one side."""

    name: str
    kind: str
    files: Mapping[str, bytes]


def without(sizes: tuple[int, int], special: Sequence[int] = ()) -> Tokenizers:
    """No tokenizer: pieces are the numbers of the rows; special ones have no text."""
    target_size = None if sizes[0] == sizes[1] else sizes[1]
    stored = Vocabularies(
        "raw", Options(size=sizes[0], target_size=target_size, special_ids=tuple(sorted(set(special))))
    )
    note = say("No tokenizer was given, so texts must be typed as ids.")
    return Tokenizers(stored, *stored.open(), notes=(note,))


def beside(folder: Path) -> Given:
    """The tokenizers in the folder of the weights, under the names that this program uses."""

    def first(*names: str) -> Path | None:
        return next((folder / name for name in names if (folder / name).exists()), None)

    return Given(first("source.model"), first("target.model"), first("pieces.model", library.FILE))


def opened(given: Given, sizes: tuple[int, int], *, shared: bool, inside: Path | None = None) -> Tokenizers:
    """The given tokenizers, at least one, for tables with this many rows; refuses those that do not fit."""
    source, target = _sides(given, shared=shared, inside=inside)
    try:
        made = _made(source, target, sizes, shared=shared)
    except TokenizerError as error:
        raise CheckpointError("{file}: {problem}", file=source.name, problem=error.sentence) from error
    for file, tokenizer, rows in ((source, made.source, sizes[0]), (target, made.target, sizes[1])):
        if tokenizer.size != rows:
            raise CheckpointError(
                "{file}: has {n:,} pieces, but the embedding table has {rows:,} rows; give the tokenizer that the "
                "model was trained with.",
                file=file.name,
                n=tokenizer.size,
                rows=rows,
            )
    return made


def _sides(given: Given, *, shared: bool, inside: Path | None) -> tuple[_File, _File]:
    source, target = given.source_pieces or given.pieces, given.target_pieces or given.pieces
    if shared and source and target and source != target:
        raise CheckpointError(
            "two tokenizers were given, {source} and {target}, but the model has only one embedding table; give "
            "one tokenizer for both sides.",
            source=source.name,
            target=target.name,
        )
    if shared:
        source = target = source or target
    if source is None or target is None:
        raise CheckpointError(
            "only one tokenizer was given, {file}, but the model has two embedding tables; give one tokenizer for "
            "each side, or state that this one is for both.",
            file=(source or target or Path()).name,
        )
    first = _file(source, inside)
    return first, first if source == target else _file(target, inside)


def _file(path: Path, inside: Path | None) -> _File:
    """Read a tokenizer, and tell its kind."""
    files = FolderFiles(path.parent, inside=inside)
    name = path.name
    if path.suffix == ".json":
        content = files.read(name, limit=MAX_JSON)
        if _WITH_MODEL.search(content):  # the process that reads such a file parses it
            return _File(name, "json", {library.FILE: content})
        files.check_size(name, limit=MAX_TOKENIZER)
        if not files.has("merges.txt"):
            return _File(name, LIST, {listed.IDS: content})
        merges = {"vocab.json": content, "merges.txt": files.read("merges.txt", limit=MAX_TOKENIZER)}
        return _File(name, "roberta" if b'"<s>"' in content and b'"</s>"' in content else "gpt2", merges)
    content = files.read(name, limit=MAX_TOKENIZER)
    if path.suffix == ".txt":
        kind = "bert" if all(re.search(line, content, re.MULTILINE) for line in _LINES_OF_BERT) else LIST
        return _File(name, kind, {"vocab.txt": content})
    return _File(name, SENTENCEPIECE, {"": content})


def _made(source: _File, target: _File, sizes: tuple[int, int], *, shared: bool) -> Tokenizers:
    if {source.kind, target.kind} == {SENTENCEPIECE}:
        models = [sentencepiece({file.name: file.files[""]}, file.name) for file in (source, target)]
        stored = (source.files[""],) if shared else (source.files[""], target.files[""])
        return Tokenizers(stored, models[0], models[0] if source is target else models[1])
    options = Options(size=sizes[0], target_size=None if sizes[0] == sizes[1] else sizes[1])
    if source is target:
        both = Vocabularies(source.kind, options, source.files)
        return Tokenizers(both, *both.open())
    if {source.kind, target.kind} == {"json"}:
        files = {library.FILE: source.files[library.FILE], TARGET_JSON: target.files[library.FILE]}
        both = Vocabularies("json", options, files)
        return Tokenizers(both, *both.open())
    if {source.kind, target.kind} == {LIST}:
        own = {f"target_{name}": content for name, content in target.files.items()}
        both = Vocabularies(LIST, options, {**source.files, **own})
        return Tokenizers(both, *both.open())
    raise CheckpointError(
        "{source} and {target}: the tokenizers of the two sides must be two SentencePiece models, two files in the "
        "tokenizer.json format, or two plain lists; found {kinds}.",
        source=source.name,
        target=target.name,
        kinds=", ".join((source.kind, target.kind)),
    )
