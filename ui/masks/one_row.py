"""One row of the Masks page: a query's scores before and after the mask, and its weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

import charts
from charts.mask_rows import HOW_TO_READ_ROW
from transformer.analysis.mask_checks import BatchMasks
from ui.components.plotly.view import Click
from ui.masks import controls, words
from ui.masks.batch import KINDS, Axes, Batch, axes, closed_for
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.shared import drawing
from ui.shared.clicks import place_below
from ui.shared.door import frame, st
from ui.state.view import MaskName
from words import say

ROW = "mask_row"


@dataclass(frozen=True)
class _Row:
    """One query of one head, each [key]: before the mask, the mask, after mask and softmax, and why it is closed.

    `filled` is what a closed score becomes, as it is written.
    """

    scores: np.ndarray
    allowed: np.ndarray
    weights: np.ndarray
    reasons: list[str]
    filled: str


def draw(run: OpenRun, batch: Batch, masks: BatchMasks, name: MaskName, where: tuple[int, int]) -> None:
    """Draw one row of the sentence that is looked at, as it is in its run, with what is changed there.

    Args:
        run: The page's run.
        batch: The batch.
        masks: The unchanged model's masks of it; they say why a cell is closed.
        name: Which mask.
        where: Layer and head, from 0.
    """
    found, place = axes(batch, name), batch.sentence
    kind = KINDS[name]
    layer, head = where
    cell = controls.cell(run, name, masks, found, batch)
    sites = [f"{batch.parts.attention(kind).place(layer)}.{part}" for part in ("scores", "mask", "weights")]
    recorded = attempt(lambda: loading.replay(run.checkpoint, batch.traces[place], sites))
    if recorded is None:
        return
    reasons, n_keys = closed_for(name, masks, place), len(found.keys)
    why = [
        next((one for one, at in reasons.items() if at[cell[0], k]), words.CLOSED_OTHERWISE) for k in range(n_keys)
    ]
    whole, mask, weighed = (recorded[site] for site in sites)
    mask = np.broadcast_to(mask, whole.shape)
    if run.trace.query.interventions and batch.parts.attention(kind).causal:
        whole = _without_unread(whole)
    scores, allowed, weights = (values[head, cell[0], :n_keys] for values in (whole, mask, weighed))
    row = _Row(scores, allowed, weights, why, words.filled(run.trace.query, run.checkpoint.config, kind))
    _row_chart(run, found, cell, where, row)
    st.markdown(drawing.plain(words.about_cell(scores, allowed, weights, cell, filled=row.filled)))
    if run.view.layer is None or run.view.head is None:
        st.caption(say("A mean of heads has no scores of its own, so one head is shown."))
    with st.expander(say("The numbers of this row")):
        st.dataframe(_numbers(row, found.keys), hide_index=True)


def _without_unread(scores: np.ndarray) -> np.ndarray:
    """Scores [head, query, key], NaN for keys that a query had not read yet.

    Under some changes each prefix is read by itself (`transformer.runs.recording`): then what comes later is not
    closed but not there, and all of it was filled with 0.
    """
    later = np.triu(np.ones(scores.shape[-2:], dtype=bool), 1)
    return scores if scores[:, later].any() else np.where(later, np.nan, scores)


def _row_chart(run: OpenRun, found: Axes, cell: tuple[int, int], where: tuple[int, int], row: _Row) -> None:
    (query, key), (layer, head) = cell, where
    title = say(
        "Layer {layer}, head {head}: query {n}, {query}",
        layer=layer + 1,
        head=head + 1,
        n=query + 1,
        query=found.queries[query],
    )
    figure = charts.masked_row_spec(
        row.scores,
        row.allowed,
        row.weights,
        keys=found.keys,
        title=title,
        key_axis=found.names[1],
        key=key,
        colour=found.key_side,
        mask_reasons=row.reasons,
        filled=row.filled,
    )
    drawing.chart(
        figure,
        key=run.key(ROW),
        alt=say(
            "Scores of query {n}, {query}, with {keys} keys, the same after the mask, and the weights; {closed} keys "
            "are closed.",
            n=query + 1,
            query=found.queries[query],
            keys=len(found.keys),
            closed=int((~row.allowed).sum()),
        ),
        how_to_read=HOW_TO_READ_ROW,
        fit=True,
        on_click=controls.follow_click(run, ROW, partial(_key_in, query=query, n_keys=len(found.keys))),
    )


def _key_in(click: Click, query: int, n_keys: int) -> tuple[int, int] | None:
    key = place_below(n_keys)(click)
    return None if key is None else (query, key)


def _numbers(row: _Row, keys: list[str]) -> pd.DataFrame:
    cells = list(zip(row.scores, row.allowed, row.weights, row.reasons, strict=True))
    return frame(
        {
            say("Key"): [f"{place + 1}: {piece}" for place, piece in enumerate(keys)],
            say("Score"): [f"{score:.6f}" for score in row.scores],
            say("May attend"): [
                say("True") if may else say("False: {reason}", reason=why) for _, may, _, why in cells
            ],
            say("Added"): ["0" if may else words.added(row.filled) for _, may, _, _ in cells],
            say("After the mask"): [f"{score:.6f}" if may else row.filled for score, may, _, _ in cells],
            say("Weight"): [f"{weight:.6f}" if may or weight else say("closed") for _, may, weight, _ in cells],
        }
    )
