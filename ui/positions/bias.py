"""The parts of the Positions page for ALiBi and relative positions: what distance adds to scores."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import charts
from charts.by_distance import HOW_TO_READ_BIAS_CURVES, HOW_TO_READ_BIAS_MAP, HOW_TO_READ_SPREADS, Curve
from transformer.analysis.distance_bias import DistanceBias, Spreads, distance_bias, spreads
from transformer.model.anatomy import anatomy
from ui.frame.sentence import Still, sentence
from ui.positions.in_attention import Shown
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state import session
from ui.state.click import cell_of, place_of
from ui.state.view import Slot
from words import joined, say

CURVES = "bias_curves"
MAP = "bias_map"
SPREADS = "bias_spreads"
HEAD = "bias_head"
LAYER = "bias_layer"


def draw(shown: Shown, run: OpenRun | None) -> None:
    """Draw the chosen part."""
    if shown.panel == "sentence":
        if run is not None:
            _sentence(shown, run)
        return
    found = distance_bias(shown.checkpoint.model, shown.stack, most=shown.count - 1)
    head = min(shown.view.head or 0, len(found.bias) - 1)
    drawing.beside(lambda: _curves(shown, found, head), lambda: _map(shown, found, head))
    st.markdown(drawing.plain(joined(" ", _about(shown, found, head))))


def _take_head(slot: Slot, n_heads: int, head: int) -> None:
    """Callback: a head is looked at; one of all layers together is nothing, so a layer is, too."""
    if head < n_heads:
        layer = session.view(slot).layer
        session.replace(slot, head=head, layer=0 if layer is None else layer)


def _curves(shown: Shown, found: DistanceBias, head: int) -> None:
    curves = [
        Curve(say("head {number}", number=one + 1), values, strong=one == head, place=one)
        for one, values in enumerate(found.bias)
    ]
    key = shown.key(CURVES)
    figure = charts.distance_curves_spec(
        found.distances,
        curves,
        title=say("Head {head}: bias by distance", head=head + 1),
        value_name=say("added to the score"),
        edges=found.edges(),
        note=say("thin lines: where one learned bucket ends and the next begins") if found.edges() else "",
    )
    drawing.chart(
        figure,
        key=key,
        alt=say("What each head adds to a score by the distance between query and key, one line a head."),
        how_to_read=HOW_TO_READ_BIAS_CURVES,
        fit=True,
        of_sentence=False,
        on_click=on_click(key, place_of, partial(_take_head, shown.slot, len(found.bias))),
    )


def _map(shown: Shown, found: DistanceBias, head: int) -> None:
    key, slot, n_heads = shown.key(MAP), shown.slot, len(found.bias)
    figure = charts.distance_map_spec(
        found.bias,
        found.distances,
        title=say("Bias of all heads: {whose}", whose=shown.whose),
        buckets=found.buckets,
        head=head,
    )
    drawing.chart(
        figure,
        key=key,
        alt=say("What each head adds to a score, one row a head, one column a distance."),
        how_to_read=HOW_TO_READ_BIAS_MAP,
        fit=True,
        of_sentence=False,
        on_click=on_click(key, cell_of, lambda cell: _take_head(slot, n_heads, cell[0])),
    )


def _about(shown: Shown, found: DistanceBias, head: int) -> Iterator[str]:
    if anatomy(shown.config).stack(shown.stack).n_layers > 1:
        yield say("All layers of the stack have the same bias.")
    if found.slopes is not None:
        slope = found.slopes[head]
        yield say(
            "Head {head} takes {slope:.4g} from the score with every token of distance: {tokens:.3g} tokens further "
            "away a key has e = 2.7 times less weight. These slopes are given, not learned.",
            head=head + 1,
            slope=slope,
            tokens=1 / slope,
        )
        return
    values, n_buckets = found.bias[head], len(found.edges()) + 1
    best = int(values.argmax())
    yield say(
        "Head {head} has learned one number for each of {n} buckets here; it is largest at distance {distance} "
        "({value:.3f}) and smallest at {least}.",
        head=head + 1,
        n=n_buckets,
        distance=int(found.distances[best]),
        value=values[best],
        least=int(found.distances[int(values.argmin())]),
    )


# ------------------------------------------------------------------------------------------------ the sentence


def _sentence(shown: Shown, run: OpenRun) -> None:
    sentence(run, compact=True, still=Still() if shown.stack == "encoder" else None)
    n_layers = run.trace.maps(shown.kind).shape[0]
    kept = choices.Kept(shown.key(LAYER), min(shown.view.layer or 0, n_layers - 1), partial(_take_layer, shown.slot))
    layer = choices.menu_of_layers(kept, n_layers, all_together=False) or 0
    found = attempt(lambda: _spreads(shown, run))
    if found is None:
        return
    head, key, n_heads = shown.view.head, shown.key(SPREADS), found.bias.shape[1]
    figure = charts.spreads_spec(
        found.content[layer],
        found.bias[layer],
        head=head,
        title=say("Layer {layer}: what keys differ by", layer=layer + 1),
    )
    drawing.chart(
        figure,
        key=key,
        alt=say("For each head of layer {layer} how far scores differ by content and by distance.", layer=layer + 1),
        how_to_read=HOW_TO_READ_SPREADS,
        fit=True,
        on_click=on_click(key, place_of, partial(_take_head, shown.slot, n_heads)),
    )
    more = int((found.bias[layer] > found.content[layer]).sum())
    st.markdown(
        drawing.plain(
            say(
                "Nothing is added to the embeddings, so there is no sum of piece and position to look at. In the "
                "scores of layer {layer} distance says more than content in {more} of {n} heads, for this sentence.",
                layer=layer + 1,
                more=more,
                n=n_heads,
            )
        )
    )


def _take_layer(slot: Slot, layer: int) -> None:
    session.replace(slot, layer=layer)


def _spreads(shown: Shown, run: OpenRun) -> Spreads:
    """How far scores differ, in each layer and head, over the rows that may be seen.

    Raises:
        QueryError: What the run read is not finite.
        BusyError: The model has too much to do.
    """
    trace, stack = run.trace, shown.stack
    n = len(trace.src_pieces) if stack == "encoder" else run.looking.n_rows
    n_layers = trace.maps(shown.kind).shape[0]
    names = [f"{stack}.{layer}.self_attn.{name}" for layer in range(n_layers) for name in ("scores", "bias")]
    recorded = loading.replay(run.checkpoint, trace, names)
    scores, bias = (np.stack([recorded[name] for name in names[first::2]])[..., :n, :n] for first in (0, 1))
    masks = np.stack([trace.mask(shown.kind, layer)[:n, :n] for layer in range(n_layers)])
    cap = shown.config.score_cap
    if cap is not None:
        scores = cap * np.arctanh(np.clip(scores / cap, -1 + 1e-6, 1 - 1e-6))
    return spreads(scores, bias, masks)
