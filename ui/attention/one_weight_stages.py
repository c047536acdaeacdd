"""The six stages of a walk: each a sentence, its arithmetic written out, and a chart.

A click on a key in any of them is followed in all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

import charts
from charts.theme import Spec
from transformer.analysis.one_weight import Walk
from ui.attention import one_weight_text
from ui.components.plotly.view import Click
from ui.runs.open_run import OpenRun
from ui.runs.sides import Sides
from ui.shared import drawing
from ui.shared.clicks import on_click, place_of
from ui.state import session
from ui.state.view import Slot

PRODUCTS: Final = "walk_products"
SCORES: Final = "walk_scores"
MASKED: Final = "walk_masked"
WEIGHTS: Final = "walk_weights"
TABLE: Final = "walk_table"
VALUES: Final = "walk_values"
SHARE: Final = "walk_share"
NORMS: Final = "walk_norms"

HOW_TO_READ_SIGNED: Final = "purple numbers are above 0, green ones below"


@dataclass(frozen=True)
class OpenWeight:
    """What the stages are drawn from.

    Attributes:
        run: The run.
        walk: The numbers.
        axes: What rows and columns are.
        reasons: Why each key is closed; "" if it is open.
        vectors: q, k and v of this head for every token that may be seen, each [token, d_head].
    """

    run: OpenRun
    walk: Walk
    axes: Sides
    reasons: list[str]
    vectors: tuple[np.ndarray, np.ndarray, np.ndarray]

    @property
    def query(self) -> str:
        """The query's label."""
        return self.axes.queries[self.walk.query]

    @property
    def key(self) -> str:
        """The key's label."""
        return self.axes.keys[self.walk.key]


def draw(o: OpenWeight) -> None:
    """Draw all stages, two side by side where there is room."""
    for left, right in ((_dot, _scores), (_mask, _softmax), (_table, _values), (_output, _lengths)):
        for column, stage in zip(st.columns(2, gap="large"), (left, right), strict=True):
            with column:
                stage(o)
    st.caption(one_weight_text.differences(o.walk))


def _stage(number: int, name: str, text: str, formula: str) -> None:
    st.markdown(f"##### {number}. {name}\n{text}\n\n$$\n{formula}\n$$")


def _dot(o: OpenWeight) -> None:
    w = o.walk
    _stage(
        1,
        "q · k: how well do they match?",
        f"The query's vector q and the key's vector k have {w.d_head} numbers each. They are multiplied number by "
        "number, and the products added up. The largest terms are:",
        one_weight_text.dot(w),
    )
    drawing.chart(
        charts.query_times_key_spec(w.q, w.keys[w.key], title="q, k and their products", query=o.query, key=o.key),
        key=o.run.key(PRODUCTS),
        alt=f"The vectors q of {o.query} and k of {o.key}, {w.d_head} numbers each, and their products.",
        how_to_read="q · k = Σᵢ qᵢ kᵢ: where q and k have one colour the product is positive, and purple bars add "
        "to the match; where they differ, green bars take away.",
    )


def _key_chart(o: OpenWeight, key: str, figure: Spec, alt: str, how_to_read: str) -> None:
    follow = taking(o.run.slot, key, place_of)
    drawing.chart(figure, key=o.run.key(key), alt=alt, how_to_read=how_to_read, on_click=follow)


def _scores(o: OpenWeight) -> None:
    w = o.walk
    _stage(
        2,
        "÷ √d_head: the score",
        f"The same is done with every key. Dividing by √{w.d_head} keeps the scores of long vectors from growing so "
        "large that the softmax gives all to one key.",
        one_weight_text.score(w),
    )
    figure = charts.key_row_spec(
        w.scores,
        o.axes.keys,
        title="q · k of every key, and its score",
        value_name="score",
        chosen=w.key,
        side=o.axes.key_side,
        key_axis=o.axes.key_axis,
        before=("q · k", w.dots),
    )
    _key_chart(
        o,
        SCORES,
        figure,
        f"q · k and scores of {len(o.axes.keys)} keys; the chosen one, {o.key}, has {w.scores[w.key]:.3f}.",
        f"Pale: q · k. Dark: score = q · k / √{w.d_head}. Click a key to follow it.",
    )


def _mask(o: OpenWeight) -> None:
    w = o.walk
    reason = o.reasons[w.key]
    n_closed = int((~w.allowed).sum())
    all_keys = f"In this row it closes {one_weight_text.count(n_closed, 'key') if n_closed else 'none'}."
    _stage(
        3,
        "+ mask: who may be seen?",
        "The mask adds 0 where the query may look and −∞ where it may not. "
        f"{all_keys} The chosen key is {reason or 'open'}:",
        one_weight_text.masked(w),
    )
    figure = charts.key_row_spec(
        w.scores,
        o.axes.keys,
        title="Scores after the mask",
        value_name="score",
        chosen=w.key,
        side=o.axes.key_side,
        key_axis=o.axes.key_axis,
        closed=[f"−∞, {reason}" if reason else "" for reason in o.reasons],
    )
    _key_chart(
        o,
        MASKED,
        figure,
        f"Scores after the mask; {n_closed} of {len(o.axes.keys)} keys are closed.",
        "Each bar is score + mask; hatched keys are closed, their score is −∞. Click a key to follow it.",
    )


