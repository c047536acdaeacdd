"""A query and a key of the typed sentence, and what they would score if they stood elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import charts
from charts.by_distance import HOW_TO_READ_SCORES, Curve
from transformer.analysis.rotations import Turning, product_by_distance, turnings
from ui.frame.sentence import Still, sentence
from ui.positions.in_attention import Shown
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.runs.sides import Sides, sides
from ui.shared import choices, drawing
from ui.shared.door import st
from ui.state import session
from words import joined, say

SCORES = "rotary_scores"
LAYER = "rotary_layer"
HEAD = "rotary_head"
QUERY = "rotary_query"
KEY = "rotary_key"


def draw(shown: Shown, run: OpenRun) -> None:
    """Draw the choice of a head, a query and a key, and the curve of their score."""
    sentence(run, compact=True, still=Still() if shown.stack == "encoder" else None)
    axes, view = sides(run.looking, shown.kind), shown.view
    own = _own_layer(shown)
    with st.container(horizontal=True, gap="small"):
        n_layers, n_heads = run.trace.maps(shown.kind).shape[:2]
        layer = choices.menu_of_layers(_kept(shown, LAYER, "layer", own), n_layers, all_together=False) or 0
        head = choices.menu_of_heads(_kept(shown, HEAD, "head", view.head or 0), n_heads, all_together=False) or 0
        own_row = len(axes.queries) - 1 if axes.current is None else axes.current
        query = _token(shown, QUERY, "query", axes.queries, own_row)
        keys = axes.keys[: query + 1] if shown.causal else axes.keys
        key = _token(shown, KEY, "key", keys, max(query - 1, 0))
    turning = next(one for one in turnings(shown.config, shown.stack) if layer in one.layers)
    found = attempt(lambda: _score(shown, run, turning, (layer, head, query, key)))
    if found is not None:
        _curve(shown, turning, axes, found, (layer, head, query, key))


def _own_layer(shown: Shown) -> int:
    """The layer that is looked at; without a choice the first in which something turns."""
    turning = shown.turning
    if shown.view.layer is not None and turning is not None and shown.view.layer in turning.layers:
        return shown.view.layer
    return turning.layers[0] if turning is not None else 0


def _kept(shown: Shown, widget: str, field: str, value: int) -> choices.Kept:
    return replace(choices.field(shown.slot, field, key=widget), value=value)


def _token(shown: Shown, widget: str, field: str, labels: list[str], own: int) -> int:
    asked = getattr(session.view(shown.slot), field)
    value = asked if asked is not None and asked < len(labels) else own
    label = say("Query") if field == "query" else say("Key")
    kept = replace(choices.field(shown.slot, field, key=widget), value=value)
    return choices.menu(kept, label, choices.labelled(labels), bare=True, width=220)


def _score(
    shown: Shown, run: OpenRun, turning: Turning, place: tuple[int, int, int, int]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Distances, what the two would score at each, and their own score before any cap.

    Raises:
        QueryError: What the run read is not finite.
        BusyError: The model has too much to do.
    """
    layer, head, query, key = place
    config, site = shown.config.of(shown.stack), f"{shown.stack}.{layer}.self_attn"
    names = [f"{site}.{name}" for name in ("queries", "keys")]
    recorded = loading.replay(run.checkpoint, run.trace, names)
    q = recorded[names[0]][head, query]
    k = recorded[names[1]][head // (config.n_heads // config.n_kv_heads), key]  # heads may share keys
    scale = 1 / np.sqrt(config.d_head) if config.score_scale is None else config.score_scale
    most = max(min(shown.count, config.max_len) - 1, abs(key - query))
    distances = np.arange(-most, 1 if shown.causal else most + 1)
    scores = scale * product_by_distance(q, k, turning.speeds, distances - (key - query))
    return distances, scores, float(scale * (np.asarray(q, np.float64) @ np.asarray(k, np.float64)))


def _curve(
    shown: Shown,
    turning: Turning,
    axes: Sides,
    found: tuple[np.ndarray, np.ndarray, float],
    place: tuple[int, int, int, int],
) -> None:
    layer, head, query, key = place
    distances, scores, own = found
    figure = charts.distance_curves_spec(
        distances,
        [Curve(say("the same query and key"), scores)],
        title=say("Layer {layer}, head {head}: score by distance", layer=layer + 1, head=head + 1),
        value_name=say("score"),
        marked=key - query,
    )
    drawing.chart(
        figure,
        key=shown.key(SCORES),
        alt=say("What the query {query} and the key {key} would score at each distance.", query=axes.queries[query],
                key=axes.keys[key]),
        how_to_read=HOW_TO_READ_SCORES,
        fit=True,
    )  # fmt: skip
    st.markdown(drawing.plain(joined(" ", [_said(turning, distances, scores, own), *_capped(shown, own)])))


def _said(turning: Turning, distances: np.ndarray, scores: np.ndarray, own: float) -> str:
    if not turning.n_pairs:
        return say(
            "In this layer nothing turns: the score is {own:.3f} wherever the two stand, and positions have no part "
            "in it.",
            own=own,
        )
    best, worst = int(scores.argmax()), int(scores.argmin())
    return say(
        "Where they stand their score is {own:.3f}. The same two vectors would score from {least:.3f} (distance "
        "{worst}) to {most:.3f} (distance {best}): so much of the score is position, and the rest is what the pieces "
        "are.",
        own=own,
        least=scores[worst],
        worst=int(distances[worst]),
        most=scores[best],
        best=int(distances[best]),
    )


def _capped(shown: Shown, own: float) -> list[str]:
    cap = shown.config.score_cap
    if cap is None:
        return []
    return [
        say("The soft cap then makes {own:.3f} of it, and no score passes ±{cap:g}.", own=cap * np.tanh(own / cap),
            cap=cap)
    ]  # fmt: skip
