"""Part "Without parameters": softmax(A·Aᵀ) of the embeddings, the same times √d_model, and the trained heads."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from glassformer.attention.drawn_maps import (
    ATTENTION,
    HIDDEN_PIECES,
    DrawnMap,
    OneMap,
    drawn_map,
    find_span,
    map_plot,
    piece_map,
)
from glassformer.charts.grammar import frame
from glassformer.runs.map_axes import sides
from glassformer.runs.picture import Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from transformer.analysis.one_weight import without_parameters
from transformer.analysis.word_merging import by_words
from transformer.i18n import say
from transformer.model.anatomy import EVERY_PART

HOW_TO_READ: Final = say(
    "A has each query's row of its embedding table, and B each key's; in self-attention, B is A. Queries and keys are "
    "these rows themselves: no W_Q, no W_K, no heads, no positions, so equal tokens get equal weights. The mask is the "
    "model's. Click a cell to compare its row in all three maps."
)


@dataclass(frozen=True)
class PlainMaps(RunScene):
    """The selected map, and what it would be without parameters."""

    drawn: DrawnMap  # the trained one
    maps: tuple[np.ndarray, np.ndarray, np.ndarray]  # by rows, by scaled rows, trained; between tokens [query, key]
    within: bool  # whether queries and keys are the same tokens


def open_plain(run: ViewedRun) -> PlainMaps | None:
    """The three maps; None where all tokens are special and hidden."""
    view, of, model = run.view, sides(run.visible, run.view.kind), run.checkpoint.model
    if not (drawn := drawn_map(run.visible, run.checkpoint, view.kind)).weights.size:
        return None
    shape = slice(len(of.queries)), slice(len(of.keys))
    allowed = run.trace.mask(view.kind, view.layer)[shape]
    plain, scaled = without_parameters(model, view.kind, of.query_ids, of.key_ids, allowed)
    maps, one = (plain, scaled, piece_map(run.visible, view.kind)[shape]), EVERY_PART.attention(view.kind)
    return PlainMaps(run, drawn, maps, one.keys_from == one.stack)


PLAIN = ATTENTION.part("plain", open_plain)


@PLAIN.picture("plain_rows", say("softmax(A·Aᵀ) of the embeddings"), follows="still")
def rows(o: PlainMaps) -> Plot:
    """By rows of the table."""
    title = say("softmax(A·Aᵀ): rows of the table") if o.within else say("softmax(A·Bᵀ): rows of both tables")
    return _without(o, 0, title)


@PLAIN.picture("plain_scaled", say("softmax(A·Aᵀ) of the embeddings × √d_model"), follows="still")
def scaled(o: PlainMaps) -> Plot:
    """By rows times √d_model."""
    root = o.run.checkpoint.config.d_model**0.5
    return _without(o, 1, say("The same rows × {root:.4g} = √d_model", root=root))


@PLAIN.picture("plain_trained", say("The trained heads"), follows="still")
def trained(o: PlainMaps) -> Plot:
    """What the model does with W_Q and W_K."""
    return _with(o, 2, replace(o.drawn, notes=(*o.drawn.notes, *_own(o, 2))))


THREE: Final = (rows, scaled, trained)


def _without(o: PlainMaps, which: int, title: str) -> Plot:
    hidden = len(o.drawn.rows) < len(o.maps[which]) or len(o.drawn.columns) < o.maps[which].shape[1]
    weights = by_words(o.maps[which], o.drawn.rows, o.drawn.columns)  # hidden tokens are in no span
    notes = (*(HIDDEN_PIECES,) * (hidden and not o.run.view.words), *_own(o, which))
    shown = replace(o.drawn, weights=weights, title=title, name=title, sums_to_one=not hidden, notes=notes)
    return replace(_with(o, which, shown), how_to_read=HOW_TO_READ)


def _with(o: PlainMaps, which: int, shown: DrawnMap) -> Plot:
    """One of the three maps, drawn like the others; the chosen query's row has a frame."""
    plot = map_plot(OneMap(o.run, shown))
    layout, row = plot.spec["layout"], find_span(shown.rows, o.run.view.query)
    if which < 2 and not o.run.view.own_scale and plot.spec["data"][0].pop("colorbar", None):
        plot.spec["data"][0]["showscale"] = False  # the last map has the scale of all
    if row is not None:
        layout["shapes"].append(frame((-0.5, len(shown.keys) - 0.5), (row - 0.5, row + 0.5), width=1.5))
    return replace(plot, fit=False)


def _own(o: PlainMaps, which: int) -> list[str]:
    """The mean weight of a token on itself, where queries and keys are the same tokens."""
    share = float(np.diagonal(o.maps[which]).mean())
    return [say("a token's weight on itself: {share:.2f} on average", share=share)] if o.within else []
