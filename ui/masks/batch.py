"""The padded batch that the Masks page looks at, in words and labels.

The page's own sentence and up to three companions run as one batch. In guess mode the target side is cut after the
current step before anything is computed from it, so nothing later can be seen; under a causal mask the rows that
remain are the same.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from charts.theme import Colour
from transformer.analysis.mask_checks import BatchMasks, Ids
from transformer.checkpoint.load import Checkpoint
from transformer.runs.query import Query
from transformer.runs.trace import Kind, Trace
from ui.runs.looking import HIDDEN
from ui.runs.sides import SOURCE_COLUMNS, SOURCE_ROWS, TARGET_ROWS
from ui.state.view import MaskName

KINDS: dict[MaskName, Kind] = {
    "source": "encoder",
    "target": "decoder",
    "causal": "decoder",
    "decoder": "decoder",
    "cross": "cross",
}
READ_COLUMNS = "Piece read (key)"  # short: two maps stand side by side
PADDING, FUTURE, BOTH = (
    "the key is padding",
    "the key comes after the query: the future",
    "the key is padding, and comes after the query: the future",
)


@dataclass(frozen=True)
class Batch:
    """Sentences that were run together.

    Attributes:
        traces: Their runs, all padded to the same lengths; the page's own sentence first.
        sentence: Which one is looked at.
        n_rows: Decoder positions that may be seen.
        covered: Whether the prediction of the last of them is hidden.
        pad_id: The padding piece.
    """

    traces: tuple[Trace, ...]
    sentence: int
    n_rows: int
    covered: bool
    pad_id: int

    @property
    def src_ids(self) -> Ids:
        """Padded source ids, [sentence][position]."""
        return tuple(trace.src_ids for trace in self.traces)

    @property
    def tgt_ids(self) -> Ids:
        """Padded ids that the decoder reads, [sentence][position]."""
        return tuple(trace.read_ids[: self.n_rows] for trace in self.traces)

    def n_source(self, sentence: int) -> int:
        """Source pieces of a sentence without padding."""
        return sum(i != self.pad_id for i in self.traces[sentence].src_ids)

    def n_target(self, sentence: int) -> int:
        """Decoder positions of a sentence without padding."""
        return min(self.traces[sentence].n_steps, self.n_rows)

    def is_real(self, side: Colour) -> np.ndarray:
        """Which positions of a side are no padding, bool [sentence, position]."""
        source = side == "source"
        n_positions = len((self.src_ids if source else self.tgt_ids)[0])
        count = self.n_source if source else self.n_target
        lengths = np.array([count(sentence) for sentence in range(len(self.traces))])
        real: np.ndarray = np.arange(n_positions)[None, :] < lengths[:, None]
        return real

    def pieces(self, side: Colour, sentence: int) -> list[str]:
        """The pieces of one side of a sentence, padding included; those that the decoder reads on the target side."""
        trace = self.traces[sentence]
        return list(trace.src_pieces if side == "source" else trace.read_pieces[: self.n_rows])

    def decoder_rows(self, sentence: int) -> list[str]:
        """What each decoder row of a sentence reads and predicts."""
        labels = [str(label) for label in self.traces[sentence].row_labels()[: self.n_rows]]
        if self.covered:
            labels[-1] = f"{self.traces[sentence].row_label(self.n_rows - 1).reads} → {HIDDEN}"
        return labels


@dataclass(frozen=True)
class Axes:
    """Rows and columns of one sentence's mask: labels, names of the axes, whose they are, which ones are padding."""

    queries: list[str]
    keys: list[str]
    names: tuple[str, str]
    key_side: Colour
    real_queries: np.ndarray
    real_keys: np.ndarray


def axes(batch: Batch, name: MaskName) -> Axes:
    """The axes of a mask for the sentence that is looked at.

    Args:
        batch: The batch.
        name: Which mask.
    """
    kind, sentence = KINDS[name], batch.sentence
    source = batch.pieces("source", sentence)
    real_source, real_target = batch.is_real("source")[sentence], batch.is_real("target")[sentence]
    if kind == "encoder":
        return Axes(source, source, (SOURCE_ROWS, SOURCE_COLUMNS), "source", real_source, real_source)
    rows = batch.decoder_rows(sentence)
    if kind == "cross":
        return Axes(rows, source, (TARGET_ROWS, SOURCE_COLUMNS), "source", real_target, real_source)
    read = batch.pieces("target", sentence)
    return Axes(rows, read, (TARGET_ROWS, READ_COLUMNS), "target", real_target, real_target)


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


