"""Pictures of feed-forward neurons: silent shares, pre-activation histogram, most active, map, effect on logits."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

import numpy as np

from glassformer.charts.histograms import HOW_TO_READ_HISTOGRAM, pre_activations_spec
from glassformer.charts.marks import Axis, Numbers, bars, formatted, heat
from glassformer.inside import InsideLook
from glassformer.inside.features import ACTIVATIONS
from glassformer.inside.token_selection import INSIDE, pieces_of, side_of, token_of, writes
from glassformer.runs.map_axes import AXES, STACK_NAMES, STACKS
from glassformer.runs.picture import Captions, Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.shared.model_notes import formula
from glassformer.state.view import Click, Side, cell_of, place_below, place_of
from transformer.analysis import neurons
from transformer.analysis.neurons import Effect
from transformer.i18n import joined, paragraph, say
from transformer.model.anatomy import StackName, anatomy

MOST_LISTED: Final = 12
MOST_MAPPED: Final = 32  # neurons of a map
POINTS: Final = 240
MOST_PIECES: Final = 8  # in each direction
MOST_WRITTEN: Final = 8  # tokens; above this a share has no room in its cell

HOW_TO_READ_SHARES = say(
    "Each cell is the share of a layer's neurons that add nothing or almost nothing at one token: the number of "
    "activations at or near 0, divided by d_ff. The frame marks the layer and token that the other charts show."
)
HOW_TO_READ_TOKENS = say(
    "Each bar is the neuron's activation a at one token: a high bar means that this token's vector activates the "
    "neuron strongly. The vector holds the token itself and what attention has brought from other tokens so far."
)
HOW_TO_READ_MAP = say(
    "Each cell is the activation a of one neuron (column) at one token (row). Columns are ordered by the token at "
    "which the neuron is most active."
)
HOW_TO_READ_ACTIVE = {  # by whether there is a gate
    False: say(
        "Each bar is one neuron's activation a = f(W_up·h + b) at the chosen token, the largest on top. In "
        "brackets: ‖a·w‖, the length of the vector that the neuron adds to the stream, where w is its column of "
        "W_down."
    ),
    True: say(
        "Each bar is one neuron's activation a = f(W_gate·h) × W_up·h at the chosen token, including any biases. "
        "The largest is on top. In brackets: ‖a·w‖, the length of the vector that the neuron adds to the stream, "
        "where w is its column of W_down."
    ),
}
HOW_TO_READ_EFFECT = say(
    "Each bar is how much one token's logit changes if the activation is 1: W_out·N(w), minus the mean over the "
    "vocabulary, where w is the neuron's column of W_down. This is the direct effect, which bypasses all later "
    "layers. N applies the norms after the neuron, with their standard deviations held fixed."
)


@dataclass(frozen=True)
class OpenLayer(RunScene):
    """A layer, and what the run did in it; arrays have a row for each token that may be seen."""

    side: Side  # whose sub-layers
    stack: StackName  # whose layers
    layer: int  # which layer, from 0
    pieces: list[str]  # the tokens; of the output the rows "reads → predicts"
    token: int  # the selected one
    whose: str  # the same, for titles
    step: int  # its step; below 0, it is one of a prompt
    neuron: int  # the selected neuron, by default the token's most active one
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
        if not writes(run, self.stack) or run.visible.covered:
            return None

        def work() -> tuple[Effect, float]:
            model, (layer, neuron, token) = run.checkpoint.model, place
            found = neurons.direct_effect(model, layer, neuron, self.recorded, token=token)
            return neurons.strongest(found, MOST_PIECES), float(found[trace.tgt_ids[max(0, self.step)]])

        return run.work.compute(
            ("neuron_effect", trace.query, trace.src_ids, trace.read_ids, trace.tgt_ids, *place),
            work,
            nbytes=lambda _: 64 * MOST_PIECES,
        )


def layer_of(run: ViewedRun, side: Side) -> int:
    """The selected layer; there is no choice of all layers, as on other pages."""
    return min(run.view.layer or 0, anatomy(run.checkpoint.config).stack(STACKS[side]).n_layers - 1)


def open_layer(run: ViewedRun) -> OpenLayer:
    """The selected layer; QueryError if the model computes what is not finite."""
    checkpoint, trace, side = run.checkpoint, run.trace, side_of(run)
    stack, layer, pieces = STACKS[side], layer_of(run, side), pieces_of(run, side)
    asked, token, n = run.view.of(InsideLook).neuron, token_of(run, side, pieces), len(pieces)
    config, step = checkpoint.config, token - trace.first_row
    sites = [neurons.site(stack, layer, name) for name in ("pre_activation", "activation", "output")]
    sites += neurons.effect_sites(config, layer) if writes(run, stack) else []
    recorded = run.work.replay(checkpoint, trace, sites)
    shares = run.work.compute(
        ("silent_neurons", trace.query, trace.src_ids, trace.read_ids, stack),
        lambda: neurons.silent_shares(checkpoint, trace, stack),
        nbytes=lambda values: values.nbytes,
    )
    before, after = recorded[sites[0]][:n], recorded[sites[1]][:n]
    if asked is None or asked >= config.of(stack).d_ff:
        asked = int(neurons.most_active(after[token], 1)[0])
    written = np.linalg.norm(neurons.columns(checkpoint.model, stack, layer), axis=0)
    return OpenLayer(
        run, side, stack, layer, pieces, token, pieces[token], step, asked, config.activation,
        ACTIVATIONS[config.activation], config.gated, before, after, written, shares[:, :n], recorded,
    )  # fmt: skip


FFN = INSIDE.part("ffn", open_layer)


@FFN.picture("ffn_shares", say("Silent neurons: activations at or near 0"))
def shares(o: OpenLayer) -> Plot:
    """The shares of silent neurons by layer and token; a click means both."""
    n = len(o.pieces)
    counted = say("share of activations within {near:g} of 0", near=neurons.NEAR_ZERO)
    if o.kind == "relu":
        counted = say("share of zeros")
    drawn = heat(
        say("Silent neurons of the {stack} (activation at or near 0)", stack=STACK_NAMES[o.stack]),
        Axis(say("Layer"), [str(layer + 1) for layer in range(len(o.shares))], counted=False), tokens(o),
        Numbers(counted, o.shares), marked_cell=(o.layer, o.token), colour=o.side,
        written=".1%" if n <= MOST_WRITTEN else "",
    )  # fmt: skip

    clicked, said = partial(_cell_before, n), Captions(below=_silent(o))
    return Plot(**drawn, how_to_read=HOW_TO_READ_SHARES, clicked=clicked, said=said)


def _cell_before(n: int, click: Click) -> tuple[int, int] | None:
    """A cell in one of the first n columns."""
    return cell if (cell := cell_of(click)) is not None and cell[1] < n else None


def tokens(o: OpenLayer) -> Axis:
    """The tokens that may be seen."""
    return Axis(AXES[o.side], o.pieces, o.side)


def numbered_neurons(o: OpenLayer, listed: list[int]) -> Axis:
    """Some neurons, from 0."""
    return Axis(say("Neuron"), [str(n + 1) for n in listed], o.side, clicks=listed, counted=False)


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
    title = say("Pre-activations of layer {layer} and the curve of {function}", layer=o.layer + 1, function=o.function)
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
        title=title,
    )
    alt = say("Distribution of the pre-activations in layer {layer} of the {stack}, with the curve of {function}.",
              layer=o.layer + 1, stack=STACK_NAMES[o.stack], function=o.function)  # fmt: skip
    how_to_read = formula(HOW_TO_READ_HISTOGRAM[o.gated], bias=o.run.checkpoint.config.biases.ffn)
    return Plot(spec=spec, alt=alt, how_to_read=how_to_read, fit=True)


@FFN.picture("ffn_active", say("The most active neurons at a token"))
def active(o: OpenLayer) -> Plot:
    """The most active neurons at the chosen token; a click means one."""
    listed = neurons.most_active(o.after[o.token], MOST_LISTED)
    activation, before = o.after[o.token, listed], o.before[o.token, listed]
    length = np.abs(activation) * o.written[listed]
    drawn = bars(
        say("Most active neurons at {token}", token=o.whose), numbered_neurons(o, listed.tolist()),
        Numbers(say("activation"), activation), Numbers(say("pre-activation"), before),
        Numbers(say("length of the vector written"), length), chosen=o.neuron,
        axis=say("Activation (length of the vector written)"),
        ends=lambda i: f"{activation[i]:#.3g} ({length[i]:#.3g})",
    )  # fmt: skip
    how_to_read = formula(HOW_TO_READ_ACTIVE[o.gated], bias=o.run.checkpoint.config.biases.ffn)
    return Plot(**drawn, how_to_read=how_to_read, clicked=place_of)


@FFN.picture("ffn_tokens", say("What drives a neuron"))
def by_token(o: OpenLayer) -> Plot:
    """The chosen neuron at each token; a click means a token."""
    drawn = bars(
        say("What drives neuron {neuron} of layer {layer}", neuron=o.neuron + 1, layer=o.layer + 1), tokens(o),
        Numbers(say("activation"), o.after[:, o.neuron]), Numbers(say("pre-activation"), o.before[:, o.neuron]),
        chosen=o.token,
    )  # fmt: skip
    clicked, said = place_below(len(o.pieces)), Captions(below=_writes(o))
    return Plot(**drawn, how_to_read=HOW_TO_READ_TOKENS, clicked=clicked, said=said)


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
    listed = neurons.most_active_anywhere(o.after, MOST_MAPPED).tolist()
    values = o.after[:, listed]
    drawn = heat(
        say("The {n} most active neurons of layer {layer} anywhere in this sentence", n=len(listed),
            layer=o.layer + 1),
        tokens(o), numbered_neurons(o, listed), Numbers(say("activation"), values), marked_row=o.token,
        marked_cell=(o.token, listed.index(o.neuron)) if o.neuron in listed else None, colour=o.side,
        limits=(0.0, max(1e-6, float(np.nan_to_num(values).max(initial=0)))),
    )  # fmt: skip

    def clicked(click: Click) -> tuple[int, int] | None:
        return (cell[0], listed[cell[1]]) if (cell := _cell_before(len(listed), click)) is not None else None

    return Plot(**drawn, how_to_read=HOW_TO_READ_MAP, clicked=clicked)


@FFN.picture("ffn_effect", say("The tokens whose logits a neuron raises and lowers most"))
def effect(o: OpenLayer) -> Plot | None:
    """The pieces that the chosen neuron raises and lowers directly."""
    if o.effect is None:
        return None
    found, own = o.effect
    ids = [*found.raised.tolist(), *found.lowered.tolist()[::-1]]
    by = np.array([*found.raised_by.tolist(), *found.lowered_by.tolist()[::-1]])
    pieces = Axis(say("Token"), [o.run.trace.vocabulary[i] for i in ids], "target", clicks=ids, counted=False)
    drawn = bars(
        say("Direct effect of neuron {neuron}: the logits that it raises and lowers most", neuron=o.neuron + 1),
        pieces, Numbers(say("change in the logit"), by, "+.4g"), Numbers(say("id"), np.array(ids), ".0f"),
        signed=True, ends=lambda i: formatted(by[i], "+#.2g"),
    )  # fmt: skip
    return Plot(**drawn, how_to_read=HOW_TO_READ_EFFECT, said=Captions(below=_counts(o, own), pale=True))


def _counts(o: OpenLayer, own: float) -> str:
    """How often each change of a logit counts; `own` is that of the output's piece."""
    activation = float(o.after[o.token, o.neuron])
    if o.step < 0:
        return say("At this token of the prompt, the activation is {activation:.3f}, so each change in the chart is "
                   "multiplied by {activation:.3f}.", activation=activation)  # fmt: skip
    return say(
        "At this step, the activation is {activation:.3f}, so each change in the chart is multiplied by "
        "{activation:.3f}. The logit of {piece}, the token in the output, changes by {own:+.3f} × {activation:.3f} "
        "= {change:+.3f}.",
        activation=activation, piece=o.run.trace.tgt_tokens[o.step], own=own, change=own * activation,
    )  # fmt: skip
