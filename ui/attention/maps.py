"""One attention map as the Attention page draws it: which heads, pieces or words, with special pieces or without.

Decoder rows stand for the piece that they predict, a prompt's rows for the one that they read: those pieces make the
words, and a row is special if its piece is.
Nothing is renormalised: what is hidden is missing, and the map says how much.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transformer.analysis.rollout import cross_rollout, self_rollout
from transformer.analysis.words import Span, by_words, open_words, word_spans, word_text
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import EVERY_PART, Kind, anatomy
from transformer.model.config import ModelConfig
from transformer.runs.trace import Trace
from transformer.text.tokenizer import SPACE_MARK, Tokenizer
from ui.runs.looking import HIDDEN, Looking, heads_name
from ui.runs.sides import KIND_NAMES, Sides, sides
from ui.state.view import Aggregate, View
from words import Sentence, say

_READ_WORDS = say(
    "Words: weights are summed over the pieces of a key word and averaged over the pieces of a query word."
)
_WRITTEN_WORDS = say(
    "Words: weights are summed over the pieces of a key word. A row is the mean of the steps that write its word: "
    "the first of them reads the end of the word before, the others read the pieces of the word itself."
)
ALL_SPECIAL = say("All pieces here are special ones. Switch “Hide special” off to see them.")
MAX_ROWS = say("rows of a maximum do not sum to 1")


@dataclass(frozen=True)
class _Side:
    """What the rows or the columns are: labels, and for each the pieces that it stands for."""

    labels: list[str]
    spans: tuple[Span, ...]
    special: list[bool]


@dataclass(frozen=True)
class DrawnMap:
    """A map ready to be drawn.

    Attributes:
        weights: [row, column].
        allowed: bool [row, column], True = may attend.
        sides: Names and colours of the axes; its labels are those of pieces.
        queries, keys: A label for each row and column.
        name: Which layer and head, or which aggregate.
        title: The same with the kind of attention.
        sums_to_one: Whether rows should sum to 1.
        notes: What must be said under the title, in a few words each.
        rows, columns: The pieces that each row and column stands for.
        first_row: The row, among pieces, that predicts the first piece.
    """

    weights: np.ndarray
    allowed: np.ndarray
    sides: Sides
    queries: list[str]
    keys: list[str]
    name: str
    title: str
    sums_to_one: bool
    notes: tuple[str, ...]
    rows: tuple[Span, ...]
    columns: tuple[Span, ...]
    first_row: int

    def row_of_step(self) -> list[int | None]:
        """The row of each step; None if it is hidden. Empty in the encoder."""
        if self.sides.current is None:
            return []
        found: list[int | None] = [None] * len(self.sides.queries)
        for row, (first, end) in enumerate(self.rows):
            found[first:end] = [row] * (end - first)
        return found[self.first_row :]

    def cell(self, view: View) -> tuple[int, int] | None:
        """Row and column of the cell that is looked at; None if there is none, or if it is hidden."""
        row, column = find_span(self.rows, view.query), find_span(self.columns, view.key)
        return None if row is None or column is None else (row, column)

    def pieces_at(self, row: int, column: int, weights: np.ndarray) -> tuple[int, int]:
        """Query and key of a cell; of a cell between words the pieces with the largest weight.

        Args:
            row, column: Of this map.
            weights: Between pieces [query, key].
        """
        (top, bottom), (left, right) = self.rows[row], self.columns[column]
        block = weights[top:bottom, left:right]
        query, key = np.unravel_index(block.argmax(), block.shape)
        return top + int(query), left + int(key)


def drawn_map(looking: Looking, checkpoint: Checkpoint, kind: Kind) -> DrawnMap:
    """The map of the chosen layer and head, or of the chosen aggregate.

    Args:
        looking: The run, what of it is looked at and what may be seen.
        checkpoint: What it ran on; its tokenizers say which pieces are special.
        kind: Which attention.
    """
    view, of = looking.view, sides(looking, kind)
    is_max = aggregate_of(view) == "max"
    queries, keys = _queries(looking, checkpoint, of, kind), _keys(looking, checkpoint, of, kind)
    allowed = looking.trace.mask(kind)[: len(of.queries), : len(of.keys)]
    stack = _stack(looking.trace, view, kind)[:, : len(of.queries), : len(of.keys)]
    if view.words:  # a maximum is of words, not a sum of maxima of pieces
        stack = by_words(stack, queries.spans, keys.spans)
        allowed = open_words(allowed, queries.spans, keys.spans)
    weights = stack.max(axis=0) if is_max else stack.mean(axis=0)
    notes: list[str] = [MAX_ROWS] * is_max
    rows, columns = list(range(len(queries.labels))), list(range(len(keys.labels)))
    if view.hide_special:
        rows, columns = (
            [i for i in places if not side.special[i]] for places, side in ((rows, queries), (columns, keys))
        )
        notes += _hidden(weights, rows, columns)
    cut = np.ix_(rows, columns)
    name = map_name(looking.trace, view, kind)
    return DrawnMap(
        weights=weights[cut],
        allowed=allowed[cut],
        sides=of,
        queries=[queries.labels[row] for row in rows],
        keys=[keys.labels[column] for column in columns],
        name=name,
        title=say("{attention}: {map}", attention=KIND_NAMES[kind], map=name),
        sums_to_one=not is_max and len(columns) == len(keys.labels),
        notes=tuple(notes),
        rows=tuple(queries.spans[row] for row in rows),
        columns=tuple(keys.spans[column] for column in columns),
        first_row=looking.trace.first_row,
    )


def mask_reason(config: ModelConfig, kind: Kind) -> Sentence:
    """Why the mask closes cells of an attention."""
    parts = anatomy(config)
    if not parts.attention(kind).causal:
        return say("closed by the mask: padding")
    if parts.reads:
        return say("closed by the mask: comes later in the output")
    return say("closed by the mask: comes later in the text")


def piece_map(looking: Looking, kind: Kind) -> np.ndarray:
    """The same map between pieces, nothing merged or hidden [query, key]."""
    stack = _stack(looking.trace, looking.view, kind)
    return np.asarray(stack.max(axis=0) if aggregate_of(looking.view) == "max" else stack.mean(axis=0))


def map_name(trace: Trace, view: View, kind: Kind) -> Sentence:
    """Which layer and head a map is of; an aggregate says that it is one."""
    n_layers, n_heads = trace.maps(kind).shape[:2]
    aggregate = aggregate_of(view)
    if aggregate == "rollout":
        depth = n_layers if view.layer is None else view.layer + 1
        return say("rollout of layer 1") if depth == 1 else say("rollout through layers 1 to {depth}", depth=depth)
    if aggregate != "max":
        return heads_name(trace, view, kind)
    if view.layer is None:
        return say("maximum of all {n_layers} layers × {n_heads} heads", n_layers=n_layers, n_heads=n_heads)
    return say("layer {layer}, maximum of its {n_heads} heads", layer=view.layer + 1, n_heads=n_heads)


def rollout_note(trace: Trace, view: View, kind: Kind) -> str:
    """How the rollout that is drawn was computed; empty if none is."""
    if aggregate_of(view) != "rollout":
        return ""
    depth = len(trace.maps(kind)) if view.layer is None else view.layer + 1
    attention = EVERY_PART.attention(kind)
    if attention.keys_from != attention.stack:
        return say(
            "Rollout: E, the product over all encoder layers of ½A + ½I (A: mean over heads); then in each decoder "
            "layer 1 to {depth} C ← (½A + ½I)·C for its self-attention and C ← ½C + ½X·E for its cross-attention X, "
            "from C = 0; drawn is C divided by {share:.4g} = 1 − ½^{depth}, the part that comes from the source, so "
            "that rows sum to 1.",
            depth=depth,
            share=1 - 0.5**depth,
        )
    if any(other != kind and EVERY_PART.attention(other).stack == attention.stack for other in trace.kinds):
        return say(
            "Rollout: the product over decoder layers 1 to {depth} of ½A + ½I, A the mean over heads; what "
            "cross-attention brings in is left out.",
            depth=depth,
        )
    return say("Rollout: the product over layers 1 to {depth} of ½A + ½I, A the mean over heads.", depth=depth)


def aggregate_of(view: View) -> Aggregate | None:
    """What stands for the heads that are drawn together; None if one head is drawn."""
    return view.aggregate if view.layer is None or view.head is None else None


def _stack(trace: Trace, view: View, kind: Kind) -> np.ndarray:
    """The maps whose mean or maximum is drawn [map, query, key]; one alone is itself."""
    maps = trace.maps(kind)
    if view.layer is not None and view.head is not None:
        return maps[view.layer, view.head][None]
    if view.aggregate == "rollout":
        depth = len(maps) if view.layer is None else view.layer + 1
        return _rollout(trace, kind, depth)[None]
    chosen = maps if view.layer is None else maps[view.layer : view.layer + 1]
    return chosen.reshape(-1, *maps.shape[-2:])


def _rollout(trace: Trace, kind: Kind, depth: int) -> np.ndarray:
    attention = EVERY_PART.attention(kind)
    if attention.keys_from == attention.stack:
        return self_rollout(trace.maps(kind)[:depth])
    return cross_rollout(trace.encoder_self, trace.decoder_self[:depth], trace.cross[:depth])


def words_note(kind: Kind) -> Sentence:
    """How weights between words come from those between pieces."""
    return _READ_WORDS if EVERY_PART.attention(kind).stack == "encoder" else _WRITTEN_WORDS


def _queries(looking: Looking, checkpoint: Checkpoint, of: Sides, kind: Kind) -> _Side:
    """The rows: in the encoder and in a prompt what they read, in the decoder what they predict."""
    trace, n_steps = looking.trace, looking.n_steps
    if EVERY_PART.attention(kind).stack == "encoder":
        return _side(of.queries, of.query_ids, checkpoint.src_tokenizer, checkpoint, words=looking.view.words)
    n_given = trace.first_row
    pieces = [*trace.read_pieces[:n_given], *trace.tgt_pieces[:n_steps]]
    special = _special((*trace.read_ids[:n_given], *trace.tgt_ids[:n_steps]), checkpoint.tgt_tokenizer, checkpoint)
    alone = list(special)
    if looking.covered:  # neither the piece nor that it goes on with a word may be seen
        pieces[-1], special[-1], alone[-1] = HIDDEN, False, True
    if not looking.view.words:
        return _Side(of.queries, _single(len(pieces)), special)
    given = word_spans(pieces[:n_given], alone[:n_given])  # no row is both given and predicted
    predicted = tuple((n_given + a, n_given + b) for a, b in word_spans(pieces[n_given:], alone[n_given:]))
    read, words = ([_word(pieces, span) for span in spans] for spans in (given, predicted))
    before = [trace.read_pieces[n_given], *words]
    labels = [*read, *(f"{last} → {word}" for last, word in zip(before, words, strict=False))]
    return _Side(labels, (*given, *predicted), [special[first] for first, _ in (*given, *predicted)])


def _keys(looking: Looking, checkpoint: Checkpoint, of: Sides, kind: Kind) -> _Side:
    """The columns: what they read."""
    of_output = EVERY_PART.attention(kind).keys_from == "decoder"
    tokenizer = checkpoint.tgt_tokenizer if of_output else checkpoint.src_tokenizer
    return _side(of.keys, of.key_ids, tokenizer, checkpoint, words=looking.view.words)


def _side(
    pieces: Sequence[str], ids: Sequence[int], tokenizer: Tokenizer, checkpoint: Checkpoint, *, words: bool
) -> _Side:
    special = _special(ids, tokenizer, checkpoint)
    if not words:
        return _Side(list(pieces), _single(len(pieces)), special)
    spans = word_spans(pieces, special)
    return _Side([_word(pieces, span) for span in spans], spans, [special[first] for first, _ in spans])


def _special(ids: Sequence[int], tokenizer: Tokenizer, checkpoint: Checkpoint) -> list[bool]:
    """Which pieces stand for no text; an unknown one stands for some."""
    return [tokenizer.is_special(i) and i != checkpoint.config.unk_id for i in ids]


def _single(count: int) -> tuple[Span, ...]:
    return tuple((place, place + 1) for place in range(count))


def _word(pieces: Sequence[str], span: Span) -> str:
    text = word_text(pieces, span)
    return text.removeprefix(SPACE_MARK) or text


def _hidden(weights: np.ndarray, rows: Sequence[int], columns: Sequence[int]) -> list[str]:
    """How much of the rows' weight is in the columns that are left out."""
    if len(rows) == weights.shape[0] and len(columns) == weights.shape[1]:
        return []
    totals = weights[rows].sum(axis=1)
    share = 1 - (weights[np.ix_(rows, columns)].sum(axis=1) / np.where(totals > 0, totals, 1)).mean() if rows else 0.0
    return [say("hidden: special pieces, on average {share:.2f} of a row's weight", share=share)]


def find_span(spans: Sequence[Span], place: int | None) -> int | None:
    """Which of the spans holds a place; None if none does, or if there is no place."""
    return next((i for i, (first, end) in enumerate(spans) if place is not None and first <= place < end), None)