def default_cell(mask: np.ndarray) -> tuple[int, int]:
    """The cell that is looked at until one is chosen: the first closed one, as that needs explaining."""
    closed = np.argwhere(~mask)
    return (int(closed[0][0]), int(closed[0][1])) if len(closed) else (0, 0)


def verdict(
    name: MaskName, masks: BatchMasks, found: Axes, *, sentence: int, cell: tuple[int, int]
) -> tuple[bool, str]:
    """Whether a query may see a key, and why, in a sentence or two.

    Args:
        name: Which mask.
        masks: All masks of the batch.
        found: The axes of that mask for the sentence.
        sentence: Which sentence of the batch, from 0.
        cell: Row and column, from 0.
    """
    query, key = cell
    allowed = bool(masks.whole(name)[sentence, query, key])
    q, k = f"query {query + 1}", f"key {key + 1}"
    padded = f"{k} is padding of sentence {sentence + 1}"
    if name in ("target", "decoder") and key == 0 and allowed:
        why = f"{k} is the start piece, which every query may read"
    elif name == "causal":
        why = _order(q, k, query, key)
    elif name == "decoder":
        pad = not masks.whole("target")[sentence, query, key]
        order = _order(q, k, query, key)
        why = f"{padded}, and {order}" if pad and key > query else padded if pad else order
        why += ", and is no padding" if allowed else ""
    else:
        why = f"{k} is a piece of sentence {sentence + 1}; this mask closes only padding" if allowed else padded
    row = "" if found.real_queries[query] else f" Query {query + 1} is padding itself: nobody reads what it gets."
    return allowed, f"{'yes' if allowed else 'no'}: {why}.{row}"


def _order(q: str, k: str, query: int, key: int) -> str:
    if key > query:
        return f"{k} comes after {q}: the future"
    return f"{k} is {q} itself" if key == query else f"{k} comes before {q}"


def fit_cell(query: int | None, key: int | None, mask: np.ndarray) -> tuple[tuple[int, int], tuple[str, ...]]:
    """The chosen cell moved into a mask [query, key], and a note for each place that had to be moved."""
    default, chosen, notes = default_cell(mask), [], []
    for name, asked, count, own in zip(("Query", "Key"), (query, key), mask.shape, default, strict=True):
        if asked is not None and asked >= count:
            plural = "query" if name == "Query" else "key"
            notes.append(f"{name} {asked + 1} was chosen; this mask's last {plural} is {count}, which is shown.")
        chosen.append(own if asked is None else min(asked, count - 1))
    return (chosen[0], chosen[1]), tuple(notes)


def default_companions(checkpoint: Checkpoint, source: str, examples: Sequence[str]) -> tuple[str, ...]:
    """Two examples to pad against: the shortest and the longest, in pieces, of those that are not the sentence."""
    lengths = {text: len(checkpoint.src_tokenizer.encode(text).ids) for text in examples if text != source}
    there = sorted(lengths, key=lambda text: lengths[text])
    return tuple(dict.fromkeys((there[0], there[-1]))) if there else ()


def companion_query(query: Query, source: str) -> Query:
    """A companion's query: decoded as the page's own sentence is, but with nothing forced.

    Raises:
        QueryError: The sentence is too long.
    """
    return Query(checkpoint=query.checkpoint, source=source, decoding=query.decoding, max_new=query.max_new)


def change_for(trace: Trace, place: int, *, specials: Sequence[int]) -> int:
    """What the causality check puts at a place of the target: the likeliest other ordinary piece there.

    Args:
        trace: The sentence's run.
        place: Which token that the decoder reads, from 1 (0 is the start piece).
        specials: Ids that are not taken.
    """
    log_probs = trace.log_probs[place - 1].copy()
    log_probs[[trace.read_ids[place], *specials]] = -np.inf
    return int(log_probs.argmax())
