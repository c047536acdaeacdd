"""One attention map as data and chart: head, mean or rollout; words for pieces, special tokens hidden; page parts.

Nothing is renormalised: hidden cells are missing, and the map says how much. Decoder rows stand for the piece that
they predict, a prompt's rows for the one that they read: words and special pieces are determined by it. Given maps
use their labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from glassformer.charts.heatmap import HOW_TO_READ as HOW_TO_READ_GIVEN
from glassformer.charts.heatmap import (
    HOW_TO_READ_CLOSED,
    HOW_TO_READ_MARK,
    HOW_TO_READ_PROMPT,
    ROWS_AND_COLUMNS,
    follow_steps,
    heatmap_spec,
    part_map,
)
from glassformer.charts.theme import Colour
from glassformer.runs.map_axes import KIND_NAMES, MapAxes, mask_reason, prompt_row, shared_by, sides
from glassformer.runs.picture import Page, PartEntry, Plot
from glassformer.runs.viewed_run import HIDDEN, Scene, Viewed, VisibleMaps, VisibleTrace, heads_name, marked, mean
from glassformer.state.view import Aggregate, Click, View, cell_of
from transformer.analysis.rollout import cross_rollout, self_rollout
from transformer.analysis.word_merging import Span, by_words, open_words, word_spans, word_text
from transformer.i18n import Sentence, joined, say
from transformer.model.anatomy import EVERY_PART, Kind, StackName
from transformer.runs.trace import LabelledMaps, Trace
from transformer.text.tokenizer import SPACE_MARK, AnyTokenizer

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint


_READ_WORDS = say(
    "Words: for a word among the keys, the weights of its tokens are added up; for a word among the queries, they "
    "are averaged."
)
_WRITTEN_WORDS = say(
    "Words: for a word among the keys, the weights of its tokens are added up. A row is the mean over the steps "
    "that write its word: the first of them reads the end of the previous word, the others read tokens of the word "
    "itself."
)
HIDDEN_PIECES = say("hidden: special tokens")
ALL_SPECIAL = say(
    "All tokens of this map are special, so all are hidden. To see them, turn off “Hide special tokens” under "
    "“Options”."
)
FEW_KEYS = 40
MAX_ROWS = say("each cell shows the largest weight, so rows do not sum to 1")
OTHER_SUMS = say("rows need not sum to 1, as the creator of these maps declared")


@dataclass(frozen=True)
class DrawnMap:
    """A map ready to be drawn."""

    weights: np.ndarray  # [row, column]
    allowed: np.ndarray  # bool [row, column], True = may attend
    sides: MapAxes  # names and colours of the axes; its labels are those of pieces
    queries: list[str]  # a label for each row
    keys: list[str]
    name: str  # which layer and head, or which aggregate
    title: str  # the same with the kind of attention
    sums_to_one: bool  # whether rows should sum to 1
    notes: tuple[str, ...]  # what must be said under the title, in a few words each
    rows: tuple[Span, ...]  # the pieces that each row stands for
    columns: tuple[Span, ...]
    first_row: int  # the row, among pieces, that predicts the first piece

    def row_of_step(self) -> list[int | None]:
        """The row of each step; None if it is hidden. Empty in the encoder."""
        if self.sides.current is None:
            return []
        found: list[int | None] = [None] * len(self.sides.queries)
        for row, (first, end) in enumerate(self.rows):
            found[first:end] = [row] * (end - first)
        return found[self.first_row :]

    def cell(self, view: View) -> tuple[int, int] | None:
        """Row and column of the selected cell; None if there is none, or if it is hidden."""
        row, column = find_span(self.rows, view.query), find_span(self.columns, view.key)
        return None if row is None or column is None else (row, column)


def drawn_map(visible: VisibleTrace | VisibleMaps, checkpoint: Checkpoint | None, kind: Kind) -> DrawnMap:
    """The map of the chosen layer and head, or aggregate; the checkpoint (None for given maps) knows special pieces."""
    view, of = visible.view, sides(visible, kind)
    is_max = aggregate_of(view) == "max"
    queries, keys = both_sides(visible, checkpoint, of, kind)
    allowed = visible.trace.mask(kind, view.layer)[: len(of.queries), : len(of.keys)]
    if view.words:
        allowed = open_words(allowed, queries.spans, keys.spans)
    spans = (queries.spans, keys.spans) if view.words else ()
    weights = _together(visible, kind, of, *spans)
    trace = visible.trace
    sums = isinstance(trace, Trace) or trace.of(kind).sums_to_one
    notes: list[str] = [*[MAX_ROWS] * is_max, *[OTHER_SUMS] * (not sums)]
    if isinstance(trace, Trace):
        notes += filter(None, [trace.rows_note(kind)])
    rows, columns = (
        [i for i, special in enumerate(side.special) if not (special and view.hide_special)] for side in (queries, keys)
    )
    if view.hide_special:
        notes += _hidden(weights, rows, columns) if sums else [HIDDEN_PIECES]
    cut = np.ix_(rows, columns)
    name = map_name(visible.trace, view, kind)
    return DrawnMap(
        weights=weights[cut],
        allowed=allowed[cut],
        sides=of,
        queries=[queries.labels[row] for row in rows],
        keys=[keys.labels[column] for column in columns],
        name=name,
        title=say("{attention}: {map}", attention=KIND_NAMES[kind], map=name),
        sums_to_one=sums and not is_max and len(columns) == len(keys.labels),
        notes=tuple(notes),
        rows=tuple(queries.spans[row] for row in rows),
        columns=tuple(keys.spans[column] for column in columns),
        first_row=0 if isinstance(visible, VisibleMaps) else visible.trace.first_row,
    )


def is_spread_thin(visible: VisibleTrace | VisibleMaps) -> bool:
    """Whether nearly all cells would be as pale as 0: a mean of heads shares its weight among many keys."""
    n_keys = len(sides(visible, visible.view.kind).keys)
    return aggregate_of(visible.view) in ("mean", "rollout") and n_keys > FEW_KEYS


def piece_map(visible: VisibleTrace | VisibleMaps, kind: Kind) -> np.ndarray:
    """The same map between pieces, nothing merged or hidden [query, key]."""
    return _together(visible, kind)


def map_name(trace: Trace | LabelledMaps, view: View, kind: Kind) -> Sentence:
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


def rollout_note(trace: Trace | LabelledMaps, view: View, kind: Kind) -> str:
    """How the rollout that is drawn was computed; empty if none is."""
    if aggregate_of(view) != "rollout":
        return ""
    depth = len(trace.maps(kind)) if view.layer is None else view.layer + 1
    attention = EVERY_PART.attention(kind)
    if attention.keys_from != attention.stack:
        return say("Rollout: E is the product of ½A + ½I over all encoder layers, where A is the mean over heads. "
                   "Starting from C = 0, each decoder layer from 1 to {depth} sets C ← (½A + ½I)·C for its "
                   "self-attention, then C ← ½C + ½X·E for its cross-attention X. The map shows C divided by "
                   "{share:.4g} = 1 − ½^{depth}, the part that comes from the source, so rows sum to 1.",
                   depth=depth, share=1 - 0.5**depth)  # fmt: skip
    if any(other != kind and EVERY_PART.attention(other).stack == attention.stack for other in trace.kinds):
        return say(
            "Rollout: the product of ½A + ½I over decoder layers 1 to {depth}, where A is the mean over heads. "
            "What cross-attention adds is left out.",
            depth=depth,
        )
    return say("Rollout: the product of ½A + ½I over layers 1 to {depth}, where A is the mean over heads.", depth=depth)


def aggregate_of(view: View) -> Aggregate | None:
    """What stands for the heads that are drawn together; None if one head is drawn."""
    return view.aggregate if view.layer is None or view.head is None else None


def _together(
    visible: VisibleTrace | VisibleMaps, kind: Kind, of: MapAxes | None = None, *spans: tuple[Span, ...]
) -> np.ndarray:
    """The chosen head, or what stands for several of them [row, column]: what `of` shows, else all; between words."""
    view, aggregate = visible.view, aggregate_of(visible.view)
    n_queries, n_keys = (None, None) if of is None else (len(of.queries), len(of.keys))

    def cut(maps: np.ndarray) -> np.ndarray:
        seen = maps[..., :n_queries, :n_keys]
        return by_words(seen, *spans) if spans else seen

    def largest(maps: np.ndarray, layer: int) -> np.ndarray:  # by word it is not the sum of the maxima of pieces
        return np.asarray(cut(maps).max(axis=0))

    if view.layer is not None and view.head is not None:
        return cut(visible.heads(kind, view.layer)[view.head])
    if aggregate == "rollout":
        return cut(_rollout(visible, kind))
    if view.layer is not None:
        heads = cut(visible.heads(kind, view.layer))
        return np.asarray(heads.max(axis=0) if aggregate == "max" else heads.mean(axis=0))
    if aggregate == "max":
        each = visible.each(kind, largest, key=("largest", n_queries, n_keys, spans))
        return np.asarray(np.max(each, axis=0))
    return cut(np.mean(visible.each(kind, mean, key="mean"), axis=0))


def _rollout(visible: VisibleTrace | VisibleMaps, kind: Kind) -> np.ndarray:
    attention, layer = EVERY_PART.attention(kind), visible.view.layer
    depth = None if layer is None else layer + 1

    def means(of: Kind) -> np.ndarray:
        return np.stack(visible.each(of, mean, key="mean"))[:, None]  # [layer, 1, query, key]

    if attention.keys_from == attention.stack:
        return self_rollout(means(kind)[:depth])
    return cross_rollout(means("encoder"), means("decoder")[:depth], means("cross")[:depth])


def words_note(visible: VisibleTrace | VisibleMaps, kind: Kind) -> Sentence:
    """How weights between words come from those between pieces."""
    read = isinstance(visible, VisibleMaps) or EVERY_PART.attention(kind).stack == "encoder"
    return _READ_WORDS if read else _WRITTEN_WORDS


def _hidden(weights: np.ndarray, rows: Sequence[int], columns: Sequence[int]) -> list[str]:
    """How much of the rows' weight is in the columns that are left out."""
    if len(rows) == weights.shape[0] and len(columns) == weights.shape[1]:
        return []
    totals = weights[rows].sum(axis=1)
    share = 1 - (weights[np.ix_(rows, columns)].sum(axis=1) / np.where(totals > 0, totals, 1)).mean() if rows else 0.0
    return [say("special tokens are hidden; on average, they get {share:.2f} of a row's weight", share=share)]


