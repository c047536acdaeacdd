"""What one neuron writes: how much, and in the decoder which pieces it raises and lowers directly."""

from __future__ import annotations

from typing import Final

import numpy as np
import streamlit as st

import charts
from charts.neuron_bars import HOW_TO_READ_EFFECT
from transformer.analysis import neurons
from transformer.analysis.neurons import Effect
from ui.inside.guessing import ask_first
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.runs.sides import StackName
from ui.shared import drawing

EFFECT: Final = "ffn_effect"
REVEAL: Final = "ffn_reveal"
MOST_PIECES: Final = 8  # in each direction


def draw(
    run: OpenRun,
    stack: StackName,
    layer: int,
    neuron: int,
    token: int,
    activation: np.ndarray,
    recorded: dict[str, np.ndarray],
    whose: str,
) -> None:
    """Draw what one neuron writes.

    Args:
        run: What is looked at.
        stack, layer, neuron, token: Which neuron, and at which token.
        activation: Its activation at every token that may be seen [token].
        recorded: The sub-layer's output, and in the decoder the sites of `neurons.effect_sites`.
        whose: The token in words.
    """
    columns = neurons.columns(run.checkpoint.model, stack, layer)
    lengths = np.linalg.norm(columns, axis=0)
    here = float(activation[token])
    whole = float(np.linalg.norm(recorded[neurons.site(stack, layer, "output")][token]))
    active = int((~neurons.silent(activation, run.checkpoint.config.activation)).sum())
    said = (
        f"Neuron {neuron + 1} is active at {active} of these {len(activation)} tokens. For an activation of 1 it "
        f"writes a vector of length {lengths[neuron]:.3f}, its column of W_down (the {len(lengths):,} columns: "
        f"{lengths.min():.3f} to {lengths.max():.3f}). At {whose} its activation is {here:.3f}, so it adds one of "
        f"length {abs(here) * lengths[neuron]:.3f}; what the whole sub-layer adds there has length {whole:.3f}."
    )
    st.markdown(drawing.plain(said))
    if stack == "encoder":
        st.caption(
            "An encoder neuron writes into the memory, not to the logits; what it does there, the decoder says."
        )
    elif run.looking.covered:
        ask_first(run, "The pieces that this neuron raises could tell.", key=REVEAL)
    else:
        _effect(run, layer, neuron, token, here, recorded)


def _effect(
    run: OpenRun, layer: int, neuron: int, token: int, activation: float, recorded: dict[str, np.ndarray]
) -> None:
    trace, model = run.trace, run.checkpoint.model

    def work() -> tuple[Effect, float]:
        effect = neurons.direct_effect(model, layer, neuron, recorded, token=token)
        return neurons.strongest(effect, MOST_PIECES), float(effect[trace.tgt_ids[token]])

    done = attempt(
        lambda: loading.runner().compute(
            ("neuron effect", trace.query, trace.src_ids, trace.read_ids, trace.tgt_ids, layer, neuron, token),
            work,
            nbytes=lambda _: 64 * MOST_PIECES,
        )
    )
    if done is None:
        return
    found, own = done
    ids = [*found.raised.tolist(), *found.lowered.tolist()[::-1]]
    values = [*found.raised_by.tolist(), *found.lowered_by.tolist()[::-1]]
    figure = charts.logit_effect_spec(
        [trace.vocabulary[i] for i in ids],
        values,
        ids,
        title=f"Direct effect of neuron {neuron + 1}: the pieces it raises and lowers most",
    )
    alt = f"The pieces that neuron {neuron + 1} raises most, from {trace.vocabulary[ids[0]]}, and lowers most."
    drawing.chart(figure, key=run.key(EFFECT), alt=alt, how_to_read=HOW_TO_READ_EFFECT)
    piece, change = trace.tgt_pieces[token], own * activation
    st.caption(
        drawing.plain(
            f"At this step the activation is {activation:.3f}, so each change counts {activation:.3f} times; the "
            f"logit of {piece}, which the output has, changes by {own:+.3f} × {activation:.3f} = {change:+.3f}."
        )
    )
