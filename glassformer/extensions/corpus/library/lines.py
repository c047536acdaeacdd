"""The lines of a corpus: files, gold alignments, shards with digests, tokenised items and batches, greedy outputs.

They are read anew each time, never all into memory; a shard's digest shows whether the file has changed.

    encoder-decoder    the source; the decoder reads the reference and predicts it, with its end mark
    decoder-only       the source's own pieces at once; with a second column, that continues the source
    encoder-only       the source; nothing is predicted

A line that the app would refuse has its problem instead. Not known here: what is measured.
"""

import hashlib
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from glassformer.extensions.corpus.library.tables import CorpusLine
from transformer.analysis.alignment import SPACINGS, GoldPair, read_gold
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.save import file_sha256
from transformer.errors import DataError, QueryError
from transformer.model.anatomy import anatomy
from transformer.runs import reading as sources
from transformer.runs.inputs import Source, read_given, read_source
from transformer.runs.query import Query
from transformer.runs.running import decode_together
from transformer.text.line_files import read_lines
from transformer.text.tokenizer import SPACE_MARK, AnyTokenizer


@dataclass(frozen=True)
class Corpus:
    """Where the lines come from."""

    names: tuple[str, ...]  # of the file, or of the three files of a corpus with gold alignments
    sha256: str  # of the file, hexadecimal; of three files, and of how their words become text, together
    lines: Callable[[], Iterator[CorpusLine]]  # all lines with text, anew at each call
    gold: Mapping[int, GoldPair] | None = None  # by the number of the line


@dataclass(frozen=True)
class Shard:
    """The lines with text among so many lines of the file that follow each other."""

    number: int  # from 0: shard i of size n holds lines i * n + 1 to (i + 1) * n
    lines: tuple[CorpusLine, ...]
    gold: Mapping[int, GoldPair] | None = None

    def digest(self) -> bytes:
        """SHA-256 of its texts."""
        return hashlib.sha256(repr([(one.number, one.source, one.target) for one in self.lines]).encode()).digest()


def pairs(path: Path, *, most: int | None = None) -> Corpus:
    """The first `most` lines with text of a file, `source TAB reference` or one text each.

    A `DataError` where `read_lines` refuses the file; columns are checked when a line is read.
    """
    _check_most(most)
    next(read_lines([path]), None)
    return Corpus((path.name,), file_sha256(path), lambda: islice(_lines_of(path), most))


def n_empty(path: Path) -> int:
    """How many lines of a file have no text, and so are not measured; its errors are those of `pairs`."""
    return sum(not any(map(str.strip, columns)) for _, columns in read_lines([path]))


def _check_most(most: int | None) -> None:
    if most is not None and most < 1:
        raise DataError("{name} is {value}; expected at least {least}.", name="--max-pairs", value=most, least=1)


def _lines_of(path: Path) -> Iterator[CorpusLine]:
    for number, columns in read_lines([path]):
        source, *rest = (column.strip() for column in columns)
        if len(rest) > 1:
            raise DataError(
                "{file}, line {number}: expected a text, or `source TAB reference`, found {n} column.",
                "{file}, line {number}: expected a text, or `source TAB reference`, found {n} columns.",
                len(columns),
                file=str(path),
                number=number,
            )
        if source or any(rest):
            yield CorpusLine(number, source, (rest[0] or None) if rest else None)


def aligned(files: Sequence[Path], *, source_text: str, target_text: str, most: int | None = None) -> Corpus:
    """The sentences of a corpus with gold alignments (source, target, links), as text; errors are those of `read_gold`.

    The spacings are keys of `SPACINGS`.
    """
    _check_most(most)
    found = read_gold(*files)
    gold = dict(enumerate(found.pairs, start=1))

    def lines() -> Iterator[CorpusLine]:
        for number, pair in gold.items():
            source, target = SPACINGS[source_text](pair.source), SPACINGS[target_text](pair.target)
            if source or target:
                yield CorpusLine(number, source, target or None)

    whole = hashlib.sha256(" ".join((*found.sha256, source_text, target_text)).encode())
    return Corpus(found.names, whole.hexdigest(), lambda: islice(lines(), most), gold)


