"""Which pieces or words the rows and columns of a map stand for, and which of them are special.

Decoder rows stand for the piece that they predict, a prompt's rows for the one that they read: those pieces make the
words, and a row is special if its piece is. Rows and columns of given maps are what their labels say.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformer.analysis.words import Span, word_spans, word_text
from transformer.checkpoint.load import Checkpoint
from transformer.maps.own_maps import GivenMaps
from transformer.model.anatomy import EVERY_PART, Kind
from transformer.text.tokenizer import SPACE_MARK, AnyTokenizer
from ui.runs.given_maps import GivenLooking, marked
from ui.runs.sides import Sides
from ui.runs.step_rows import HIDDEN, Looking


@dataclass(frozen=True)
class MapSide:
    """What the rows or the columns are: labels, and for each the pieces that it stands for."""

    labels: list[str]
    spans: tuple[Span, ...]
    special: list[bool]


def both_sides(
    looking: Looking | GivenLooking, checkpoint: Checkpoint | None, of: Sides, kind: Kind
) -> tuple[MapSide, MapSide]:
    """The rows and the columns."""
    if isinstance(looking, GivenLooking) or checkpoint is None:
        special = set(looking.trace.special) if isinstance(looking.trace, GivenMaps) else set()
        words = looking.view.words
        queries, keys = (
            _side(marked(labels) if words else labels, [label in special for label in labels], words=words)
            for labels in (of.queries, of.keys)
        )
        return queries, keys
    return _queries(looking, checkpoint, of, kind), _keys(looking, checkpoint, of, kind)


def _queries(looking: Looking, checkpoint: Checkpoint, of: Sides, kind: Kind) -> MapSide:
    """The rows: in the encoder and in a prompt what they read, in the decoder what they predict."""
    trace, n_steps = looking.trace, looking.n_steps
    if EVERY_PART.attention(kind).stack == "encoder":
        return _read_side(of.queries, of.query_ids, checkpoint.src_tokenizer, checkpoint, words=looking.view.words)
    n_given = trace.first_row
    pieces = [*trace.read_pieces[:n_given], *trace.tgt_pieces[:n_steps]]
    special = _special((*trace.read_ids[:n_given], *trace.tgt_ids[:n_steps]), checkpoint.tgt_tokenizer, checkpoint)
    alone = list(special)
    if looking.covered:  # neither the piece nor that it goes on with a word may be seen
        pieces[-1], special[-1], alone[-1] = HIDDEN, False, True
    if not looking.view.words:
        return MapSide(of.queries, _single(len(pieces)), special)
    goes_on = checkpoint.tgt_tokenizer.continuation
    given = word_spans(pieces[:n_given], alone[:n_given], goes_on)  # no row is both given and predicted
    written = word_spans(pieces[n_given:], alone[n_given:], goes_on)
    predicted = tuple((n_given + a, n_given + b) for a, b in written)
    read, words = ([_word(pieces, span, goes_on) for span in spans] for spans in (given, predicted))
    before = [trace.read_pieces[n_given], *words]
    labels = [*read, *(f"{last} → {word}" for last, word in zip(before, words, strict=False))]
    return MapSide(labels, (*given, *predicted), [special[first] for first, _ in (*given, *predicted)])


def _keys(looking: Looking, checkpoint: Checkpoint, of: Sides, kind: Kind) -> MapSide:
    """The columns: what they read."""
    of_output = EVERY_PART.attention(kind).keys_from == "decoder"
    tokenizer = checkpoint.tgt_tokenizer if of_output else checkpoint.src_tokenizer
    return _read_side(of.keys, of.key_ids, tokenizer, checkpoint, words=looking.view.words)


def _read_side(
    pieces: Sequence[str], ids: Sequence[int], tokenizer: AnyTokenizer, checkpoint: Checkpoint, *, words: bool
) -> MapSide:
    return _side(pieces, _special(ids, tokenizer, checkpoint), words=words, goes_on=tokenizer.continuation)


def _side(pieces: Sequence[str], special: list[bool], *, words: bool, goes_on: str = "") -> MapSide:
    if not words:
        return MapSide(list(pieces), _single(len(pieces)), special)
    spans = word_spans(pieces, special, goes_on)
    return MapSide([_word(pieces, span, goes_on) for span in spans], spans, [special[first] for first, _ in spans])


def _special(ids: Sequence[int], tokenizer: AnyTokenizer, checkpoint: Checkpoint) -> list[bool]:
    """Which pieces stand for no text; an unknown one stands for some."""
    return [tokenizer.is_special(i) and i != checkpoint.config.unk_id for i in ids]


def _single(count: int) -> tuple[Span, ...]:
    return tuple((place, place + 1) for place in range(count))


def _word(pieces: Sequence[str], span: Span, continuation: str) -> str:
    text = word_text(pieces, span, continuation)
    return text.removeprefix(SPACE_MARK) or text