def first_from(spans: Sequence[Span], place: int) -> int | None:
    """The first of the spans that begins at a place or after it; None if none does."""
    return next((i for i, (first, _) in enumerate(spans) if first >= place), None)


def find_span(spans: Sequence[Span], place: int | None) -> int | None:
    """Which of the spans holds a place; None if none does, or if there is no place."""
    return next((i for i, (first, end) in enumerate(spans) if place is not None and first <= place < end), None)


# ------------------------------------------------------------------------------------------------ what rows are


@dataclass(frozen=True)
class MapSide:
    """What the rows or the columns are: labels, and for each the pieces that it stands for."""

    labels: list[str]
    spans: tuple[Span, ...]
    special: list[bool]


def both_sides(
    visible: VisibleTrace | VisibleMaps, checkpoint: Checkpoint | None, of: MapAxes, kind: Kind
) -> tuple[MapSide, MapSide]:
    """The rows and the columns."""
    words = visible.view.words
    if isinstance(visible, VisibleMaps) or checkpoint is None:
        special = set(visible.trace.special) if isinstance(visible.trace, LabelledMaps) else set()
        queries, keys = (
            _side(marked(labels) if words else labels, [label in special for label in labels], words=words)
            for labels in (of.queries, of.keys)
        )
        return queries, keys

    def read(pieces: Sequence[str], ids: Sequence[int], stack: StackName) -> MapSide:
        tokenizer = checkpoint.src_tokenizer if stack == "encoder" else checkpoint.tgt_tokenizer
        special = _special(ids, tokenizer, checkpoint)
        return _side(pieces, special, words=words, goes_on=tokenizer.continuation)

    attention = EVERY_PART.attention(kind)
    reads = attention.stack == "encoder"
    queries = read(of.queries, of.query_ids, "encoder") if reads else _decoder_rows(visible, checkpoint, of)
    return queries, read(of.keys, of.key_ids, attention.keys_from)