def shards(corpus: Corpus, size: int) -> Iterator[Shard]:
    """The lines in shards of `size` lines of the file, one shard after another; one without text does not exist."""
    for number, group in groupby(corpus.lines(), key=lambda line: (line.number - 1) // size):
        lines = tuple(group)
        gold = {one.number: corpus.gold[one.number] for one in lines} if corpus.gold else None
        yield Shard(number, lines, gold)


# ------------------------------------------------------------------------------------------------ as the model reads


TOKENS = 768  # of a batch, padding included: more needs more padding and memory, fewer use the processor less well
_WRITTEN_AT_ONCE = 64  # lines that are decoded together


@dataclass(frozen=True)
class Item:
    """A line as it is read."""

    place: int  # among the lines that were given, from 0
    src_ids: tuple[int, ...]  # what the encoder reads; empty for a decoder-only model
    read_ids: tuple[int, ...]  # what the decoder reads; empty for an encoder-only model
    ids: tuple[int, ...]  # the pieces that are predicted
    first: int  # the decoder's row that predicts the first of them
    step: int | None  # the decoder's row of step 0; None where the output has no steps
    source: tuple[int, ...]  # the pieces of `src_ids`, as numbers of a shard's pieces
    read: tuple[int, ...]  # those of `read_ids`
    n_source: int  # pieces of the source
    output: str | None = None  # what the model wrote; None if it read a reference


@dataclass(eq=False)
class LinePieces:
    """The pieces that occur, numbered: their names, and what is asked of their texts."""

    names: list[str] = field(default_factory=list)
    texts: list[int] = field(default_factory=list)  # a number for its text without the mark of a space; -1: has none
    punctuation: list[bool] = field(default_factory=list)  # whether there is nothing else in it
    _numbers: dict[tuple[str, bool], int] = field(default_factory=dict)
    _texts: dict[str, int] = field(default_factory=dict)
    _known: dict[tuple[int, int], int] = field(default_factory=dict)  # by tokenizer and id

    def numbers(self, ids: Sequence[int], tokenizer: AnyTokenizer, pieces: Sequence[str] = ()) -> tuple[int, ...]:
        """The numbers of tokens; `pieces` shows what the vocabulary does not know."""
        own, side = tokenizer.pieces, id(tokenizer)
        if pieces and any(piece != own[i] for piece, i in zip(pieces, ids, strict=True)):
            rows = zip(pieces, ids, strict=True)
            return tuple(self._number(piece, piece == own[i] and tokenizer.is_special(i)) for piece, i in rows)
        for i in ids:
            if (side, i) not in self._known:
                self._known[side, i] = self._number(own[i], tokenizer.is_special(i))
        return tuple([self._known[side, i] for i in ids])

    def _number(self, piece: str, special: bool) -> int:
        key = piece, special
        if key not in self._numbers:
            self._numbers[key] = len(self.names)
            text = "" if special else piece.replace(SPACE_MARK, "")
            self.names.append(piece)
            self.texts.append(self._texts.setdefault(text, len(self._texts)) if text else -1)
            self.punctuation.append(bool(text) and all(unicodedata.category(c)[0] in "PS" for c in text))
        return self._numbers[key]


def named_pieces(numbers: np.ndarray, pieces: LinePieces, missing: np.ndarray | None = None) -> pa.DictionaryArray:
    """Numbered pieces as an array of their names, with only those in the dictionary that occur."""
    used, places = np.unique(numbers, return_inverse=True)
    names = pa.array([pieces.names[n] for n in used], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32(), mask=missing), names)


def one_word(word: str, count: int) -> pa.DictionaryArray:
    """The same word in each of so many rows."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int8)), pa.array([word]))


def read_items(
    checkpoint: Checkpoint, lines: Sequence[CorpusLine], *, decode: bool
) -> tuple[list[Item], dict[int, str], LinePieces]:
    """Read lines: the items that can be measured, the problems of the others by their places, and the pieces."""
    pieces, problems, items = LinePieces(), dict[int, str](), list[Item]()
    if decode and anatomy(checkpoint.config).writes:
        for place, found in _decoded(checkpoint, lines):
            if isinstance(found, QueryError):
                problems[place] = str(found)
            else:
                items.append(_output(checkpoint, place, *found, pieces))
        return sorted(items, key=lambda item: item.place), problems, pieces
    for place, line in enumerate(lines):
        try:
            items.append(_forced(checkpoint, place, line, pieces))
        except QueryError as error:
            problems[place] = str(error)
    return items, problems, pieces


def batches(checkpoint: Checkpoint, items: Sequence[Item]) -> Iterator[list[Item]]:
    """Items of similar lengths; of equal sources where the model knows no padding."""
    fixed = checkpoint.config.pad_id is None

    def order(item: Item) -> tuple[int, int, int]:
        n_source, n_read = len(item.src_ids), len(item.read_ids)
        return n_source if fixed else 0, n_read, n_source if n_read % 2 else -n_source  # up and down: no leaps

    batch: list[Item] = []
    longest = 0, 0
    for item in sorted(items, key=order):
        widths = max(longest[0], len(item.src_ids)), max(longest[1], len(item.read_ids))
        if batch and ((len(batch) + 1) * sum(widths) > TOKENS or order(item)[0] != order(batch[0])[0]):
            yield batch
            batch, widths = [], (len(item.src_ids), len(item.read_ids))
        batch, longest = [*batch, item], widths
    if batch:
        yield batch


def _query(checkpoint: Checkpoint, line: CorpusLine) -> Query:
    return Query(checkpoint=checkpoint.content_hash, source=line.source)


def _forced(checkpoint: Checkpoint, place: int, line: CorpusLine, pieces: LinePieces) -> Item:
    """With the reference as the decoder's input; a model of one stack may read its source only."""
    parts = anatomy(checkpoint.config)
    if not parts.writes:
        source = read_source(checkpoint, _query(checkpoint, line))
        return _item(checkpoint, place, source, (), (), 0, pieces, own=True)
    if parts.reads and line.target is None:
        raise QueryError(
            "This line has no second column, but {model} is measured on a reference; give one, or decode.",
            model=checkpoint.name,
        )
    given = read_given(checkpoint, _query(checkpoint, line), line.target)
    own = line.target is None
    read_ids = given.source.ids if own else (*given.before, *given.ids[:-1])
    return _item(checkpoint, place, given.source, read_ids, given.ids, len(given.before) - 1, pieces, own=own)


