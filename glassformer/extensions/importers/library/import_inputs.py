"""Tokenizers for imported weights: given or found beside the file; special ids, asked or inferred.

A tokenizer is a SentencePiece model, a tokenizer.json, a vocab.json next to its merges.txt, BERT's vocab.txt, or a
plain list of characters or words: one per line, or {"piece": id}, or ["piece"]. Without one the model works on ids.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from glassformer.extensions.importers.library.report import Field, Stored, ask, inferred
from glassformer.extensions.tokenizers import tokenizers_library, vocabulary
from glassformer.extensions.tokenizers.options import Options
from glassformer.extensions.tokenizers.tokenizer_families import Vocabularies, sentencepiece
from glassformer.extensions.tokenizers.vocabulary import CALLED
from glassformer.extensions.weight_files.weight_folder import places_beside
from transformer.checkpoint.tokenizer_files import MAX_JSON, MAX_TOKENIZER
from transformer.errors import CheckpointError, ClauseError, GlassformerError, within
from transformer.files import strictjson
from transformer.files.untrusted_folder import FolderFiles, as_typed
from transformer.i18n import Sentence, say
from transformer.text.tokenizer import AnyTokenizer

SENTENCEPIECE, LIST = "SentencePiece", "list"
_SIDES = (("source", "src"), ("target", "tgt", "trg"))
_MODELS = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model")
_BOTH = ("pieces.model", "pieces.json", tokenizers_library.FILE, *_MODELS, "vocab.json", "vocab.txt", "pieces.txt")
_NOT = ("config.json", "merges.txt", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json")
_ENDINGS = (".model", ".spm", ".json", ".txt")
_PADDING = 128  # rows that a table may have beyond its pieces
_MOST = 12  # files beside the weights that are tried
_WITH_MODEL = re.compile(rb'"model"\s*:\s*\{')  # in a list of pieces a number follows
_LINES_OF_BERT = (rb"^\[UNK\]\r?$", rb"^\[CLS\]\r?$", rb"^\[SEP\]\r?$")


@dataclass(frozen=True)
class ImportInputs:
    """The user's files for a model of another program."""

    source_pieces: Path | None = None  # A tokenizer for each side
    target_pieces: Path | None = None  # A tokenizer for each side
    pieces: Path | None = None  # one for both
    # Sources and references: one pair per line, with a tab between them; ids if there is no tokenizer.
    pairs: Path | None = None
    card: Path | None = None  # what the tensors' names mean; see `cards`

    def __bool__(self) -> bool:
        return self != NOTHING

    @property
    def has_tokenizer(self) -> bool:
        """Whether a tokenizer was given."""
        return any((self.source_pieces, self.target_pieces, self.pieces))


NOTHING = ImportInputs()


@dataclass(frozen=True)
class ImportRequest:
    """What is to be opened, and what the user says of it."""

    source: Path | None  # a file or folder; None for a model in memory
    # To questions of a report, past or future, by fields.
    answers: Mapping[str, Any] = field(default_factory=dict)
    given: ImportInputs = NOTHING
    inside: Path | None = None  # the real path of a folder that no link may leave; None if any will do


@dataclass(frozen=True)
class Tokenizers:
    """The tokenizers of a model."""

    stored: Stored  # as a checkpoint has them
    source: AnyTokenizer  # one object where they are alike
    target: AnyTokenizer  # one object where they are alike
    notes: tuple[Sentence, ...] = ()  # what a reader should know
    files: tuple[str, ...] = ()  # those that they were read from

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
    options = Options(size=sizes[0], target_size=target_size, special_ids=tuple(sorted(set(special))))
    stored, note = Vocabularies("raw", options), say("No tokenizer was given, so texts must be typed as ids.")
    return Tokenizers(stored, *stored.open(), notes=(note,))


