"""The Masks page's record and scene: a padded batch, a mask, the selected cell and why it is open or closed.

The page's own sentence and up to three companions run as one batch. In guess mode the target side is cut after the
current step before any computation, so nothing later is visible; under a causal mask the other rows are unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from glassformer.charts.theme import Colour, capitalised, shortened
from glassformer.masks import MasksLook
from glassformer.runs.map_axes import SOURCE_COLUMNS, SOURCE_ROWS, TARGET_COLUMNS, TARGET_ROWS
from glassformer.runs.picture import Page, PartEntry
from glassformer.runs.viewed_run import RunScene, ViewedRun, row_labels
from transformer.analysis.mask_checks import BatchMasks, Ids, MaskName, batch_masks, changed_masks
from transformer.errors import QueryError
from transformer.i18n import Sentence, joined, say
from transformer.model.anatomy import Anatomy, anatomy
from transformer.runs.apply_interventions import tap_for
from transformer.runs.query import Query
from transformer.runs.trace import Kind, Trace

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

KINDS: dict[MaskName, Kind] = {
    "source": "encoder",
    "target": "decoder",
    "causal": "decoder",
    "decoder": "decoder",
    "cross": "cross",
}
NAMES: dict[MaskName, str] = {
    "source": say("Source padding"),
    "target": say("Target padding"),
    "causal": say("Causal"),
    "decoder": say("Padding and causal"),
    "cross": say("Cross-attention"),
}
ATTENTIONS: tuple[MaskName, ...] = ("source", "decoder", "cross")  # whole masks, one of each attention
MORE_PIECES = 2  # that a sentence to pad to has at least, if one has: its output is longer, too
PADDING, FUTURE, BOTH = (
    say("the key is padding"),
    say("the key comes after the query (the future)"),
    say("the key is padding and comes after the query (the future)"),
)
BY_CHANGE = say("a change to the model closes it")


@dataclass(frozen=True)
class Batch:
    """Sentences that were run together."""

    traces: tuple[Trace, ...]  # their runs, all padded to the same lengths; the page's own sentence first
    sentence: int  # which one is looked at
    n_rows: int  # decoder positions that may be seen
    covered: bool  # whether the prediction of the last of them is hidden
    parts: Anatomy

    @property
    def src_ids(self) -> Ids:
        """Padded source ids, [sentence][position]."""
        return tuple(trace.src_ids for trace in self.traces)

    @property
    def tgt_ids(self) -> Ids:
        """Padded ids that the decoder reads, [sentence][position]."""
        return tuple(trace.read_ids[: self.n_rows] for trace in self.traces)

    def n_source(self, sentence: int) -> int:
        """Pieces of a sentence that the encoder reads, without padding."""
        return self.traces[sentence].n_tokens("encoder")

    def n_target(self, sentence: int) -> int:
        """Decoder positions of a sentence without padding."""
        return min(self.traces[sentence].n_tokens("decoder"), self.n_rows)

    def is_real(self, side: Colour) -> np.ndarray:
        """Which positions of a side are not padding, bool [sentence, position]."""
        source = side == "source"
        n_positions = len((self.src_ids if source else self.tgt_ids)[0])
        count = self.n_source if source else self.n_target
        lengths = np.array([count(sentence) for sentence in range(len(self.traces))])
        return np.arange(n_positions)[None, :] < lengths[:, None]

    def pieces(self, side: Colour, sentence: int) -> list[str]:
        """The pieces of one side of a sentence, padding included; those that the decoder reads on the target side."""
        trace = self.traces[sentence]
        return list(trace.src_tokens if side == "source" else trace.read_tokens[: self.n_rows])

    def decoder_rows(self, sentence: int) -> list[str]:
        """What each decoder row of a sentence reads and predicts."""
        return row_labels(self.traces[sentence], self.n_rows, covered=self.covered)


@dataclass(frozen=True)
class Axes:
    """Rows and columns of one sentence's mask."""

    queries: list[str]
    reads: list[str]  # what each row reads; of the decoder's rows the label without what it predicts
    keys: list[str]
    names: tuple[str, str]  # of the axes
    key_side: Colour
    real_queries: np.ndarray  # which rows are not padding, [query]