def _decoder_rows(visible: VisibleTrace, checkpoint: Checkpoint, of: MapAxes) -> MapSide:
    """The pieces that rows read in a prompt, and predict after it."""
    trace, n_steps, n_given = visible.trace, visible.n_steps, visible.trace.first_row
    pieces = [*trace.read_tokens[:n_given], *trace.tgt_tokens[:n_steps]]
    special = _special((*trace.read_ids[:n_given], *trace.tgt_ids[:n_steps]), checkpoint.tgt_tokenizer, checkpoint)
    alone = list(special)
    if visible.covered:  # neither the piece nor that it goes on with a word may be seen
        pieces[-1], special[-1], alone[-1] = HIDDEN, False, True
    if not visible.view.words:
        return MapSide(of.queries, _single(len(pieces)), special)
    goes_on = checkpoint.tgt_tokenizer.continuation
    given = word_spans(pieces[:n_given], alone[:n_given], goes_on)  # no row is both given and predicted
    written = word_spans(pieces[n_given:], alone[n_given:], goes_on)
    predicted = tuple((n_given + a, n_given + b) for a, b in written)
    read, words = ([_word(pieces, span, goes_on) for span in spans] for spans in (given, predicted))
    before = [trace.read_tokens[n_given], *words]
    labels = [*read, *(f"{last} → {word}" for last, word in zip(before, words, strict=False))]
    return MapSide(labels, (*given, *predicted), [special[first] for first, _ in (*given, *predicted)])


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


