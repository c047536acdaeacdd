"""Flow component (Python side): all heads of one layer as lines, as in BertViz.

All weights are sent once; hovering, pinning, hiding heads and the threshold are handled in the browser. Python hears
what the URL keeps: the pinned piece, the visible heads, and whether the flow follows the step's row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from glassformer.charts.theme import HEAD_COLOURS, Colour
from glassformer.components.custom_component import Element, is_count, told
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


_VIEW = Element("flow_view")


def flow_view(
    flow: Flow,
    *,
    key: str,  # names this place on the page
    alt: str,  # the view in one or two sentences, for people who cannot see it
    caption: str,  # how to read it
    choice: Choice | None = None,  # taken when it is news and the browser has not moved on meanwhile
    # Called before the page runs again when the reader chose otherwise; `last_choice(key)` tells what. Without it
    # Python is told nothing.
    on_choice: Callable[[], None] | None = None,
    file: str = "",  # what its pictures are called, without their endings; its key if not given
    table: str = "",  # a CSS selector of the button that saves its weights; without it nothing does
) -> None:
    """Draw the lines in place. What the reader chose, such as heads or a threshold, outlives a change of data."""
    payload = flow_payload(flow, choice or Choice(), name=key, file=file or key, table=table, alt=alt, caption=caption)
    payload |= {"reports": on_choice is not None, "heard": _report(key).get("stamp")}
    _VIEW.draw(payload, key=key, hears={"pin": on_choice})


def last_choice(key: str, *, n_heads: int, n_queries: int, n_keys: int) -> Choice:
    """Read what is chosen, of so many heads and pieces; for use inside an `on_choice` callback."""
    report = _report(key)
    shown = report.get("shown")
    heads = tuple(head for head in range(n_heads) if isinstance(shown, list) and head in shown)
    if len(heads) == n_heads:
        heads = ()
    side, index = report.get("side"), report.get("index")
    pin = None
    if side in ("query", "key") and is_count(index) and index < (n_queries if side == "query" else n_keys):
        pin = Pin(side, index)
    return Choice(heads, pin, following=report.get("following") is True)


def _report(key: str) -> dict[str, Any]:
    """What the browser last said; an empty dict for anything that is not a report."""
    report = told(key, "pin")
    return report if isinstance(report, dict) else {}