def _output(checkpoint: Checkpoint, place: int, source: Source, written: tuple[int, ...], pieces: LinePieces) -> Item:
    """With the model's own output as what the decoder reads."""
    read_ids = (*source.prompt_ids, *written[:-1])
    n_forced = min(len(source.forced), len(written) - 1)
    first = len(source.prompt_ids) - 1 + n_forced
    item = _item(checkpoint, place, source, read_ids, written[n_forced:], first, pieces)
    return replace(item, output=checkpoint.tgt_tokenizer.decode(written))


def _item(
    checkpoint: Checkpoint,
    place: int,
    source: Source,
    read_ids: tuple[int, ...],
    ids: tuple[int, ...],
    first: int,
    pieces: LinePieces,
    *,
    own: bool = False,
) -> Item:
    numbers = pieces.numbers(source.ids, checkpoint.src_tokenizer, source.pieces)
    if anatomy(checkpoint.config).reads:
        read = pieces.numbers(read_ids, checkpoint.tgt_tokenizer)
    else:
        read = numbers + pieces.numbers(read_ids[len(numbers) :], checkpoint.tgt_tokenizer)
        numbers = ()
    return Item(
        place=place,
        src_ids=source.ids if anatomy(checkpoint.config).reads else (),
        read_ids=read_ids,
        ids=ids,
        first=first,
        step=None if own else len(source.prompt_ids) - 1,
        source=numbers,
        read=read,
        n_source=len(source.ids),
    )


Written = tuple[int, tuple[Source, tuple[int, ...]] | QueryError]


def _decoded(checkpoint: Checkpoint, lines: Sequence[CorpusLine]) -> Iterator[Written]:
    """What the model writes for each line, greedily: the line's place, its source and the ids, or the problem."""
    found: list[tuple[int, Query, Source]] = []
    for place, line in enumerate(lines):
        try:
            query = _query(checkpoint, line)
            found.append((place, query, read_source(checkpoint, query)))
        except QueryError as error:
            yield place, error
    found.sort(key=lambda one: len(one[2].ids))
    fixed = checkpoint.config.pad_id is None
    for _, group in groupby(found, key=lambda one: fixed and len(one[2].ids)):
        while some := list(islice(group, _WRITTEN_AT_ONCE)):
            yield from _written(checkpoint, some)


def _written(checkpoint: Checkpoint, group: Sequence[tuple[int, Query, Source]]) -> Iterator[Written]:
    try:
        together = sources.read(checkpoint, [query for _, query, _ in group], maps=False)
    except QueryError as error:  # numbers that are not finite: each finds out alone
        if len(group) == 1:
            yield group[0][0], error
        else:
            for one in group:
                yield from _written(checkpoint, [one])
        return
    alone = [
        replace(
            together,
            queries=[query],
            sources=[source],
            src_ids=together.src_ids[row : row + 1, : len(source.ids)],
            memory=None if together.memory is None else together.memory[row : row + 1, : len(source.ids)],
            seen={},
        )
        for row, (_, query, source) in enumerate(group)
    ]
    written = decode_together(checkpoint, alone, checked=True)
    for (place, _, source), reading in zip(group, alone, strict=True):
        try:
            yield place, (source, written.get(id(reading)) or reading.decode()[0].ids)
        except QueryError as error:
            yield place, error
