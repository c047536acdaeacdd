"""The pictures of the feed-forward sub-layers: silent and active neurons, and what one of them reads and writes.

Knows nothing of Streamlit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from glassformer.charts.neurons import (
    HOW_TO_READ_ACTIVE,
    HOW_TO_READ_HISTOGRAM,
    HOW_TO_READ_SHARES,
    active_neurons_spec,
    logit_effect_spec,
    neuron_map_spec,
    neuron_tokens_spec,
    pre_activations_spec,
    silent_shares_spec,
)
from glassformer.inside import InsideLook
from glassformer.inside.features import ACTIVATIONS
from glassformer.inside.looked_at import INSIDE, pieces_of, side_of, token_of, writes
from glassformer.runs.picture import Plot, Said
from glassformer.runs.seen import OfRun, Seen
from glassformer.runs.sides import AXES, STACK_NAMES, STACKS
from glassformer.shared.dialect import formula
from glassformer.state.click import Click, cell_of, place_below, place_of
from glassformer.state.view import Side
from transformer.analysis import neurons
from transformer.analysis.neurons import Effect
from transformer.i18n import joined, paragraph, say
from transformer.model.anatomy import StackName, anatomy

MOST_LISTED: Final = 12
MOST_MAPPED: Final = 32  # neurons of a map
POINTS: Final = 240
MOST_PIECES: Final = 8  # in each direction


@dataclass(frozen=True)
class OpenLayer(OfRun):
    """A layer, and what the run did in it; arrays have a row for each token that may be seen."""

    side: Side  # whose sub-layers
    stack: StackName  # whose layers
    layer: int  # which layer, from 0
    pieces: list[str]  # the tokens; of the output the rows "reads → predicts"
    token: int  # the one that is looked at
    whose: str  # the same, for titles
    step: int  # its step; below 0, it is one of a prompt
    neuron: int  # the neuron that is looked at: the chosen one, else the most active of the token
    kind: str  # the activation function, as the config names it
    function: str  # the same, as people call it
    gated: bool  # whether the sub-layers have a gate
    before: np.ndarray  # pre-activations of the layer [token, d_ff]; with a gate, what the gate reads
    after: np.ndarray  # its activations [token, d_ff]; with a gate, the product
    written: np.ndarray  # length of each neuron's column of down_proj [d_ff]
    shares: np.ndarray  # share of silent neurons [layer, token]
    recorded: dict[str, np.ndarray]  # all that the pass recorded; its rows after `pieces` must not be seen

    @cached_property
    def effect(self) -> tuple[Effect, float] | None:
        """What the neuron does to logits directly, and to that of the output's piece.

        None if it writes to no logits, or if that must not be seen yet.
        """
        run, trace, place = self.run, self.run.trace, (self.layer, self.neuron, self.token)
        if not writes(run, self.stack) or run.looking.covered:
            return None

        def work() -> tuple[Effect, float]:
            found = neurons.direct_effect(
                run.checkpoint.model, self.layer, self.neuron, self.recorded, token=self.token
            )
            return neurons.strongest(found, MOST_PIECES), float(found[trace.tgt_ids[max(0, self.step)]])

        return run.work.compute(
            ("neuron_effect", trace.query, trace.src_ids, trace.read_ids, trace.tgt_ids, *place),
            work,
            nbytes=lambda _: 64 * MOST_PIECES,
        )


def layer_of(run: Seen, side: Side) -> int:
    """The layer that is looked at; all together, which other pages have, is none here."""
    return min(run.view.layer or 0, anatomy(run.checkpoint.config).stack(STACKS[side]).n_layers - 1)


def open_layer(run: Seen) -> OpenLayer:
    """The layer that is looked at; QueryError if the model computes what is not finite."""
    checkpoint, trace, side = run.checkpoint, run.trace, side_of(run)
    stack, layer, pieces = STACKS[side], layer_of(run, side), pieces_of(run, side)
    asked, token, n = run.view.of(InsideLook).neuron, token_of(run, side, pieces), len(pieces)
    sites = [neurons.site(stack, layer, name) for name in ("pre_activation", "activation", "output")]
    sites += neurons.effect_sites(checkpoint.config, layer) if writes(run, stack) else []
    recorded = run.work.replay(checkpoint, trace, sites)
    shares = run.work.compute(
        ("silent_neurons", trace.query, trace.src_ids, trace.read_ids, stack),
        lambda: neurons.silent_shares(checkpoint, trace, stack),
        nbytes=lambda values: values.nbytes,
    )
    before, after = recorded[sites[0]][:n], recorded[sites[1]][:n]
    if asked is None or asked >= checkpoint.config.of(stack).d_ff:
        asked = int(neurons.most_active(after[token], 1)[0])
    written = np.linalg.norm(neurons.columns(checkpoint.model, stack, layer), axis=0)
    config, step = checkpoint.config, token - trace.first_row
    return OpenLayer(
        run, side, stack, layer, pieces, token, pieces[token], step, asked, config.activation,
        ACTIVATIONS[config.activation], config.gated, before, after, written, shares[:, :n], recorded,
    )  # fmt: skip


FFN = INSIDE.part("ffn", open_layer)


@FFN.picture("ffn_shares", say("Silent neurons: activations at or near 0"))
def shares(o: OpenLayer) -> Plot:
    """The shares of silent neurons by layer and token; a click means both."""
    n, stack = len(o.pieces), STACK_NAMES[o.stack]
    counted = say("share of activations within {near:g} of 0", near=neurons.NEAR_ZERO)
    if o.kind == "relu":
        counted = say("share of zeros")
    spec = silent_shares_spec(
        o.shares,
        o.pieces,
        marked=(o.layer, o.token),
        title=say("Silent neurons of the {stack} (activation at or near 0)", stack=stack),
        token_axis=AXES[o.side],
        value_name=counted,
        colour=o.side,
    )
    alt = say("The {share}, for each layer of the {stack} and each of {n} tokens.",
              share=counted, stack=stack, n=n)  # fmt: skip

    def clicked(click: Click) -> tuple[int, int] | None:
        cell = cell_of(click)
        return cell if cell is not None and cell[1] < n else None

    how_to_read = HOW_TO_READ_SHARES[o.gated]
    return Plot(spec=spec, alt=alt, how_to_read=how_to_read, clicked=clicked, said=Said(below=_silent(o)))


def _silent(o: OpenLayer) -> str:
    """How many of the neurons are silent, over all tokens and at the chosen one."""
    whole, here = float(o.shares[o.layer].mean()), float(o.shares[o.layer, o.token])
    if o.kind == "relu":
        return say(
            "Over these tokens, {whole:.1%} of this layer's activations are exactly 0; at {token}, {here:.1%} are.",
            whole=whole,
            here=here,
            token=o.whose,
        )
    said = [
        say("Over these tokens, {whole:.1%} of this layer's activations are within {near:g} of 0; at {token}, "
            "{here:.1%} are.", whole=whole, here=here, token=o.whose, near=neurons.NEAR_ZERO),
        say("{function} is hardly ever exactly 0, so activations near 0 are counted instead.", function=o.function),
    ]  # fmt: skip
    return joined(" ", said)


@FFN.picture("ffn_histogram", say("Distribution of pre-activations"))
def histogram(o: OpenLayer) -> Plot:
    """How the pre-activations of the layer are spread, under the activation function."""
    found = neurons.histogram(o.before, o.token)
    x = np.union1d(np.linspace(found.edges[0], found.edges[-1], POINTS), [-1e-6, 0.0, 1e-6])  # a ReLU's slope jumps
    values, slopes = neurons.curve(o.kind, x)
    spec = pre_activations_spec(
        found.edges,
        found.everywhere,
        found.here,
        x=x,
        values=values,
        slopes=slopes,
        function=o.function,
        piece=o.whose,
        colour=o.side,
        title=say(
            "Pre-activations of layer {layer} and the curve of {function}", layer=o.layer + 1, function=o.function
        ),
    )
    alt = say("Distribution of the pre-activations in layer {layer} of the {stack}, with the curve of {function}.",
              layer=o.layer + 1, stack=STACK_NAMES[o.stack], function=o.function)  # fmt: skip
    how_to_read = formula(HOW_TO_READ_HISTOGRAM[o.gated], bias=o.run.checkpoint.config.biases.ffn)
    return Plot(spec=spec, alt=alt, how_to_read=how_to_read, fit=True)


@FFN.picture("ffn_active", say("The most active neurons at a token"))
def active(o: OpenLayer) -> Plot:
    """The most active neurons at the chosen token; a click means one."""
    listed = neurons.most_active(o.after[o.token], MOST_LISTED)
    activation = o.after[o.token, listed]
    spec = active_neurons_spec(
        listed.tolist(), activation, o.before[o.token, listed], np.abs(activation) * o.written[listed],
        chosen=o.neuron, title=say("Most active neurons at {token}", token=o.whose), colour=o.side,
    )  # fmt: skip
    alt = say("The {n} most active neurons at {token}, starting with neuron {first}.", n=len(listed), token=o.whose,
              first=listed[0] + 1)  # fmt: skip
    how_to_read = formula(HOW_TO_READ_ACTIVE[o.gated], bias=o.run.checkpoint.config.biases.ffn)
    return Plot(spec=spec, alt=alt, how_to_read=how_to_read, clicked=place_of)


@FFN.picture("ffn_tokens", say("What drives a neuron"))
def by_token(o: OpenLayer) -> Plot:
    """The chosen neuron at each token; a click means a token."""
    n, neuron = len(o.pieces), o.neuron
    spec = neuron_tokens_spec(
        o.after[:, neuron], o.before[:, neuron], o.pieces, chosen=o.token, colour=o.side, token_axis=AXES[o.side],
        title=say("What drives neuron {neuron} of layer {layer}", neuron=neuron + 1, layer=o.layer + 1),
    )  # fmt: skip
    alt = say("The activation of neuron {neuron} at each of {n} tokens.", neuron=neuron + 1, n=n)
    return Plot(spec=spec, alt=alt, clicked=place_below(n), said=Said(below=_writes(o)))


@paragraph
def _writes(o: OpenLayer) -> Iterator[str]:
    activation, here = o.after[:, o.neuron], float(o.after[o.token, o.neuron])
    whole = float(np.linalg.norm(o.recorded[neurons.site(o.stack, o.layer, "output")][o.token]))
    length, least, most = (float(value) for value in (o.written[o.neuron], o.written.min(), o.written.max()))
    yield say(
        "Neuron {neuron} is active at {active} of these {n} tokens.",
        neuron=o.neuron + 1,
        active=int((~neurons.silent(activation, o.kind)).sum()),
        n=len(activation),
    )
    yield say(
        "At an activation of 1, the neuron adds its column of W_down to the stream: a vector of length "
        "{length:.3f} (the lengths of all {n:,} columns: {least:.3f} to {most:.3f}).",
        length=length,
        n=len(o.written),
        least=least,
        most=most,
    )
    yield say(
        "At {token}, the neuron's activation is {activation:.3f}, so it adds a vector of length {length:.3f}. "
        "The whole sub-layer adds a vector of length {whole:.3f} there.",
        token=o.whose,
        activation=here,
        length=abs(here) * length,
        whole=whole,
    )


@FFN.picture("ffn_map", say("The most active neurons anywhere in the sentence"))
def neuron_map(o: OpenLayer) -> Plot:
    """Neurons at each token; a click means a token and a neuron."""
    listed, n, layer = neurons.most_active_anywhere(o.after, MOST_MAPPED).tolist(), len(o.pieces), o.layer + 1
    spec = neuron_map_spec(
        o.after[:, listed], listed, o.pieces, token_axis=AXES[o.side], colour=o.side,
        marked=(o.token, listed.index(o.neuron) if o.neuron in listed else None),
        title=say("The {n} most active neurons of layer {layer} anywhere in this sentence", n=len(listed),
                  layer=layer),
    )  # fmt: skip
    alt = say("Activation of {n} neurons of layer {layer} at each of {n_tokens} tokens.", n=len(listed), layer=layer,
              n_tokens=n)  # fmt: skip

    def clicked(click: Click) -> tuple[int, int] | None:
        cell = cell_of(click)
        return (cell[0], listed[cell[1]]) if cell is not None and cell[1] < len(listed) else None

    return Plot(spec=spec, alt=alt, clicked=clicked)


@FFN.picture("ffn_effect", say("The pieces whose logits a neuron raises and lowers most"))
def effect(o: OpenLayer) -> Plot | None:
    """The pieces that the chosen neuron raises and lowers directly."""
    if o.effect is None:
        return None
    (found, own), vocabulary, neuron = o.effect, o.run.trace.vocabulary, o.neuron + 1
    ids = [*found.raised.tolist(), *found.lowered.tolist()[::-1]]
    spec = logit_effect_spec(
        [vocabulary[i] for i in ids],
        [*found.raised_by.tolist(), *found.lowered_by.tolist()[::-1]],
        ids,
        title=say("Direct effect of neuron {neuron}: the logits that it raises and lowers most", neuron=neuron),
    )
    alt = say(
        "The pieces whose logits neuron {neuron} raises most, starting with {piece}, and those it lowers most.",
        neuron=neuron,
        piece=vocabulary[ids[0]],
    )
    return Plot(spec=spec, alt=alt, said=Said(below=_counts(o, own), pale=True))


def _counts(o: OpenLayer, own: float) -> str:
    """How often each change of a logit counts; `own` is that of the output's piece."""
    activation = float(o.after[o.token, o.neuron])
    if o.step < 0:
        return say("At this token of the prompt, the activation is {activation:.3f}, so each change in the chart is "
                   "multiplied by {activation:.3f}.", activation=activation)  # fmt: skip
    return say(
        "At this step, the activation is {activation:.3f}, so each change in the chart is multiplied by "
        "{activation:.3f}. The logit of {piece}, the piece in the output, changes by {own:+.3f} × {activation:.3f} "
        "= {change:+.3f}.",
        activation=activation, piece=o.run.trace.tgt_pieces[o.step], own=own, change=own * activation,
    )  # fmt: skip