@dataclass(frozen=True)
class MasksScene(RunScene):
    """One mask of a batch, as the page looks at it."""

    batch: Batch
    masks: BatchMasks  # of the unchanged model
    used: BatchMasks  # of the model as the run changes it
    name: MaskName

    @property
    def whole(self) -> np.ndarray:
        """The mask of the selected sentence, bool [query, key]."""
        return self.used.whole(self.name)[self.batch.sentence]

    @property
    def changed(self) -> np.ndarray:
        """Where a change of the run opens or closes it, bool [query, key]."""
        return self.whole != self.masks.whole(self.name)[self.batch.sentence]

    @property
    def reasons(self) -> dict[str, np.ndarray]:
        """Why its closed cells are closed, as of `closed_for`."""
        closed = ~self.whole
        own = {why: at & closed for why, at in closed_for(self.name, self.masks, self.batch.sentence).items()}
        return own | {BY_CHANGE: closed & self.changed}

    @cached_property
    def axes(self) -> Axes:
        """Its rows and columns."""
        batch, kind = self.batch, self.kind
        source = batch.pieces("source", batch.sentence)
        real = batch.is_real("source" if kind == "encoder" else "target")[batch.sentence]
        if kind == "encoder":
            return Axes(source, source, source, (SOURCE_ROWS, SOURCE_COLUMNS), "source", real)
        rows, read = batch.decoder_rows(batch.sentence), batch.pieces("target", batch.sentence)
        if kind == "cross":
            return Axes(rows, read, source, (TARGET_ROWS, SOURCE_COLUMNS), "source", real)
        return Axes(rows, read, read, (TARGET_ROWS, TARGET_COLUMNS), "target", real)

    @property
    def kind(self) -> Kind:
        """The attention that takes the mask."""
        return KINDS[self.name]

    @property
    def taken(self) -> MaskName:
        """The mask that this attention takes; this one may be a part of it."""
        return next(name for name in ATTENTIONS if KINDS[name] == self.kind)

    @property
    def where(self) -> tuple[int, int]:
        """Layer and head whose row is shown; where the view has a mean, it is the first."""
        layer = min(self.run.view.layer or 0, self.batch.parts.attention(self.kind).n_layers - 1)
        return layer, self.run.view.head or 0

    @property
    def cell(self) -> tuple[int, int]:
        """The selected row and column; as long as none is, the first that is changed, if one is."""
        view, changed = self.run.view, self.changed
        if view.query is None and view.key is None and changed.any():
            row, column = np.unravel_index(changed.argmax(), changed.shape)
            return int(row), int(column)
        return fit_cell(view.query, view.key, self.whole, self.axes.real_queries)[0]


def scene(run: ViewedRun) -> MasksScene:
    """What the page shows of a run; QueryError if the sentence cannot be run."""
    return scene_of(run, batch_of(run)[0])


def scene_of(run: ViewedRun, batch: Batch) -> MasksScene:
    """The selected mask of a batch: of those that the model uses, the one that the view names."""
    masks = used = batch_masks(run.checkpoint.model, batch.src_ids, batch.tgt_ids)
    if changes := run.trace.query.interventions:
        used = run.work.compute(
            ("changed_masks", run.checkpoint.content_hash, changes, batch.src_ids, batch.tgt_ids),
            lambda: changed_masks(run.checkpoint.model, batch.src_ids, batch.tgt_ids, tap_for(changes, run.checkpoint)),
            nbytes=lambda found: found.decoder.nbytes + found.source.nbytes,
        )
    there = [name for name in NAMES if name in masks.names]
    wanted: tuple[MaskName, ...] = (run.view.of(MasksLook).mask, MasksLook.mask)
    return MasksScene(run, batch, masks, used, next(name for name in (*wanted, *there) if name in there))