def beside(source: Path, sizes: tuple[int, int], *, shared: bool, inside: Path | None, raw: Tokenizers) -> Tokenizers:
    """The tokenizers next to the weights of a file or a folder; `raw` if none fits.

    Usual file names come first; in a folder others are tried too, and taken if only these fit.
    """
    folders = [source] if source.is_dir() else places_beside(source)
    folders = [one for one in folders if inside is None or one.resolve().is_relative_to(inside)]
    usual, notes = next((found for one in folders if (found := _usual(one))), NOTHING), raw.notes
    if usual.has_tokenizer:
        try:
            return _taken(usual, sizes, shared=shared, inside=inside)
        except CheckpointError as error:  # nobody asked for it
            note = say("The tokenizer next to the weights is not used: {problem}", problem=error.sentence)
            notes = (*notes, note)
    there = sorted(source.iterdir()) if source.is_dir() else []
    files = [path for path in there if path.suffix in _ENDINGS and path.name not in _NOT]
    fitting = {rows: [path for path in files[:_MOST] if _fits(path, rows, inside)] for rows in sizes}
    sources, targets = (fitting[rows] for rows in sizes)
    if not shared and sizes[0] == sizes[1] and len(sources) == 2:  # one each, if the names say which
        sources, targets = ([path for path in sources if _side(path) == side] for side in (0, 1))
    if sources and targets and len(sources) == len(targets) == 1:
        return _taken(ImportInputs(sources[0], targets[0]), sizes, shared=shared, inside=inside)
    if names := ", ".join(path.name for path in dict.fromkeys((*sources, *targets))):
        said = say(
            "Several files next to the weights could be the tokenizer, or one side has none: {names}. Give them.",
            names=names,
        )
        notes = (*notes, said)
    return replace(raw, notes=notes)


def _usual(folder: Path) -> ImportInputs:
    """The tokenizers in a folder under the names that programs use."""

    def first(*names: str) -> Path | None:
        return next((folder / name for name in names if (folder / name).exists()), None)

    source, target = (first(*(side + end for side in names for end in _ENDINGS)) for names in _SIDES)
    return ImportInputs(source, target, first(*_BOTH))


def _taken(given: ImportInputs, sizes: tuple[int, int], *, shared: bool, inside: Path | None) -> Tokenizers:
    """Those that nobody gave; a list is only taken if it is as long as the table."""
    sides = zip((given.source_pieces or given.pieces, given.target_pieces or given.pieces), sizes, strict=True)
    for path, rows in sides:
        if path is not None and path.suffix in (".txt", ".json") and not _fits(path, rows, inside):
            raise CheckpointError(
                "{file}: does not have one token for each of the {rows:,} rows of the embedding table.",
                file=path.name,
                rows=rows,
            )
    found = opened(given, sizes, shared=shared, inside=inside)
    note = say("Tokenizer next to the weights: {names}.", names=", ".join(found.files))
    return replace(found, notes=(*found.notes, note))


def _fits(path: Path, rows: int, inside: Path | None) -> bool:
    """Whether a file has about as many pieces as a table has rows; a list has exactly as many."""
    try:
        file = _file(path, inside)
        n = _made(file, file, (None, None), shared=True).source.size
    except GlassformerError:
        return False
    return n == rows or (file.kind != LIST and rows - _PADDING < n < rows)


def _side(path: Path) -> int | None:
    """Which side a file is for, by its name."""
    meant = [any(name in path.stem.lower() for name in names) for names in _SIDES]
    return meant.index(True) if sum(meant) == 1 else None


def opened(given: ImportInputs, sizes: tuple[int, int], *, shared: bool, inside: Path | None = None) -> Tokenizers:
    """The given tokenizers, at least one, for tables with this many rows; refuses those that do not fit."""
    source, target = given.source_pieces or given.pieces, given.target_pieces or given.pieces
    if shared and source and target and source != target:
        raise CheckpointError(
            "two tokenizers were given, {source} and {target}, but the model has only one embedding table; give "
            "one tokenizer for both sides.",
            source=as_typed(source, inside),
            target=as_typed(target, inside),
        )
    if shared:
        source = target = source or target
    if source is None or target is None:
        raise CheckpointError(
            "only one tokenizer was given, {file}, but the model has two embedding tables; give one tokenizer for "
            "each side, or state that this one is for both.",
            file=as_typed(source or target or Path(), inside),
        )
    first = _file(source, inside)
    second = first if source == target else _file(target, inside)
    with within(first.name):
        made = _made(first, second, sizes, shared=shared)
    for file, tokenizer, rows in ((first, made.source, sizes[0]), (second, made.target, sizes[1])):
        if tokenizer.size != rows:
            raise CheckpointError(
                "{file}: has {n:,} tokens, but the embedding table has {rows:,} rows; give the tokenizer that the "
                "model was trained with.",
                file=file.name,
                n=tokenizer.size,
                rows=rows,
            )
    return replace(made, files=tuple(dict.fromkeys(Path(one.name).name for one in (first, second))))


