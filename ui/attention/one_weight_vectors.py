"""q, k and v of every token in one head: what a walk begins with."""

from __future__ import annotations

from typing import Final

import numpy as np

import charts
from ui.attention import one_weight_scores
from ui.attention.one_weight_stages import OpenWeight, taking
from ui.shared import drawing
from ui.shared.dialect import formula
from ui.shared.door import st
from ui.state.click import Click
from words import say

VECTORS: Final = "walk_vectors"
MAPS: Final = ("walk_all_q", "walk_all_k", "walk_all_v")
MOST_TOKENS: Final = 128
"""Rows of a map; of more tokens those around the chosen one are drawn."""


def draw(o: OpenWeight) -> None:
    """Draw q, k and v of all tokens, when they are asked for."""
    expander = st.expander(
        say("q, k and v of every token in layer {layer}, head {head}", layer=o.walk.layer + 1, head=o.walk.head + 1),
        key=o.run.key(VECTORS),
        on_change="rerun",
    )
    if not expander.open:
        return
    w, axes = o.walk, o.axes
    sides = (
        ("q", axes.queries, axes.query_axis, w.query, "query"),
        ("k", axes.keys, axes.key_axis, w.key, "key"),
        ("v", axes.keys, axes.key_axis, w.key, "key"),
    )
    with expander:
        for column, chart, vectors, side in zip(st.columns(3), MAPS, o.vectors, sides, strict=True):
            with column:
                _vector_map(o, chart, vectors, *side)


def _vector_map(
    o: OpenWeight, chart: str, vectors: np.ndarray, name: str, labels: list[str], axis: str, marked: int, into: str
) -> None:
    run = o.run
    first = int(np.clip(marked - MOST_TOKENS // 2, 0, max(len(labels) - MOST_TOKENS, 0)))
    last = min(first + MOST_TOKENS, len(labels))
    title = say("{name} of every token", name=name)
    if last - first < len(labels):
        title = say(
            "{name} of every token, tokens {first} to {last} of {all}",
            name=name,
            first=first + 1,
            last=last,
            all=len(labels),
        )

    def place_of(click: Click) -> int | None:
        return first + click.index[0] if len(click.index) == 2 and first + click.index[0] < last else None

    drawing.chart(
        charts.signed_rows_spec(
            vectors[first:last],
            labels[first:last],
            title=title,
            row_axis=axis,
            column_axis=say("Dimension"),
            value_name=name,
            marked=[marked - first],
            height=int(np.clip(110 + 16 * (last - first), 260, 640)),
        ),
        key=run.key(chart),
        alt=say(
            "The vectors {name} of tokens {first} to {last}, {n} numbers each.",
            name=name,
            first=first + 1,
            last=last,
            n=vectors.shape[1],
        ),
        how_to_read=_how_to_read(o, name),
        on_click=taking(run.slot, chart, place_of, into=into),
    )


def _how_to_read(o: OpenWeight, name: str) -> str:
    config = o.run.checkpoint.config
    if name != "v" and one_weight_scores.is_changed(config, o.walk):
        return say(
            "One row is one token's {name} as it is multiplied, after its norm or its rotation by position; purple "
            "numbers are above 0, green ones below. Click a row to follow it.",
            name=name,
        )
    return formula(
        say(
            "One row is one token's {name} = {matrix} · x + b, x its vector; purple numbers are above 0, green "
            "ones below. Click a row to follow it.",
            name=name,
            matrix=f"W_{name.upper()}",
        ),
        bias=config.biases.attention,
    )