def _softmax(o: OpenWeight) -> None:
    w = o.walk
    _stage(
        4,
        "softmax: the weights",
        "Subtract the row's largest score, raise e to the difference d, and divide by the sum of these over the row: "
        "the weights are between 0 and 1 and sum to 1."
        if w.peak is not None
        else "No key is open, so all weights are 0.",
        one_weight_text.softmax(w),
    )
    figure = charts.key_row_spec(
        w.weights,
        o.axes.keys,
        title="Weights of this row",
        value_name="weight",
        chosen=w.key,
        side=o.axes.key_side,
        key_axis=o.axes.key_axis,
        closed=o.reasons,
        limits=(0.0, 1.0),
    )
    _key_chart(
        o,
        WEIGHTS,
        figure,
        f"Attention weights of {o.query} over the keys; {o.key} gets {w.weights[w.key]:.3f}.",
        "weight = exp(score − max) / Σ exp(score − max). Click a key to follow it.",
    )


def _table(o: OpenWeight) -> None:
    """The softmax of the row, line by line; the largest weights where there are many keys."""
    rows, total = one_weight_text.softmax_table(o.walk)
    lines = []
    for row in rows:
        name = one_weight_text.count(row.n_keys, "other key") if row.key is None else _numbered(row.key, o.axes.keys)
        cells = [name, row.score.replace("-inf", "−∞"), row.exp, row.weight]
        lines.append([f"**{cell}**" if row.key == o.walk.key and cell else cell for cell in cells])
    lines.append(["Sum", "", total, "1" if o.walk.peak is not None else "0"])
    peak = "" if o.walk.peak is None else f" The largest score, max, is {one_weight_text.number(o.walk.peak)}."
    st.markdown(f"The softmax of this row, line by line.{peak}")
    with st.container(key=o.run.key(TABLE)):
        table = pd.DataFrame(lines, columns=["Key", "Score", "exp(score − max)", "Weight"])
        st.table(table, hide_index=True, alt=f"Scores, exponentials and weights of the keys of {o.query}.")


def _numbered(place: int, labels: list[str]) -> str:
    return f"{place + 1}: {drawing.plain(labels[place])}"


def _values(o: OpenWeight) -> None:
    w = o.walk
    dimension, formula = one_weight_text.head_output(w)
    _stage(
        5,
        "· V: the head's output",
        f"Each key's value vector v is multiplied by its weight; the sum is the head's output o. Its largest number, "
        f"dimension {dimension + 1}:",
        formula,
    )
    shown = one_weight_text.shown_keys(w)
    others = np.delete(w.weighted, shown, axis=0)
    parts, labels = [w.weighted[shown]], [o.axes.keys[place] for place in shown]
    if len(others):
        parts.append(others.sum(axis=0, keepdims=True))
        labels.append(one_weight_text.count(len(others), "other key"))
    labels.append("sum: o")
    closed = [o.reasons[place] for place in shown] + [""] * (len(labels) - len(shown))
    figure = charts.signed_rows_spec(
        np.concatenate([*parts, w.head_out[None]]),
        labels,
        title="Weight × value, and their sum",
        row_axis="Key",
        column_axis="Dimension",
        value_name="weight × v",
        marked=[shown.index(w.key)],
        closed=closed,
    )

    def key_of(click: Click) -> int | None:
        return shown[click.index[0]] if len(click.index) == 2 and click.index[0] < len(shown) else None

    drawing.chart(
        figure,
        key=o.run.key(VALUES),
        alt=f"Weighted values of {len(shown)} keys and their sum, the output of the head, {w.d_head} numbers each.",
        how_to_read=f"o = Σ weight · v: {HOW_TO_READ_SIGNED}; the last row is the sum of those "
        "above it. Click a row to follow its key.",
        on_click=taking(o.run.slot, VALUES, key_of),
    )


def _output(o: OpenWeight) -> None:
    w = o.walk
    dimension, formula = one_weight_text.share(w)
    _stage(
        6,
        "· W_O: what this head adds",
        f"This head's {w.d_head} columns of W_O turn o into y, its share of the sub-layer's output. Its largest "
        f"number, dimension {dimension + 1}:",
        formula,
    )
    others = np.delete(w.shares, w.head, axis=0).sum(axis=0)
    drawing.chart(
        charts.signed_rows_spec(
            np.stack([w.shares[w.head], others, w.bias, w.output]),
            [f"head {w.head + 1}: y", "other heads", "bias", "sum"],
            title="From heads to the sub-layer's output",
            row_axis="Part",
            column_axis="Dimension of the model",
            value_name="adds",
            marked=[0],
        ),
        key=o.run.key(SHARE),
        alt=f"What head {w.head + 1}, the other heads and the bias add to the sub-layer's output of this row.",
        how_to_read=f"y = o · W_Oᵀ (this head's columns): {HOW_TO_READ_SIGNED}; the last row is the sum of the rows "
        "above it, the sub-layer's output.",
    )


def _lengths(o: OpenWeight) -> None:
    w = o.walk
    formula = one_weight_text.norm_share(w)
    st.markdown(f"How much is that against the other heads? By length, the bias apart:\n\n$$\n{formula}\n$$")
    drawing.chart(
        charts.head_norms_spec(w.norms, title="Length of each head's share", chosen=w.head),
        key=o.run.key(NORMS),
        alt=f"Length of what each of {len(w.norms)} heads adds; head {w.head + 1} has {w.norms[w.head]:.3g}.",
        how_to_read="‖head · W_O‖, the root of the sum of squares of y. Click a bar to follow that head.",
        on_click=taking(o.run.slot, NORMS, place_of, into="head"),
    )


def taking(slot: Slot, chart: str, read: Callable[[Click], int | None], *, into: str = "key") -> Callable[[], None]:
    """Callback of a click on a chart: what was clicked is looked at everywhere.

    Args:
        slot: Where the chart is drawn.
        chart: Its name.
        read: What a click means; None: nothing.
        into: The field of the view that is chosen by it.
    """
    return on_click(f"{slot}{chart}", read, lambda place: session.replace(slot, **{into: place}))
