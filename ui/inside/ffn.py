"""The feed-forward sub-layers: how many neurons are silent, which are active, and what drives one of them.

What a neuron is for, nobody says here: only what it did in this sentence, and what it writes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from transformer.analysis import neurons
from transformer.model.anatomy import anatomy
from ui.inside import ffn_pictures as pictures
from ui.inside import inside_controls
from ui.inside.ffn_pictures import OpenLayer, layer_of, open_layer
from ui.inside.looked_at import pieces_of, writes
from ui.runs.attempt import attempt
from ui.runs.guessing import ask_first
from ui.runs.open_run import OpenRun
from ui.runs.show import show
from ui.runs.sides import STACK_NAMES, STACKS
from ui.shared import choices, drawing
from ui.shared.door import st
from ui.state import session
from ui.state.view import Side, Slot
from words import joined, say

LAYER: Final = "ffn_layer"
TOKEN: Final = "ffn_token"
NEURON: Final = "ffn_neuron"
REVEAL: Final = "ffn_reveal"

# A neuron of another layer has nothing but its number in common.
_FORGETS: Final = ("neuron",)


def draw(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    with row:
        side = inside_controls.choose_side(run, choices.field(run.slot, "side", forgets=_FORGETS))
        _choose_layer(run, side)
        inside_controls.choose(run, side, pieces_of(run, side), key=TOKEN, width=180)
        d_ff = run.checkpoint.config.of(STACKS[side]).d_ff
        _choose_neuron(run.slot, d_ff)
    o = attempt(lambda: open_layer(run))
    if o is None:
        return
    if (asked := run.view.neuron) is not None and asked >= d_ff:
        drawing.notes([say("Neuron {neuron} was asked for; this layer has {n:,}.", neuron=asked + 1, n=d_ff)])
    take = inside_controls.taking(run, side)
    drawing.beside(
        partial(show, pictures.shares, o, take=partial(_take_layer, run.slot, take)),
        partial(show, pictures.histogram, o),
    )
    st.markdown(drawing.plain(what_it_does(o)))
    look_at = partial(_take_neuron, run.slot)
    drawing.beside(partial(show, pictures.active, o, take=look_at), partial(show, pictures.by_token, o, take=take))
    _neuron(run, o)
    show(pictures.neuron_map, o, take=lambda cell: (look_at(cell[1]), take(cell[0])))


def _choose_layer(run: OpenRun, side: Side) -> None:
    count = anatomy(run.checkpoint.config).stack(STACKS[side]).n_layers
    kept = choices.field(run.slot, "layer", key=LAYER, forgets=_FORGETS)
    choices.menu_of_layers(replace(kept, value=layer_of(run, side)), count, all_together=False)


def _choose_neuron(slot: Slot, d_ff: int) -> None:
    choices.number(
        choices.field(slot, "neuron", key=NEURON),
        say("Neuron (1 to {most:,})", most=d_ff),
        d_ff,
        placeholder=say("Most active neuron"),
        bare=True,
        help=say("Left empty, it is the most active one of the token."),
        width=210,
    )


def _take_layer(slot: Slot, take_token: Callable[[object], None], cell: tuple[int, int]) -> None:
    """Callback: look at a layer and a token."""
    choices.put(slot, "layer", _FORGETS, cell[0])
    take_token(cell[1])


def _take_neuron(slot: Slot, neuron: int) -> None:
    """Callback: look at a neuron."""
    session.replace(slot, neuron=neuron)


# ------------------------------------------------------------------------------------------------ in words


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


def _neuron(run: OpenRun, o: OpenLayer) -> None:
    """Draw what the neuron that is looked at writes, and in the decoder which pieces it raises and lowers."""
    st.markdown(drawing.plain(_writes(o)))
    if anatomy(run.checkpoint.config).fills:
        st.caption(say("What a neuron does to the logits of this model's head is not shown here."))
    elif not anatomy(run.checkpoint.config).writes:
        st.caption(say("This model writes nothing: there are no logits that a neuron could change."))
    elif not writes(run, o.stack):
        st.caption(
            say("An encoder neuron writes into the memory, not to the logits; what it does there, the decoder says.")
        )
    elif run.looking.covered:
        ask_first(run, say("The pieces that this neuron raises could tell."), key=REVEAL)
    elif (found := attempt(lambda: o.effect)) is not None:
        show(pictures.effect, o)
        if run.checkpoint.config.logit_cap:
            st.caption(say("These are the logits before their soft cap."))
        st.caption(drawing.plain(_counts(o, found[1])))


def _writes(o: OpenLayer) -> str:
    activation, here = o.after[:, o.neuron], float(o.after[o.token, o.neuron])
    whole = float(np.linalg.norm(o.recorded[neurons.site(o.stack, o.layer, "output")][o.token]))
    length, least, most = (float(value) for value in (o.written[o.neuron], o.written.min(), o.written.max()))
    said = [
        say("Neuron {neuron} is active at {active} of these {n} tokens.", neuron=o.neuron + 1,
            active=int((~neurons.silent(activation, o.kind)).sum()), n=len(activation)),
        say("For an activation of 1 it writes a vector of length {length:.3f}, its column of W_down (the {n:,} "
            "columns: {least:.3f} to {most:.3f}).", length=length, n=len(o.written), least=least,
            most=most),
        say("At {token} its activation is {activation:.3f}, so it adds one of length {length:.3f}; what the whole "
            "sub-layer adds there has length {whole:.3f}.", token=o.whose, activation=here,
            length=abs(here) * length, whole=whole),
    ]  # fmt: skip
    return joined(" ", said)


def _counts(o: OpenLayer, own: float) -> str:
    """How often each change of a logit counts; `own` is that of the output's piece."""
    activation = float(o.after[o.token, o.neuron])
    if o.step < 0:
        return say("At this token of the prompt the activation is {activation:.3f}, so each change counts "
                   "{activation:.3f} times.", activation=activation)  # fmt: skip
    return say(
        "At this step the activation is {activation:.3f}, so each change counts {activation:.3f} times; the "
        "logit of {piece}, which the output has, changes by {own:+.3f} × {activation:.3f} = {change:+.3f}.",
        activation=activation, piece=o.run.trace.tgt_pieces[o.step], own=own, change=own * activation,
    )  # fmt: skip
