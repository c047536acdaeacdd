"""How one weight came to be: q · k, √d_head, mask, softmax, · V and W_O, with the model's own numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, Literal

import numpy as np

import charts
from charts.heatmap import HOW_TO_READ as HOW_TO_READ_MAP
from charts.signed import frame
from transformer.analysis.one_weight import Walk, place, sites, strongest, walk
from transformer.model.anatomy import Kind, anatomy
from transformer.model.config import ModelConfig
from transformer.model.scores import Scoring
from transformer.runs.changing import tap_for
from ui.attention import one_weight_output, one_weight_scores, one_weight_stages, one_weight_text, one_weight_vectors
from ui.attention.one_weight_stages import OpenWeight
from ui.attention.opening import opening, why
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_maps import AnyRun, OpenMaps
from ui.runs.open_run import OpenRun
from ui.runs.sides import KIND_NAMES, Sides, sides
from ui.shared import choices, drawing
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state import session
from ui.state.click import cell_of
from words import joined, say, say_n

QUERY_CHOICE: Final = "walk_query"
KEY_CHOICE: Final = "walk_key"
MAP: Final = "walk_map"
CHOICES: Final = "walk_choices"

STAGES: Final = (
    (one_weight_stages.dot, one_weight_stages.products),
    (one_weight_stages.scores, one_weight_stages.mask),
    (one_weight_stages.softmax, one_weight_stages.table),
    (one_weight_output.values, one_weight_output.output),
    (one_weight_output.share, one_weight_output.lengths),
)
MOST_ON_MAP: Final = 128  # rows and columns of the map that cells are picked from
MAP_HEIGHT: Final = 300
DIGITS: Final = say(
    "Below, numbers that go into a line have up to {most} digits. A result has the digits, at most {fewer}, that a "
    "calculator gets from these numbers too. Downloads have the exact numbers.",
    most=one_weight_text.INPUT_DIGITS,
    fewer=one_weight_text.RESULT_DIGITS,
)
NEEDS_A_MODEL: Final = say(
    "How a weight came to be is computed from a model's queries, keys and values, and these are maps alone. Look at "
    "the other parts, or choose a checkpoint in the sidebar."
)
_PADDING = say("closed: padding")
READY: Final = say("Here q and k are as they are multiplied: after their norm or their rotation by position.")


def draw(run: AnyRun) -> None:
    """Draw the part "One weight" of the Attention page."""
    if isinstance(run, OpenMaps):
        st.info(NEEDS_A_MODEL, icon=":material/info:")
        return
    opened = _open(run)
    if opened is None:
        return
    if run.trace.query.interventions and one_weight_scores.is_apart(opened.walk):
        st.warning(one_weight_scores.changed(opened.walk), icon=":material/science:")
    _choices(opened)
    for stages in STAGES:  # two side by side where there is room
        drawing.beside(*(partial(stage, opened) for stage in stages))
    st.caption(DIGITS)
    st.caption(one_weight_text.differences(opened.walk))
    one_weight_vectors.draw(opened)


def _open(run: OpenRun) -> OpenWeight | None:
    """Compute the walk of what is looked at; if that cannot be done a sentence says why."""
    kind, shown = run.view.kind, opening(run.looking)
    layer, head = shown.layer, shown.head
    axes = sides(run.looking, kind)

    def compute() -> tuple[dict[str, np.ndarray], Walk]:
        recorded = loading.replay(run.checkpoint, run.trace, sites(kind, layer, config=run.checkpoint.config))
        return recorded, walk(
            recorded,
            run.checkpoint.model,
            kind=kind,
            layer=layer,
            head=head,
            query=_query(run, axes, shown.query),
            key=_inside(run.view.key, axes.keys),
            n_keys=len(axes.keys),
            how=_scoring(run, kind, layer),
        )

    done = attempt(compute)
    if done is None:
        return None
    recorded, found = done
    later = _later(run.checkpoint.config, kind)
    window = run.checkpoint.config.window(layer) if later else 0
    reasons = [_reason(later, window, column, found) for column in range(len(axes.keys))]
    queries = recorded[f"{place(kind, layer)}.queries"][head, : len(axes.queries)]  # [token, d_head]
    return OpenWeight(run, found, axes, reasons, (queries, found.keys, found.values), shown.query)


def _scoring(run: OpenRun, kind: Kind, layer: int) -> Scoring:
    """What is done to q · k: what the model does, and what was changed in this run."""
    tap = tap_for(run.trace.query.interventions, run.checkpoint).child(place(kind, layer))
    return tap.setting("scoring", run.checkpoint.model.attentions(kind)[layer].scoring)


def _query(run: OpenRun, axes: Sides, worth_seeing: int | None) -> int:
    """The row that was chosen, else the page's own choice, else that of the current step, else the first."""
    for row in (_inside(run.view.query, axes.queries), worth_seeing, axes.current):
        if row is not None:
            return row
    return 0


def _inside(wanted: int | None, labels: list[str]) -> int | None:
    return wanted if wanted is not None and wanted < len(labels) else None


def _later(config: ModelConfig, kind: Kind) -> str:
    """Why a mask closes what stands after the query; "" if it does not."""
    parts = anatomy(config)
    if not parts.attention(kind).causal:
        return ""
    return say("closed: comes later in the output") if parts.reads else say("closed: comes later in the text")


def _reason(later: str, window: int, column: int, found: Walk) -> str:
    if found.allowed[column]:
        return ""
    if window and column <= found.query - window:
        return say("closed: before the window of {n} keys", n=window)
    return later if later and column > found.query else _PADDING


# ---------------------------------------------------------------- choosing a cell