ATTENTION = Page(
    "attention",
    say("Attention"),
    panel="panel",
    entries=(
        PartEntry("overview", say("All heads"), "glassformer.attention.maps_panel:all_heads"),
        PartEntry("head", say("One map"), "glassformer.attention.maps_panel:one"),
        PartEntry("flow", say("Flow"), "glassformer.attention.maps_panel:lines"),
        PartEntry("walk", say("One weight"), "glassformer.attention.one_weight_panel:draw"),
        PartEntry(
            "plain",
            say("Without parameters"),
            "glassformer.attention.maps_panel:without_parameters",
            still=True,
            is_there=lambda run: run.checkpoint is not None,
        ),
        PartEntry("table", say("What heads do"), "glassformer.attention.head_table_panel:draw", still=True),
    ),
)
KINDS: Final[dict[Kind, Sentence]] = {
    "encoder": say("Encoder self"),
    "decoder": say("Decoder self"),
    "cross": say("Cross-attention"),
}


# ------------------------------------------------------------------------------------------------ drawing one

LEAST_HEIGHT: Final = 320  # the names of the axes need room even where there are three rows
HOW_TO_READ: Final = joined(
    " ", [ROWS_AND_COLUMNS, say("A row's weights are softmax(q·k / √d_head) over the keys and sum to 1.")]
)
HOW_TO_READ_MEAN: Final = joined(
    " ", [ROWS_AND_COLUMNS, say("A row's weights are the mean of softmax(q·k / √d_head) over the heads and sum to 1.")]
)
HOW_TO_READ_MAX: Final = joined(
    " ", [ROWS_AND_COLUMNS, say("A cell shows the largest weight, softmax(q·k / √d_head), in any head.")]
)
HOW_TO_READ_CELL: Final = say("Click a cell to take a closer look.")


@dataclass(frozen=True)
class OneMap(Scene):
    """The map of a head, or of all heads together."""

    drawn: DrawnMap

    @property
    def cell(self) -> tuple[int, int] | None:
        """Row and column of the selected cell; None if there is none, or if it is hidden."""
        return self.drawn.cell(self.run.view)


