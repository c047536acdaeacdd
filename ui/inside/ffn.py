"""The feed-forward sub-layers: how many neurons are silent, which are active, and what drives one of them.

What a neuron is for, nobody says here: only what it did in this sentence, and what it writes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import charts
from charts.neuron_bars import HOW_TO_READ_ACTIVE, HOW_TO_READ_ACTIVE_GATED
from charts.neurons import (
    HOW_TO_READ_HISTOGRAM,
    HOW_TO_READ_HISTOGRAM_GATED,
    HOW_TO_READ_MAP,
    HOW_TO_READ_SHARES,
    HOW_TO_READ_SHARES_GATED,
    HOW_TO_READ_TOKENS,
)
from transformer.analysis import neurons
from ui.inside import ffn_controls, looked_at, tokens
from ui.inside import neuron as neuron_panels
from ui.inside.ffn_controls import OpenLayer
from ui.runs import figures, loading
from ui.runs.attempt import attempt
from ui.runs.figures import MOST_MAPPED
from ui.runs.open_run import OpenRun
from ui.runs.sides import STACK_NAMES, STACKS
from ui.shared import choices, drawing
from ui.shared.clicks import on_click
from ui.shared.dialect import formula
from ui.shared.door import st
from ui.state import session
from ui.state.click import cell_of, place_of
from ui.state.view import Side
from words import joined, say

SHARES: Final = "ffn_shares"
HISTOGRAM: Final = "ffn_histogram"
ACTIVE: Final = "ffn_active"
TOKENS: Final = "ffn_tokens"
MAP: Final = "ffn_map"

MOST_LISTED: Final = 12
POINTS: Final = 240


def draw(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    with row:
        side = tokens.choose_side(run, choices.field(run.slot, "side", forgets=ffn_controls.FORGETS))
        layer = ffn_controls.choose_layer(run, side)
        pieces = looked_at.pieces_of(run, side)
        token = tokens.choose(run, side, pieces, key=ffn_controls.TOKEN, width=180)
        ffn_controls.choose_neuron(run, STACKS[side])
    o = attempt(lambda: _opened(run, side, layer, pieces, token))
    if o is None:
        return
    drawing.beside(lambda: _shares(o), lambda: _histogram(o))
    st.markdown(drawing.plain(what_it_does(o)))
    drawing.beside(lambda: _active(o), lambda: _tokens(o))
    neuron_panels.draw(o)
    _map(o)


def _opened(run: OpenRun, side: Side, layer: int, pieces: list[str], token: int) -> OpenLayer:
    checkpoint, trace, stack = run.checkpoint, run.trace, STACKS[side]
    sites = [neurons.site(stack, layer, name) for name in ("pre_activation", "activation", "output")]
    sites += neurons.effect_sites(checkpoint.config, layer) if looked_at.writes(run, stack) else []
    recorded = loading.replay(checkpoint, trace, sites)
    shares = figures.silent_shares(checkpoint, trace, stack)
    n = len(pieces)
    before, after = recorded[sites[0]][:n], recorded[sites[1]][:n]
    asked = run.view.neuron
    d_ff = checkpoint.config.of(stack).d_ff
    if asked is not None and asked >= d_ff:
        drawing.notes([say("Neuron {neuron} was asked for; this layer has {n:,}.", neuron=asked + 1, n=d_ff)])
        asked = None
    neuron = int(neurons.most_active(after[token], 1)[0]) if asked is None else asked
    written = np.linalg.norm(neurons.columns(checkpoint.model, stack, layer), axis=0)
    return OpenLayer(run, side, layer, pieces, token, neuron, before, after, written, shares[:, :n], recorded)


# ------------------------------------------------------------------------------------------------ the layer


def what_it_does(o: OpenLayer) -> str:
    """The widths of the sub-layer and how many of its neurons are silent."""
    config = o.run.checkpoint.config.of(o.stack)
    whole, here = float(o.shares[o.layer].mean()), float(o.shares[o.layer, o.token])
    said = [
        say(
            "Layer {layer} of the {stack} widens each token's {d_model:,} numbers to {d_ff:,} neurons (d_ff = "
            "{ratio:g} × d_model), applies {function} and narrows them again, each token by itself.",
            layer=o.layer + 1, stack=STACK_NAMES[o.stack], d_model=config.d_model, d_ff=config.d_ff,
            ratio=config.d_ff / config.d_model, function=o.function,
        )
    ]  # fmt: skip
    if o.gated:
        said += [say("A gate decides how much passes: an activation is {function} of the gate's number, times that "
                     "of a second map.", function=o.function)]  # fmt: skip
    if o.kind == "relu":
        said += [say("Over these tokens {whole:.1%} of the activations are exactly 0, at {token} {here:.1%}.",
                     whole=whole, here=here, token=o.whose)]  # fmt: skip
    else:
        said += [
            say("Over these tokens {whole:.1%} of the activations are nearer to 0 than {near:g}, at {token} "
                "{here:.1%}.", whole=whole, here=here, token=o.whose, near=neurons.NEAR_ZERO),
            say("{function} is hardly ever exactly 0, so this is counted instead.", function=o.function),
        ]  # fmt: skip
    return joined(" ", said)


def _shares(o: OpenLayer) -> None:
    side, n_tokens = o.side, len(o.pieces)
    slot, key, take_token = o.run.slot, o.run.key(SHARES), tokens.taking(o.run, o.side)
    stack = STACK_NAMES[o.stack]

    def take(cell: tuple[int, int]) -> None:
        if cell[1] < n_tokens:
            ffn_controls.take_layer(slot, cell[0])
            take_token(cell[1])

    exact = o.kind == "relu"
    figure = figures.silent_map(
        o.shares, o.pieces, marked=(o.layer, o.token), exact=exact, stack=o.stack, side=side,
    )  # fmt: skip
    alt = say("The {share} among the activations of each layer of the {stack} at each of {n} tokens.",
              share=figures.share_name(exact=exact), stack=stack, n=n_tokens)  # fmt: skip
    how_to_read = HOW_TO_READ_SHARES_GATED if o.gated else HOW_TO_READ_SHARES
    drawing.chart(figure, key=key, alt=alt, how_to_read=how_to_read, on_click=on_click(key, cell_of, take))


def _histogram(o: OpenLayer) -> None:
    found = neurons.histogram(o.before, o.token)
    x = np.union1d(np.linspace(found.edges[0], found.edges[-1], POINTS), [-1e-6, 0.0, 1e-6])  # a ReLU's slope jumps
    values, slopes = neurons.curve(o.kind, x)
    figure = charts.pre_activations_spec(
        found.edges, found.everywhere, found.here, x=x, values=values, slopes=slopes, function=o.function,
        piece=o.whose, colour=o.side,
        title=say("Pre-activations of layer {layer}, under {function}", layer=o.layer + 1, function=o.function),
    )  # fmt: skip
    alt = say("How the pre-activations of layer {layer} of the {stack} are spread, with {function}.",
              layer=o.layer + 1, stack=STACK_NAMES[o.stack], function=o.function)  # fmt: skip
    drawing.chart(
        figure,
        key=o.run.key(HISTOGRAM),
        alt=alt,
        how_to_read=formula(HOW_TO_READ_HISTOGRAM_GATED if o.gated else HOW_TO_READ_HISTOGRAM, bias=o.bias),
        fit=True,
    )


# ------------------------------------------------------------------------------------------------ its neurons


def _active(o: OpenLayer) -> None:
    listed = neurons.most_active(o.after[o.token], MOST_LISTED)
    activation = o.after[o.token, listed]
    slot, key = o.run.slot, o.run.key(ACTIVE)

    figure = charts.active_neurons_spec(
        listed.tolist(), activation, o.before[o.token, listed], np.abs(activation) * o.written[listed],
        chosen=o.neuron, title=say("Most active neurons at {token}", token=o.whose), colour=o.side,
    )  # fmt: skip
    alt = say("The {n} most active neurons at {token}, from neuron {first} down.", n=len(listed), token=o.whose,
              first=listed[0] + 1)  # fmt: skip
    how_to_read = formula(HOW_TO_READ_ACTIVE_GATED if o.gated else HOW_TO_READ_ACTIVE, bias=o.bias)
    follow = on_click(key, place_of, lambda neuron: session.replace(slot, neuron=neuron))
    drawing.chart(figure, key=key, alt=alt, how_to_read=how_to_read, on_click=follow)


def _tokens(o: OpenLayer) -> None:
    side = o.side
    figure = figures.neuron_tokens(
        o.before, o.after, o.pieces, neuron=o.neuron, layer=o.layer, token=o.token, side=side
    )
    alt = say("The activation of neuron {neuron} at each of {n} tokens.", neuron=o.neuron + 1, n=len(o.pieces))
    follow = tokens.clicked(o.run, side, TOKENS, len(o.pieces))
    drawing.chart(figure, key=o.run.key(TOKENS), alt=alt, how_to_read=HOW_TO_READ_TOKENS, on_click=follow)


def _map(o: OpenLayer) -> None:
    listed = neurons.most_active_anywhere(o.after, MOST_MAPPED)
    chosen, side = listed.tolist(), o.side
    slot, key, take_token = o.run.slot, o.run.key(MAP), tokens.taking(o.run, o.side)

    def take(cell: tuple[int, int]) -> None:
        if cell[1] < len(chosen):
            session.replace(slot, neuron=chosen[cell[1]])
            take_token(cell[0])

    marked = o.token, chosen.index(o.neuron) if o.neuron in chosen else None
    figure = figures.neuron_map(o.after, chosen, o.pieces, marked=marked, layer=o.layer, side=side)
    alt = say("Activation of {n} neurons of layer {layer} at each of {n_tokens} tokens.", n=len(chosen),
              layer=o.layer + 1, n_tokens=len(o.pieces))  # fmt: skip
    drawing.chart(figure, key=key, alt=alt, how_to_read=HOW_TO_READ_MAP, on_click=on_click(key, cell_of, take))
