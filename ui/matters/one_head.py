"""The head that is looked at: what the output owes to it at each step, its map, and one click that takes it away."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

import charts
from charts.heatmap import HOW_TO_READ_CLOSED
from charts.theme import capitalised
from transformer.analysis.head_effects import HeadEffects
from transformer.model.anatomy import EVERY_PART
from ui.frame.whatif import for_head
from ui.maps.masked import mask_reason
from ui.matters.measures import WORDS, Shown, shown, step_of, values, written
from ui.runs.open_run import OpenRun
from ui.runs.sides import KIND_NAMES, sides
from ui.shared import drawing
from ui.shared.door import st
from words import Sentence, joined, say

STEPS, MAP = "matters_steps", "matters_map"
CHOOSE: Final = say("Click a cell of either map to look at one head: what it changes step by step, and its weights.")
HOW_TO_READ_STEPS: Final = say("Each bar is one step; the dotted line is the mean over the steps.")
HOW_TO_READ_TOKENS: Final = say("Each bar is one token; the dotted line is the mean over the tokens.")
HOW_TO_READ_MAP: Final = say(
    "Each row is a query: the stronger a cell, the larger the weight that it gives to that key."
)


def draw(run: OpenRun, found: HeadEffects) -> None:
    """Draw the head, if one is chosen."""
    view = run.view
    if view.layer is None or view.head is None:
        st.caption(CHOOSE)
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        st.markdown(drawing.plain(_sums_up(run, found, view.layer, view.head)), width="content")
        for_head(run, view.kind, view.layer, view.head)
    drawing.beside(
        partial(_steps, run, found, view.layer, view.head),
        partial(_map, run, view.layer, view.head),
        gap="medium",
    )


def _name(run: OpenRun, layer: int, head: int) -> Sentence:
    return say("{attention}, layer {layer}, head {head}", attention=KIND_NAMES[run.view.kind], layer=layer + 1,
               head=head + 1)  # fmt: skip


def _short(layer: int, head: int) -> Sentence:
    return say("layer {layer}, head {head}", layer=layer + 1, head=head + 1)


def _sums_up(run: OpenRun, found: HeadEffects, layer: int, head: int) -> Sentence:
    """The head's number, and its place among all heads."""
    measure, step, n_steps = shown(found, run.view.effect), step_of(run.looking), run.looking.n_steps
    every = [np.abs(values(found, kind, measure, n_steps=n_steps, step=step)).ravel() for kind in found.of]
    own = values(found, run.view.kind, measure, n_steps=n_steps, step=step)[layer, head]
    sizes = np.concatenate(every)
    return say(
        "{head}: {effect}, number {rank} of all {n} heads by size.",
        head=_name(run, layer, head),
        effect=written(own, measure),
        rank=int((sizes > abs(own)).sum()) + 1,
        n=sizes.size,
    )


def _steps(run: OpenRun, found: HeadEffects, layer: int, head: int) -> None:
    measure: Shown = shown(found, run.view.effect)
    measure = "log_prob" if measure == "pieces" else measure
    effect = found.of[run.view.kind]
    if measure == "vectors":
        labels, numbers, axis, now = list(run.trace.src_pieces), effect.vectors[layer, head], say("Token"), None
    else:
        first, n_steps = run.trace.first_row, run.looking.n_steps
        labels, numbers = run.looking.row_labels()[first : first + n_steps], getattr(effect, measure)[layer, head]
        axis, now = say("Reads → predicts"), run.view.step
    words = WORDS[measure, measure != "vectors"]
    name = _name(run, layer, head)
    drawing.chart(
        charts.row_measure_spec(
            numbers[: len(labels)],
            labels,
            title=say("Step by step without {head}", head=_short(layer, head)) if now is not None
            else say("Token by token without {head}", head=_short(layer, head)),
            value_name=capitalised(words.unit),
            query_axis=axis,
            marked_row=now,
            colour="target" if now is not None else "source",
        ),
        key=run.key(STEPS),
        alt=say("{title}: one bar for each place, for {head}.", title=words.title, head=name),
        how_to_read=joined(" ", [HOW_TO_READ_TOKENS if now is None else HOW_TO_READ_STEPS, words.meaning]),
    )  # fmt: skip


def _map(run: OpenRun, layer: int, head: int) -> None:
    kind = run.view.kind
    axes = sides(run.looking, kind)
    shape = len(axes.queries), len(axes.keys)
    weights = run.looking.heads(kind, layer)[head][: shape[0], : shape[1]]
    allowed = run.trace.mask(kind, layer)[: shape[0], : shape[1]]
    closed = not allowed.all()
    rows = EVERY_PART.attention(kind).stack == "decoder"
    drawing.chart(
        charts.heatmap_spec(
            weights, queries=axes.queries, keys=axes.keys, title=_name(run, layer, head),
            query_axis=axes.query_axis, key_axis=axes.key_axis, allowed=allowed,
            mask_reason=mask_reason(run.checkpoint, kind), marked_row=axes.current if rows else None,
            colour=axes.key_side, rows_sum_to_one=False, note=run.trace.rows_note(kind),
        ),
        key=run.key(MAP),
        alt=say(
            "{map}. Rows: {rows}; columns: {columns}.",
            map=_name(run, layer, head), rows=axes.query_axis, columns=axes.key_axis,
        ),
        how_to_read=joined(" ", [HOW_TO_READ_MAP, *[HOW_TO_READ_CLOSED] * closed]),
    )  # fmt: skip
