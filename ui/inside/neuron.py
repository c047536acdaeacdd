"""What one neuron writes: how much, and in the decoder which pieces it raises and lowers directly."""

from __future__ import annotations

from typing import Final

import numpy as np

import charts
from charts.neuron_bars import HOW_TO_READ_EFFECT
from transformer.analysis import neurons
from transformer.analysis.neurons import Effect
from transformer.model.anatomy import anatomy
from ui.inside import looked_at
from ui.inside.ffn_controls import OpenLayer
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.guessing import ask_first
from ui.shared import drawing
from ui.shared.door import st
from words import joined, say

EFFECT: Final = "ffn_effect"
REVEAL: Final = "ffn_reveal"
MOST_PIECES: Final = 8  # in each direction


def draw(o: OpenLayer) -> None:
    """Draw what the neuron that is looked at writes."""
    run, activation = o.run, o.after[:, o.neuron]
    whole = float(np.linalg.norm(o.recorded[neurons.site(o.stack, o.layer, "output")][o.token]))
    active = int((~neurons.silent(activation, o.kind)).sum())
    here = float(activation[o.token])
    length, least, most = (float(value) for value in (o.written[o.neuron], o.written.min(), o.written.max()))
    said = [
        say("Neuron {neuron} is active at {active} of these {n} tokens.", neuron=o.neuron + 1, active=active,
            n=len(activation)),
        say("For an activation of 1 it writes a vector of length {length:.3f}, its column of W_down (the {n:,} "
            "columns: {least:.3f} to {most:.3f}).", length=length, n=len(o.written), least=least,
            most=most),
        say("At {token} its activation is {activation:.3f}, so it adds one of length {length:.3f}; what the whole "
            "sub-layer adds there has length {whole:.3f}.", token=o.whose, activation=here,
            length=abs(here) * length, whole=whole),
    ]  # fmt: skip
    st.markdown(drawing.plain(joined(" ", said)))
    if anatomy(run.checkpoint.config).fills:
        st.caption(say("What a neuron does to the logits of this model's head is not shown here."))
    elif not anatomy(run.checkpoint.config).writes:
        st.caption(say("This model writes nothing: there are no logits that a neuron could change."))
    elif not looked_at.writes(run, o.stack):
        st.caption(
            say("An encoder neuron writes into the memory, not to the logits; what it does there, the decoder says.")
        )
    elif run.looking.covered:
        ask_first(run, say("The pieces that this neuron raises could tell."), key=REVEAL)
    else:
        _effect(o, here)


def _effect(o: OpenLayer, activation: float) -> None:
    trace, model, layer, neuron, token = o.run.trace, o.run.checkpoint.model, o.layer, o.neuron, o.token
    step = token - trace.first_row  # below 0, the token is one of a prompt

    def work() -> tuple[Effect, float]:
        effect = neurons.direct_effect(model, layer, neuron, o.recorded, token=token)
        return neurons.strongest(effect, MOST_PIECES), float(effect[trace.tgt_ids[max(0, step)]])

    done = attempt(
        lambda: loading.runner().compute(
            ("neuron_effect", trace.query, trace.src_ids, trace.read_ids, trace.tgt_ids, layer, neuron, token),
            work,
            nbytes=lambda _: 64 * MOST_PIECES,
        )
    )
    if done is None:
        return
    found, own = done
    ids = [*found.raised.tolist(), *found.lowered.tolist()[::-1]]
    figure = charts.logit_effect_spec(
        [trace.vocabulary[i] for i in ids],
        [*found.raised_by.tolist(), *found.lowered_by.tolist()[::-1]],
        ids,
        title=say("Direct effect of neuron {neuron}: the pieces it raises and lowers most", neuron=neuron + 1),
    )
    alt = say("The pieces that neuron {neuron} raises most, from {piece}, and lowers most.", neuron=neuron + 1,
              piece=trace.vocabulary[ids[0]])  # fmt: skip
    drawing.chart(figure, key=o.run.key(EFFECT), alt=alt, how_to_read=HOW_TO_READ_EFFECT)
    if o.run.checkpoint.config.logit_cap:
        st.caption(say("These are the logits before their soft cap."))
    if step < 0:
        said = say("At this token of the prompt the activation is {activation:.3f}, so each change counts "
                   "{activation:.3f} times.", activation=activation)  # fmt: skip
    else:
        said = say(
            "At this step the activation is {activation:.3f}, so each change counts {activation:.3f} times; the "
            "logit of {piece}, which the output has, changes by {own:+.3f} × {activation:.3f} = {change:+.3f}.",
            activation=activation, piece=trace.tgt_pieces[step], own=own, change=own * activation,
        )  # fmt: skip
    st.caption(drawing.plain(said))
