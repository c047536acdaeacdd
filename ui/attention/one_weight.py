"""How one weight came to be: q · k, √d_head, mask, softmax, · V and W_O, with the model's own numbers."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
import streamlit as st

import charts
from charts.heatmap import HOW_TO_READ as HOW_TO_READ_MAP
from charts.signed import frame
from transformer.analysis.one_weight import Walk, place, sites, strongest, walk
from transformer.runs.trace import Kind
from ui.attention import one_weight_stages, one_weight_text, one_weight_vectors
from ui.attention.one_weight_stages import OpenWeight
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.runs.sides import KIND_NAMES, Sides, sides
from ui.shared import choices, drawing
from ui.shared.clicks import cell_of, on_click
from ui.state import session

QUERY_CHOICE: Final = "walk_query"
KEY_CHOICE: Final = "walk_key"
TAKE_HEAD: Final = "walk_take_head"
MAP: Final = "walk_map"

MOST_ON_MAP: Final = 128  # rows and columns of the map that cells are picked from
MAP_HEIGHT: Final = 300
DIGITS: Final = (
    f"Below, numbers that go into a line have up to {one_weight_text.INPUT_DIGITS} digits. A result has the digits, "
    f"at most {one_weight_text.RESULT_DIGITS}, that a calculator gets from these numbers too. Downloads have the "
    "exact numbers."
)
_FUTURE, _PADDING = "closed: comes later in the output", "closed: padding"


def draw(run: OpenRun) -> None:
    """Draw the part "One weight" of the Attention page."""
    if run.view.layer is None or run.view.head is None:
        _ask_for_head(run)
        return
    opened = _open(run, run.view.layer, run.view.head)
    if opened is None:
        return
    _choices(opened)
    one_weight_stages.draw(opened)
    one_weight_vectors.draw(opened)


def _ask_for_head(run: OpenRun) -> None:
    slot, layer = run.slot, run.view.layer or 0

    st.info(
        "A mean of several heads has no q and k of its own: choose one layer and one head above.",
        icon=":material/account_tree:",
    )
    st.button(
        f"Take layer {layer + 1}, head 1",
        key=run.key(TAKE_HEAD),
        on_click=lambda: session.replace(slot, layer=layer, head=0),
        type="primary",
    )


def _open(run: OpenRun, layer: int, head: int) -> OpenWeight | None:
    """Compute the walk of what is looked at; if that cannot be done a sentence says why."""
    kind = run.view.kind
    axes = sides(run.looking, kind)

    def compute() -> tuple[dict[str, np.ndarray], Walk]:
        recorded = loading.replay(run.checkpoint, run.trace, sites(kind, layer))
        return recorded, walk(
            recorded,
            run.checkpoint.model,
            kind=kind,
            layer=layer,
            head=head,
            query=_query(run, axes),
            key=_inside(run.view.key, axes.keys),
            n_keys=len(axes.keys),
        )

    done = attempt(compute)
    if done is None:
        return None
    recorded, found = done
    reasons = [_reason(kind, column, found) for column in range(len(axes.keys))]
    site = place(kind, layer)
    q, k, v = (recorded[f"{site}.{name}"][head] for name in ("queries", "keys", "values"))  # [token, d_head]
    n_rows, n_keys = len(axes.queries), len(axes.keys)
    return OpenWeight(run, found, axes, reasons, (q[:n_rows], k[:n_keys], v[:n_keys]))


def _query(run: OpenRun, axes: Sides) -> int:
    """The row that was chosen, else that of the current step, else the first."""
    chosen = _inside(run.view.query, axes.queries)
    return (axes.current or 0) if chosen is None else chosen


def _inside(wanted: int | None, labels: list[str]) -> int | None:
    return wanted if wanted is not None and wanted < len(labels) else None


def _reason(kind: Kind, column: int, found: Walk) -> str:
    if found.allowed[column]:
        return ""
    return _FUTURE if kind == "decoder" and column > found.query else _PADDING


# ---------------------------------------------------------------- choosing a cell


def _choices(o: OpenWeight) -> None:
    """Draw what is looked at: two menus, the weight in a sentence, and the head's map to pick from."""
    left, right = st.columns(2, gap="large")
    with left:
        _menu(o, QUERY_CHOICE, "query", o.axes.current, "The current step")
        _menu(o, KEY_CHOICE, "key", strongest(o.walk.weights, o.walk.allowed), "The strongest")
        st.markdown(_summary(o))
        st.caption(DIGITS)
    with right:
        _map(o)


def _menu(o: OpenWeight, widget: str, name: Literal["query", "key"], follows: int | None, follow_name: str) -> None:
    """Draw a menu of pieces whose first entry follows the step or the weights, if there is something to follow."""
    query = name == "query"
    pieces: dict[int | None, str] = dict(choices.labelled(o.axes.queries if query else o.axes.keys).items())
    if follows is not None:
        pieces = {None: f"{follow_name} ({pieces[follows]})", **pieces}
    kept = choices.field(o.run.slot, name, key=widget)
    choices.menu(kept, o.axes.query_axis if query else o.axes.key_axis, pieces)


def _summary(o: OpenWeight) -> str:
    w = o.walk
    reason = o.reasons[w.key]
    value = (
        f"gets nothing ({reason})"
        if reason
        else f"gets a weight of **{one_weight_text.number(w.weights[w.key], 4)}**"
    )
    source = {
        "encoder": "q, k and v all come from the source.",
        "decoder": "q, k and v all come from the output so far.",
        "cross": "q comes from the output so far, k and v from the encoder's last vectors (the memory).",
    }[w.kind]
    return (
        f"In layer {w.layer + 1}, head {w.head + 1}, the key **{drawing.plain(o.key)}** {value} from the query "
        f"**{drawing.plain(o.query)}**. {source}"
    )


def _map(o: OpenWeight) -> None:
    w, n_rows, n_columns = o.walk, len(o.axes.queries), len(o.axes.keys)
    if max(n_rows, n_columns) > MOST_ON_MAP:
        st.caption(f"The map has {n_rows} × {n_columns} cells, too many to pick one from here: use the menus.")
        return
    allowed = o.run.trace.mask(w.kind)[:n_rows, :n_columns]
    figure = charts.heatmap_spec(
        o.run.trace.maps(w.kind)[w.layer, w.head, :n_rows, :n_columns],
        queries=o.axes.queries,
        keys=o.axes.keys,
        title="Click a cell to follow it",
        query_axis="Query",
        key_axis="Key",
        allowed=allowed,
        mask_reason=_FUTURE if w.kind == "decoder" else _PADDING,
        marked_row=w.query,
        colour=o.axes.key_side,
    )
    figure["layout"]["height"] = MAP_HEIGHT
    figure["layout"]["shapes"].append(frame(w.key - 0.5, w.key + 0.5, w.query - 0.5, w.query + 0.5))

    slot, chart, current = o.run.slot, o.run.key(MAP), o.axes.current

    def take(cell: tuple[int, int]) -> None:
        session.replace(slot, query=None if cell[0] == current else cell[0], key=cell[1])

    drawing.chart(
        figure,
        key=chart,
        alt=f"{KIND_NAMES[w.kind]}, layer {w.layer + 1}, head {w.head + 1}: weights of all queries over all keys.",
        how_to_read=HOW_TO_READ_MAP,
        on_click=on_click(chart, cell_of, take),
    )