def _file(path: Path, inside: Path | None) -> _File:
    """Read a tokenizer, and tell its kind."""
    files = FolderFiles(path.parent, inside=inside)
    name, called = path.name, as_typed(path, inside)
    if path.suffix == ".json":
        content = _by_ids(files.read(name, limit=MAX_JSON))
        if _WITH_MODEL.search(content):  # the process that reads such a file parses it
            return _File(called, "json", {tokenizers_library.FILE: content})
        files.check_size(name, limit=MAX_TOKENIZER)
        if not files.has("merges.txt"):
            return _File(called, LIST, {vocabulary.IDS: content})
        merges = {"vocab.json": content, "merges.txt": files.read("merges.txt", limit=MAX_TOKENIZER)}
        return _File(called, "roberta" if b'"<s>"' in content and b'"</s>"' in content else "gpt2", merges)
    content = files.read(name, limit=MAX_TOKENIZER)
    if path.suffix == ".txt":
        kind = "bert" if all(re.search(line, content, re.MULTILINE) for line in _LINES_OF_BERT) else LIST
        return _File(called, kind, {"vocab.txt": content})
    return _File(called, SENTENCEPIECE, {"": content})


def _by_ids(content: bytes) -> bytes:
    """A list of pieces in JSON as {"piece": id}; anything else as it is."""
    if not content.lstrip().startswith(b"["):
        return content
    with suppress(ClauseError):
        pieces = strictjson.parse(content)
        if all(isinstance(piece, str) for piece in pieces):
            return json.dumps({piece: i for i, piece in enumerate(pieces)}).encode()
    return content


def _made(source: _File, target: _File, sizes: tuple[int | None, int | None], *, shared: bool) -> Tokenizers:
    if {source.kind, target.kind} == {SENTENCEPIECE}:
        models = [sentencepiece({file.name: file.files[""]}, file.name) for file in (source, target)]
        stored = (source.files[""],) if shared else (source.files[""], target.files[""])
        return Tokenizers(stored, models[0], models[0] if source is target else models[1])
    if source is target or {source.kind, target.kind} in ({"json"}, {LIST}):
        options = Options(size=sizes[0], target_size=None if sizes[0] == sizes[1] else sizes[1])
        own = {} if source is target else {f"target_{name}": content for name, content in target.files.items()}
        both = Vocabularies(source.kind, options, {**source.files, **own})
        return Tokenizers(both, *both.open())
    raise CheckpointError(
        "{source} and {target}: the tokenizers of the two sides must be two SentencePiece models, two files in the "
        "tokenizer.json format, or two plain lists; found {kinds}.",
        source=source.name,
        target=target.name,
        kinds=", ".join((source.kind, target.kind)),
    )


USUAL = 4  # ids from 0 that tutorials give to special pieces
MOST_NAMED = 8  # special pieces of a tokenizer that are tried; some have hundreds, for languages
# Usual ids without a tokenizer; the first four differ in this order.
FIRST: Mapping[str, int] = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
MAY_BE_NONE = ("pad_id", "unk_id", "bos_id")


def settled(
    fields: Mapping[str, Field], tokenizers: Tokenizers | None, answers: Mapping[str, Any], said: Mapping[str, Field]
) -> list[Field]:
    """The fields about ids, from the known fields by name, and how many layers each stack has.

    What a card has `said` counts where neither a tokenizer nor the file says it. Without tokenizers (the sizes of the
    vocabularies are still asked) nothing is asked yet.
    """
    if tokenizers is None:
        return []
    writes = bool(fields["n_decoder_layers"].value)
    reads = bool(fields["n_encoder_layers"].value)
    ids = {name: _id(fields[name], tokenizers) for name in CALLED}
    ids |= {name: said[name] for name, one in ids.items() if name in said and one.how != "read"}
    if tokenizers.raw and not reads:
        ids["bos_id"] = _or_else(ids["bos_id"], None, say("Without a tokenizer, ids are read exactly as typed."))
    if not writes:
        pad = answers.get("pad_id", ids["pad_id"].value)
        why = say("not used: an encoder-only model generates no output")
        ids["bos_id"] = _or_else(ids["bos_id"], None, why)
        ids["eos_id"] = _or_else(ids["eos_id"], int(pad == 0), why)
    known = {name: answers.get(name, one.value) for name, one in ids.items()}
    open_ids = {name for name, one in ids.items() if one.how == "asked" and name not in answers}
    around = {one.name: one for one in _around(tokenizers, known, open_ids, reads=reads, writes=writes)}
    from_tokenizer = {name for name, one in around.items() if one.how == "read"}
    around |= {name: one for name, one in said.items() if name not in {*ids, *from_tokenizer}}
    return [*ids.values(), *around.values()]


def _or_else(field: Field, value: Any, why: Sentence) -> Field:
    return inferred(field.name, value, why) if field.how == "asked" else field