def batch_of(run: ViewedRun) -> tuple[Batch, list[str]]:
    """The run's sentence and its companions as one batch, and a sentence for each companion that was left out."""
    queries, refused = [run.trace.query], []
    for text in filter(str.strip, companions(run) if run.checkpoint.config.pad_id is not None else ()):
        try:
            queries.append(companion_query(run.trace.query, text))
        except QueryError as error:
            refused.append(left_out(text, error))
    traces = _run(run, queries, refused)
    n_rows = len(traces[0].read_ids)
    n_rows = min(run.visible.n_rows, n_rows) if run.view.guess else n_rows
    sentence, parts = _looked_at(run.view.of(MasksLook), traces), anatomy(run.checkpoint.config)
    return Batch(traces, sentence, n_rows, run.visible.covered, parts), refused


def _run(run: ViewedRun, queries: list[Query], refused: list[str]) -> tuple[Trace, ...]:
    """Run the batch; if it is refused, without those companions that are refused alone."""
    try:
        return run.work.batch(run.checkpoint, queries)
    except QueryError:
        good = queries[:1]
        for query in queries[1:]:
            try:
                run.work.run(run.checkpoint, query)
                good.append(query)
            except QueryError as error:
                refused.append(left_out(query.source, error))
        return run.work.batch(run.checkpoint, good)


def left_out(text: str, error: QueryError) -> str:
    """What is said of a companion that cannot be run."""
    said = say("“{text}” is left out of the batch.", text=shortened(text, limit=40))
    return joined(" ", [said, capitalised(error.sentence)])


def companions(run: ViewedRun) -> tuple[str, ...]:
    """The sentences that run together with the page's own: those that the link names, or some to pad against."""
    if run.link.companions is not None:
        return tuple(run.link.companions)
    return default_companion(run.checkpoint, run.trace.query.source, run.checkpoint.card.tried())


def _looked_at(look: MasksLook, traces: Sequence[Trace]) -> int:
    """The selected sentence, by default the first that is padded; for the checks, which add pads, the first."""
    if look.sentence is not None or look.masks_panel == "checks":
        return min(look.sentence or 0, len(traces) - 1)
    return next((i for i, one in enumerate(traces) if one.pad_id in (one.read_ids or one.src_ids)), 0)


def closed_for(name: MaskName, masks: BatchMasks, sentence: int) -> dict[str, np.ndarray]:
    """Why the closed cells of a mask are closed: reason -> bool [query, key]; each cell has one reason."""
    if name in ("source", "cross"):
        return {PADDING: ~masks.whole(name)[sentence]}
    padding, future = ~masks.whole("target")[sentence], ~masks.whole("causal")[sentence]
    if name == "target":
        return {PADDING: padding}
    if name == "causal":
        return {FUTURE: future}
    return {PADDING: padding & ~future, FUTURE: future & ~padding, BOTH: padding & future}


def default_cell(mask: np.ndarray, real: np.ndarray) -> tuple[int, int]:
    """The cell that is selected by default: the first closed one of the row with most open keys.

    A closed key needs explaining, and is compared with open ones in its row. Rows that are `real` are not padding.
    """
    rows = np.where(real & ~mask.all(axis=1), mask.sum(axis=1), -1)
    row = int(rows.argmax())
    return (row, int(mask[row].argmin())) if rows[row] >= 0 else (0, 0)