def _choices(o: OpenWeight) -> None:
    """Draw what is looked at: two menus, the weight in a sentence, and the head's map to pick from."""
    with st.container(key=o.run.key(CHOICES)):  # on a telephone the map comes first
        left, right = st.columns(2, gap="large")
    with left:
        _menu(o, QUERY_CHOICE, "query", o.axes.current if o.own_row is None else o.own_row)
        _menu(o, KEY_CHOICE, "key", strongest(o.walk.weights, o.walk.allowed))
        st.markdown(_summary(o))
        if o.own_row is not None:
            st.caption(why(o.run.looking))
    with right:
        _map(o)


def _menu(o: OpenWeight, widget: str, name: Literal["query", "key"], follows: int | None) -> None:
    """Draw a menu of pieces whose first entry follows the step or the weights, if there is something to follow."""
    query = name == "query"
    pieces: dict[int | None, str] = dict(choices.labelled(o.axes.queries if query else o.axes.keys).items())
    if follows is not None:
        piece = pieces[follows]
        following = say("The strongest ({piece})", piece=piece)
        if query:
            following = say("The current step ({piece})", piece=piece)
        if query and o.own_row is not None:
            following = say("Worth a first look ({piece})", piece=piece)
        pieces = {None: following, **pieces}
    kept = choices.field(o.run.slot, name, key=widget)
    choices.menu(kept, o.axes.query_axis if query else o.axes.key_axis, pieces)


def _summary(o: OpenWeight) -> str:
    w, reason = o.walk, o.reasons[o.walk.key]
    key, query = drawing.plain(o.key), drawing.plain(o.query)
    weight = one_weight_text.number(w.weights[w.key], 4)
    nothing = say(
        "In layer {layer}, head {head}, the key **{key}** gets nothing ({reason}) from the query **{query}**.",
        layer=w.layer + 1,
        head=w.head + 1,
        key=key,
        reason=reason,
        query=query,
    )
    something = say(
        "In layer {layer}, head {head}, the key **{key}** gets a weight of **{weight}** from the query **{query}**.",
        layer=w.layer + 1,
        head=w.head + 1,
        key=key,
        weight=weight,
        query=query,
    )
    return joined(" ", [something if not reason or w.weights[w.key] else nothing,
                        *_whose(o.run.checkpoint.config, w)])  # fmt: skip


def _whose(config: ModelConfig, w: Walk) -> Sequence[str]:
    """Whose vectors q, k and v are, and with how many heads this one shares k and v."""
    parts = anatomy(config)
    attention = parts.attention(w.kind)
    if attention.keys_from != attention.stack:
        said = [say("q comes from the output so far, k and v from the encoder's last vectors (the memory).")]
    elif attention.stack == "encoder":
        said = [say("q, k and v all come from the source.")]
    elif parts.reads:
        said = [say("q, k and v all come from the output so far.")]
    else:
        said = [say("q, k and v all come from the prompt and the output so far.")]
    if one_weight_scores.is_changed(config, w):
        said.append(READY)
    size = config.n_heads // config.n_kv_heads  # only stacks that have the same heads share keys
    if size == 1:
        return said
    group = w.head // size
    shared = say_n(
        "All {n_heads} heads share one head of keys and values, so that k and v are the same for each of them.",
        "The {n_heads} heads share {n} heads of keys and values: k and v are those of number {group}, which heads "
        "{first} to {last} use.",
        config.n_kv_heads,
        n_heads=config.n_heads,
        group=group + 1,
        first=group * size + 1,
        last=(group + 1) * size,
    )
    return [*said, shared]


def _why_closed(o: OpenWeight) -> str:
    """Why cells of the map are closed."""
    later = _later(o.run.checkpoint.config, o.walk.kind)
    if later and o.run.checkpoint.config.window(o.walk.layer):
        return say("closed: comes later, or before the window")
    return later or _PADDING


def _map(o: OpenWeight) -> None:
    w, n_rows, n_columns = o.walk, len(o.axes.queries), len(o.axes.keys)
    if max(n_rows, n_columns) > MOST_ON_MAP:
        st.caption(
            say(
                "The map has {rows} × {columns} cells, too many to pick one from here: use the menus.",
                rows=n_rows,
                columns=n_columns,
            )
        )
        return
    allowed = o.run.trace.mask(w.kind, w.layer)[:n_rows, :n_columns]
    figure = charts.heatmap_spec(
        o.run.looking.heads(w.kind, w.layer)[w.head, :n_rows, :n_columns],
        queries=o.axes.queries,
        keys=o.axes.keys,
        title=say("Weights of layer {layer}, head {head}: click a cell", layer=w.layer + 1, head=w.head + 1),
        allowed=allowed,
        mask_reason=_why_closed(o),
        marked_row=w.query,
        colour=o.axes.key_side,
    )
    figure["layout"]["height"] = MAP_HEIGHT
    figure["layout"]["shapes"].append(frame(w.key - 0.5, w.key + 0.5, w.query - 0.5, w.query + 0.5))

    slot, chart = o.run.slot, o.run.key(MAP)
    current = o.axes.current if o.own_row is None else None  # the row that is followed if none is chosen

    def take(cell: tuple[int, int]) -> None:
        session.replace(slot, query=None if cell[0] == current else cell[0], key=cell[1])

    drawing.chart(
        figure,
        key=chart,
        alt=say(
            "{attention}, layer {layer}, head {head}: weights of all queries over all keys.",
            attention=KIND_NAMES[w.kind],
            layer=w.layer + 1,
            head=w.head + 1,
        ),
        how_to_read=HOW_TO_READ_MAP,
        fit=True,
        on_click=on_click(chart, cell_of, take),
    )