def _id(field: Field, tokenizers: Tokenizers) -> Field:
    """A special id; what was saved beside the weights goes before what a tokenizer calls so."""
    if field.how != "asked":
        return field
    if tokenizers.raw:
        why = say("Without a tokenizer, ids are read exactly as typed.")
        return inferred(field.name, None, why) if field.name == "unk_id" else field
    first, second = (
        next(((i, name) for name in CALLED[field.name] if (i := one.id_of(name)) is not None), None)
        for one in (tokenizers.source, tokenizers.target)
    )
    if first is not None and second is not None:
        if first[0] == second[0]:
            why = say("In the tokenizer, this token is called {name}.", name=first[1])
            return Field(field.name, "read", first[0], why)
        why = say(
            "The two tokenizers give this token different ids, {first} and {second}, but the model can have only "
            "one id for it.",
            first=first[0],
            second=second[0],
        )
        return ask(field.name, why)
    if field.name in ("pad_id", "unk_id"):
        return inferred(field.name, None, say("The tokenizer has no token of this kind."))
    return field


def _around(
    tokenizers: Tokenizers, ids: Mapping[str, Any], asked: set[str], *, reads: bool, writes: bool
) -> Iterator[Field]:
    """What stands around a source, and what a decoder reads first."""
    start = ids["bos_id"]
    if reads and writes and "bos_id" not in asked:
        if start is None:
            yield ask("decoder_start_id", say("There is no bos_id."))
        else:
            yield inferred("decoder_start_id", start, say("Outputs usually begin with bos_id."))
    elif "eos_id" not in asked and not (reads and writes):
        why = say("An encoder-only or decoder-only model has no separate start id for its output.")
        yield inferred("decoder_start_id", ids["eos_id"], why)
    wrapping = tokenizers.source.wrapping
    if wrapping.before or wrapping.after:
        why = say("The tokenizer determines this.")
        around = around_a_source(wrapping.before, wrapping.after if reads else (), start, ids["eos_id"])
        yield from (Field(name, "read", value, why) for name, value in around.items())
        return
    if tokenizers.raw:
        why = say("Without a tokenizer, ids are read exactly as typed.")
        yield inferred("prepend_source_bos", False, why)
        yield inferred("append_source_eos", False, why, *((False, True) if reads else ()))
        return
    if start is None and "bos_id" not in asked:
        yield inferred("prepend_source_bos", False, say("There is no bos_id."))
    else:
        why = say("Only the training code can tell you whether texts begin with bos_id.")
        yield ask("prepend_source_bos", why, True, False)
    if reads:
        why = say("Only the training code can tell you whether sources end with eos_id.")
        yield ask("append_source_eos", why, True, False)
    else:
        yield inferred(
            "append_source_eos", False, say("A decoder-only model continues its text, so the text gets no end mark.")
        )


def around_a_source(
    before: tuple[int, ...], after: tuple[int, ...], bos: int | None, eos: int | None
) -> dict[str, bool | tuple[int, ...]]:
    """What a tokenizer puts around a source, as fields of a config with these marks."""
    starts, ends = before[:1] == (bos,), after[:1] == (eos,)
    return {
        "prepend_source_bos": starts,
        "append_source_eos": ends,
        "source_prefix": before[starts:],
        "source_suffix": after[ends:],
    }


def likely_ids(name: str, size: int, tokenizer: AnyTokenizer | None, table: Tensor | None) -> list[int | None]:
    """Possible values of a special id, one of `CALLED`, in a vocabulary of a size, the smaller of both.

    The tokenizer is the source's, if there is one with names; the table has its embeddings [V, D], if they were read.
    """
    found: list[int | None] = []
    if tokenizer is not None:
        found += [i for called in CALLED[name] if (i := tokenizer.id_of(called)) is not None]
    if name == "pad_id" and table is not None:
        found += zero_rows(table)
    first = FIRST[name]
    found += [first] * (tokenizer is None)
    found += [None] * (name == "pad_id")  # which does no harm where nothing says which it is
    if tokenizer is None:
        found += range(USUAL)
    else:
        found += [i for i in range(min(tokenizer.size, 64)) if tokenizer.is_special(i)][:MOST_NAMED]
    found += [None] * (name in MAY_BE_NONE)
    return [i for i in dict.fromkeys(found) if i is None or i < size]


def zero_rows(table: Tensor) -> list[int]:
    """Rows [D] of a table [V, D] that are all zeros, if they are few: what padding has."""
    rows = [int(i) for i in (table == 0).all(dim=1).nonzero()[:, 0]]
    return rows if len(rows) == 1 else []