def verdict(scene: MasksScene) -> tuple[bool, str]:
    """Whether the selected query may see its key, and why, in a sentence or two."""
    name, masks, batch, found, cell = scene.name, scene.masks, scene.batch, scene.axes, scene.cell
    query, key = cell
    allowed = bool(scene.whole[cell])
    future = name in ("causal", "decoder") and key > query
    if scene.changed[cell]:
        why = say("Yes: a change to the model opens it.") if allowed else say("No: a change to the model closes it.")
    elif allowed and key == 0 and name in ("target", "decoder") and batch.parts.reads:  # a prompt has no start piece
        why = say("Yes: key {key} is the start mark, which every query may read.", key=key + 1)
    elif allowed:
        why = _why_open(name, query, key, batch.sentence)
    elif future and name == "decoder" and not masks.whole("target")[batch.sentence, query, key]:
        why = say("No: key {key} is padding in sentence {sentence}, and key {key} also comes after query {query} "
                  "(the future).", key=key + 1, sentence=batch.sentence + 1, query=query + 1)  # fmt: skip
    elif future:
        why = say("No: key {key} comes after query {query} (the future).", key=key + 1, query=query + 1)
    else:
        why = say("No: key {key} is padding in sentence {sentence}.", key=key + 1, sentence=batch.sentence + 1)
    padded = say("Query {query} is itself padding, so its result is never used.", query=query + 1)
    return allowed, joined(" ", [why] if found.real_queries[query] else [why, padded])


def _why_open(name: MaskName, query: int, key: int, sentence: int) -> Sentence:
    q, k = query + 1, key + 1
    if name not in ("causal", "decoder"):
        return say(
            "Yes: key {key} is a real token of sentence {sentence}, and this mask closes only padding.",
            key=k,
            sentence=sentence + 1,
        )
    if key == query:
        return say("Yes: key {key} and query {query} have the same position.", key=k, query=q)
    if name == "causal":
        return say("Yes: key {key} comes before query {query}.", key=k, query=q)
    return say("Yes: key {key} comes before query {query} and is not padding.", key=k, query=q)


def fit_cell(
    query: int | None, key: int | None, mask: np.ndarray, real: np.ndarray
) -> tuple[tuple[int, int], tuple[str, ...]]:
    """The chosen cell moved into a mask [query, key], and a note for each place that had to be moved."""
    (n_queries, n_keys), default, notes = mask.shape, default_cell(mask, real), list[str]()
    row = default[0] if query is None else min(query, n_queries - 1)
    column = default[1] if key is None else min(key, n_keys - 1)
    if query is not None and query > row:
        notes.append(
            say(
                "Query {n} was chosen, but this mask ends at query {last}, which is shown instead.",
                n=query + 1,
                last=n_queries,
            )
        )
    if key is not None and key > column:
        notes.append(
            say("Key {n} was chosen, but this mask ends at key {last}, which is shown instead.", n=key + 1, last=n_keys)
        )
    return (row, column), tuple(notes)


def default_companion(checkpoint: Checkpoint, source: str, examples: Sequence[str]) -> tuple[str, ...]:
    """The example to pad to: a few pieces longer than the sentence, else the longest; if none is, the shortest."""
    own, *others = (len(checkpoint.src_tokenizer.encode(text).ids) for text in (source, *examples))
    there = [(n, text) for text, n in zip(examples, others, strict=True) if text != source]
    there.sort(key=lambda one: one[0])
    longer = [text for n, text in there if n >= own + MORE_PIECES] or [text for n, text in there if n > own][-1:]
    return tuple((longer or [text for _, text in there])[:1])


def companion_query(query: Query, source: str) -> Query:
    """A companion's query: decoded as the page's own is, by the model as it is changed, with nothing forced."""
    return replace(query, source=source, forced=(), hypothesis=0)


MASKS = Page(
    "masks",
    say("Masks"),
    panel="masks_panel",  # which of them is unfolded below the masks
    kind=lambda view: KINDS[view.of(MasksLook).mask],
    entries=(
        PartEntry("masks", say("The masks")),
        PartEntry("one_row", say("One row")),
        PartEntry("checks", say("Checks")),
    ),
)
WHOLE = MASKS.part("masks", scene)
ONE_ROW = MASKS.part("one_row", scene)
CHECKS = MASKS.part("checks", scene)
