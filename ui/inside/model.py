"""The part "The model" of the Inside page: the diagram of the loaded model, its shapes, and what it costs."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

import charts
from charts.diagram import HOW_TO_READ
from transformer.model.config import ModelConfig
from ui.components.plotly.view import Click
from ui.inside import costs, shapes
from ui.inside.blocks import ACTIVATIONS, blocks_of, destination, each_layer, few_layers, one_layer, sized, stacks
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing
from ui.shared.clicks import on_click
from ui.state import session
from ui.state.link import write_link
from ui.state.view import Slot

DIAGRAM = "model_diagram"
PLACE = "model_place"
OPEN = "model_open"
LEAVING = "model_leaving"


def draw(run: OpenRun) -> None:
    """Draw it."""
    page = st.session_state.pop(run.key(LEAVING), None)
    if page is not None:
        # An empty address would become a step of the browser's history that means the defaults when gone back to.
        st.switch_page(page, query_params=write_link(replace(run.link, view=run.view)))
    st.markdown(drawing.plain(in_words(run.checkpoint.config)))
    _diagram(run)
    shapes.draw(run)
    costs.draw(run)


def open_place(slot: Slot, place: str) -> None:
    """Callback: go to the view of a block; another page opens as soon as the script runs.

    Args:
        slot: Where.
        place: The block's place, such as `encoder.0.self_attn`.
    """
    there = destination(place)
    session.replace(slot, **there.fields)
    if there.page is not None:
        st.session_state[f"{slot}{LEAVING}"] = there.page


def _diagram(run: OpenRun) -> None:
    checkpoint, config = run.checkpoint, run.checkpoint.config
    n_target = run.looking.n_rows if run.view.guess else run.trace.n_steps
    one = sized(checkpoint.model, n_source=len(run.trace.src_ids), n_target=n_target)
    every = stacks(one, grouping=each_layer)
    known = {block.place: block.name for stack in every for block in blocks_of(stack)}
    encoder, decoder = stacks(one, grouping=one_layer if _choose(run, known) else few_layers)
    figure = charts.model_diagram_spec(encoder, decoder, title=f"The loaded model: {checkpoint.name}")

    slot, key = run.slot, run.key(DIAGRAM)

    def place_of(click: Click) -> str | None:
        return str(click.customdata) if click.customdata in known else None

    alt = (
        f"Diagram of the model {checkpoint.name}: an encoder of {config.n_encoder_layers} layers on the left, a "
        f"decoder of {config.n_decoder_layers} on the right, and the encoder's output going to every cross-attention."
    )
    follow = on_click(key, place_of, lambda place: open_place(slot, place))
    drawing.chart(figure, key=key, alt=alt, how_to_read=HOW_TO_READ, on_click=follow)


def _choose(run: OpenRun, known: dict[str, str]) -> bool:
    """Draw the menu of all blocks, for the keyboard; returns whether equal layers are to be drawn once."""
    config, slot, key = run.checkpoint.config, run.slot, run.key(PLACE)

    def go() -> None:
        place = st.session_state.get(key)
        if place in known:
            open_place(slot, place)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=run.key("model_controls")):
        choices.keep_label(key, known.values())
        st.selectbox("Block", list(known), key=key, format_func=lambda place: known.get(place, ""), width=340)
        st.button("Open its view", key=run.key(OPEN), on_click=go)
        if max(config.n_encoder_layers, config.n_decoder_layers) == 1:
            return False
        return choices.switch(choices.field(slot, "fold"), "Draw equal layers once")


def in_words(config: ModelConfig) -> str:
    """The features of a model, in sentences."""
    c = config
    heads = f"{c.n_heads} head{'s' * (c.n_heads > 1)} of width {c.d_head}"
    norms = "before each sub-layer (pre-norm)" if c.norm == "pre" else "after each residual sum (post-norm)"
    final = "one more after the last layer of each stack" if c.final_norm else "none after the last layer"
    positions = "sinusoids, a formula" if c.positions == "sinusoidal" else "a learned table on each side"
    tables = "one embedding table for source and target" if c.shared_vocab else "an embedding table on each side"
    tied = "the output layer uses the target's table" if c.tie_output else "the output layer has a table of its own"
    biases = "biases in all linear layers and norms" if c.bias else "no biases in linear layers and norms"
    biases += ", one on the logits" if c.output_bias else ", none on the logits"
    return (
        f"{c.n_encoder_layers} encoder and {c.n_decoder_layers} decoder layers. The stream is d_model = "
        f"{c.d_model:,} wide; each attention has {heads}; the feed-forward layer widens it to d_ff = {c.d_ff:,}, "
        f"{c.d_ff / c.d_model:.3g} times as wide, with {ACTIVATIONS[c.activation]} "
        f"between. Norms stand {norms}, {final}. Positions: {positions}. There is {tables}, and {tied}; {biases}. "
        f"At most {c.max_len:,} tokens on a side."
    )
