"""All heads of one attention layer as lines between two columns of pieces, as BertViz's head view draws them.

The weights of every head are sent once; pointing at a piece, pinning it, hiding heads and moving the threshold
happen in the browser. Python hears only which piece was pinned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import streamlit as st

from charts.theme import HEAD_COLOURS, Colour
from ui.components.assets import ignore, loader, wrapped
from ui.components.packing import base64_of, packed

Side = Literal["query", "key"]

_MOUNT = st.components.v2.component("glassformer_flow_view", js=loader("flow_view"))


@dataclass(frozen=True)
class Pin:
    """The piece whose lines alone are drawn: a query (row) or a key (column), from 0."""

    side: Side
    index: int


@dataclass(frozen=True, eq=False)
class Flow:
    """One kind of attention in one layer.

    Attributes:
        sentence: Changes exactly when the pieces mean something else; then a pinned piece is let go.
        kind: Name of the attention, as a title.
        layer: Which layer, or which mean of layers, as a title.
        queries, keys: A label for each row and column.
        query_axis, key_axis: What the two columns of pieces are.
        query_side, key_side: Their colours.
        weights: Attention weights [head, query, key], 0 to 1.
        allowed: Bool [query, key]; True = may attend. Other cells are not sent.
        row_of_step: For each decoding step its row, or None; empty where rows are no steps. The browser marks the
            row of the step that is looked at.
    """

    sentence: str
    kind: str
    layer: str
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    query_axis: str
    key_axis: str
    query_side: Colour
    key_side: Colour
    weights: np.ndarray
    allowed: np.ndarray
    row_of_step: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        """Refuse parts that do not fit together."""
        shape = (len(self.queries), len(self.keys))
        if self.weights.ndim != 3 or self.weights.shape[1:] != shape:
            raise ValueError(f"Weights of shape {self.weights.shape} for {shape[0]} queries and {shape[1]} keys.")
        if self.allowed.shape != shape:
            raise ValueError(f"A mask of shape {self.allowed.shape} for {shape[0]} queries and {shape[1]} keys.")
        wrong = [row for row in self.row_of_step if row is not None and not 0 <= row < shape[0]]
        if wrong:
            raise ValueError(f"The row of a step is {wrong[0]}; there are {shape[0]}.")


def flow_view(
    flow: Flow,
    *,
    key: str,
    alt: str,
    caption: str,
    head: int | None = None,
    pin: Pin | None = None,
    on_pin: Callable[[], None] | None = None,
) -> None:
    """Draw the lines in place.

    What the reader chose (a pinned piece, hidden heads, the threshold) outlives a change of data.

    Args:
        flow: What to draw.
        key: Names this place on the page, and the files it is saved to.
        alt: The view in one or two sentences, for people who cannot see it.
        caption: How to read it.
        head: The head to show alone, from 0; None for all. Taken when it is news.
        pin: The piece to pin. Taken when it is news and the browser has not moved on meanwhile.
        on_pin: Called before the page runs again when the reader pinned a piece or let it go; `last_pin(key)`
            tells which. Without it Python is told nothing.
    """
    payload = {
        "sentence": flow.sentence,
        "kind": flow.kind,
        "layer": flow.layer,
        "queries": flow.queries,
        "keys": flow.keys,
        "query_axis": flow.query_axis,
        "key_axis": flow.key_axis,
        "query_side": flow.query_side,
        "key_side": flow.key_side,
        "row_of_step": flow.row_of_step,
        **encoded(flow.weights, flow.allowed),
        "colours": HEAD_COLOURS,
        "head": head,
        "pin": None if pin is None else {"side": pin.side, "index": pin.index},
        "reports": on_pin is not None,
        "heard": _report(key).get("stamp"),
        "name": key,
        "alt": alt,
        "caption": caption,
    }
    _MOUNT(key=key, data=wrapped(payload), on_pin_change=on_pin or ignore)


def last_pin(key: str, *, n_queries: int, n_keys: int) -> Pin | None:
    """Read what is pinned; for use inside an `on_pin` callback.

    Args:
        key: The key given to `flow_view`.
        n_queries, n_keys: How many pieces there are; a place outside is none.
    """
    report = _report(key)
    side, index = report.get("side"), report.get("index")
    if side not in ("query", "key") or isinstance(index, bool) or not isinstance(index, int):
        return None
    return Pin(side, index) if 0 <= index < (n_queries if side == "query" else n_keys) else None


def encoded(weights: np.ndarray, allowed: np.ndarray) -> dict[str, Any]:
    """Write the open cells of a layer as few bytes.

    Args:
        weights: Attention weights [head, query, key], 0 to 1.
        allowed: Bool [query, key]; True = may attend.

    Returns:
        `heads`: how many there are; `weights`: what `packed` makes of [head, open cell], the open cells row by row;
        `open`: base64 of a bit for each cell, highest bit first, or None if all are open.
    """
    return {
        "heads": len(weights),
        "weights": packed(weights[:, allowed]),
        "open": None if allowed.all() else base64_of(np.packbits(allowed)),
    }


def _report(key: str) -> dict[str, Any]:
    """What the browser last said; an empty dict for anything that is no report."""
    state = st.session_state.get(key)
    report = state.get("pin") if isinstance(state, dict) else None
    return report if isinstance(report, dict) else {}
