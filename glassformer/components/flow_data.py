"""Payload of the flow component: records of heads and tokens, packed weights, the user's pin and visible heads."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from glassformer.charts.theme import HEAD_COLOURS, Colour
from glassformer.components.packing import base64_of, packed

Side = Literal["query", "key"]


@dataclass(frozen=True)
class Pin:
    """The piece whose lines alone are drawn: a query (row) or a key (column), from 0."""

    side: Side
    index: int


@dataclass(frozen=True)
class Choice:
    """What the reader chose."""

    heads: tuple[int, ...] = ()  # the heads that are shown, from 0; none of them for all
    pin: Pin | None = None  # the pinned piece
    following: bool = False  # the row of the current step is pinned, at every step


@dataclass(frozen=True, eq=False)
class Flow:
    """One kind of attention in one layer."""

    sentence: str  # changes exactly when the pieces mean something else; then a pinned piece is let go
    kind: str  # name of the attention, as a title
    layer: str  # which layer, or which mean of layers, as a title
    queries: tuple[str, ...]  # A label for each row and column
    keys: tuple[str, ...]  # A label for each row and column
    query_axis: str  # what the two columns of pieces are
    key_axis: str  # what the two columns of pieces are
    query_side: Colour  # their colours
    key_side: Colour  # their colours
    weights: np.ndarray  # attention weights [head, query, key], 0 to 1
    allowed: np.ndarray  # Bool [query, key]; True = may attend. Other cells are not sent.
    # For each decoding step its row, or None; empty where rows are not steps. The browser marks the current one.
    row_of_step: tuple[int | None, ...] = ()
    together: bool = False  # the weights are one map, a mean of several heads
    group: int = 1  # how many adjacent heads share one key-value head
    # The first row and the first column of the output, if it follows a prompt.
    output: tuple[int | None, int | None] = (None, None)


def flow_payload(
    flow: Flow, choice: Choice, *, name: str, file: str, table: str, alt: str, caption: str
) -> dict[str, Any]:
    """What the component is given where it reports nothing; the rest is as for `flow_view`."""
    return {field: value for field, value in vars(flow).items() if field != "allowed"} | {
        **encoded(flow.weights, flow.allowed),
        "colours": HEAD_COLOURS,
        "group": 1 if flow.together else flow.group,
        "output": dict(zip(("query", "key"), flow.output, strict=True)),
        "shown": choice.heads,
        "following": choice.following,
        "pin": choice.pin and vars(choice.pin),
        "reports": False,
        "heard": None,
        "name": name,
        "file": file,
        "table": table,
        "alt": alt,
        "caption": caption,
    }


def encoded(weights: np.ndarray, allowed: np.ndarray) -> dict[str, Any]:
    """Write the open cells of attention weights [head, query, key] as few bytes.

    `heads`: how many there are; `weights`: what `packed` makes of [head, open cell], the open cells row by row;
    `open`: base64 of a bit for each cell, highest bit first, or None if all are open.
    """
    return {
        "heads": len(weights),
        "weights": packed(weights[:, allowed]),
        "open": None if allowed.all() else base64_of(np.packbits(allowed)),
    }