def map_plot(one: OneMap) -> Plot:
    """The map; a click on a cell looks at its pieces, here and in the other parts."""
    run, drawn, view = one.run, one.drawn, one.run.view
    shared = "" if view.head is None or run.checkpoint is None else shared_by(view.head, run.checkpoint.config)
    of, colour = drawn.sides, colour_of(run, view.kind, drawn.sides.key_side)
    most = float(np.abs(drawn.weights[drawn.allowed]).max(initial=0.0)) or 1.0
    limits = (-most, most) if colour == "signed" else (0.0, most if view.own_scale else 1.0)
    figure = heatmap_spec(
        drawn.weights,
        queries=drawn.queries,
        keys=drawn.keys,
        title=drawn.title,
        query_axis=of.query_axis,
        key_axis=of.key_axis,
        allowed=drawn.allowed,
        mask_reason=mask_reason(run.checkpoint, view.kind),
        marked_cell=one.cell,
        colour=colour,
        limits=limits,
        log=colour != "signed" and (is_spread_thin(run.visible) if view.log_scale is None else view.log_scale),
        rows_sum_to_one=drawn.sums_to_one,
        note=joined("; ", [*drawn.notes, *([shared] if shared else [])]),
    )
    figure["layout"]["height"] = max(figure["layout"]["height"], LEAST_HEIGHT)
    if (prompt := prompt_row(run, view.kind)) is not None:
        part_map(figure, row=first_from(drawn.rows, prompt), column=first_from(drawn.columns, prompt + 1))
    follow_steps(figure, drawn.row_of_step(), n_rows=len(drawn.queries), n_columns=len(drawn.keys))
    alt = say("{map}. Rows: {rows}; columns: {columns}.", map=drawn.title, rows=of.query_axis, columns=of.key_axis)
    clicked = partial(pieces_at, drawn, piece_map(run.visible, view.kind) if view.words else None)
    return Plot(spec=figure, alt=alt, how_to_read=_how_to_read(run, drawn), fit=True, clicked=clicked)


def pieces_at(drawn: DrawnMap, weights: np.ndarray | None, click: Click) -> Mapping[str, Any] | None:
    """What a click looks at; of a cell between words the pieces with the largest of the weights [query, key]."""
    row, column = cell_of(click) or (len(drawn.rows), 0)
    if row >= len(drawn.rows) or column >= len(drawn.columns):
        return None
    (top, bottom), (left, right) = drawn.rows[row], drawn.columns[column]
    if weights is None:
        return {"query": top, "key": left}
    query, key = divmod(int(weights[top:bottom, left:right].argmax()), right - left)
    return {"query": top + query, "key": left + key}


def _how_to_read(run: Viewed, drawn: DrawnMap) -> str:
    how = {"mean": HOW_TO_READ_MEAN, "max": HOW_TO_READ_MAX}.get(aggregate_of(run.view) or "", HOW_TO_READ)
    trace = run.visible.trace
    if isinstance(trace, LabelledMaps) and how != HOW_TO_READ_MAX:  # by which formula is not known
        how = HOW_TO_READ_GIVEN if trace.of(run.view.kind).sums_to_one else ROWS_AND_COLUMNS
    parts = [rollout_note(trace, run.view, run.view.kind) or how]
    parts += [words_note(run.visible, run.view.kind)] * run.view.words
    parts += [HOW_TO_READ_CLOSED] * (not drawn.allowed.all())
    parts += [HOW_TO_READ_MARK] * (drawn.sides.current is not None)
    parts += [HOW_TO_READ_PROMPT] * (prompt_row(run, run.view.kind) is not None)
    return joined(" ", [*parts, HOW_TO_READ_CELL])


def colour_of(run: Viewed, kind: Kind, usual: Colour) -> Colour:
    """That of attributions, or the usual one."""
    maps = run.visible.trace
    return "signed" if isinstance(maps, LabelledMaps) and maps.of(kind).signed else usual
