"""The choices of the feed-forward part: side, layer, token and neuron."""

from __future__ import annotations

from typing import Final

import streamlit as st

from ui.runs.open_run import OpenRun
from ui.runs.sides import SIDES
from ui.shared.choices import KEEP
from ui.state import keys, session
from ui.state.view import Side, View

LAYER: Final = "ffn_layer"
TOKEN: Final = "ffn_token"
NEURON: Final = "ffn_neuron"
MOST_SEGMENTS: Final = 8  # layers; more are in a menu


def choose_side() -> Side:
    """Draw the choice of a side."""
    side: Side | None = st.segmented_control(
        "Side",
        list(SIDES),
        key=keys.SIDE,
        format_func=SIDES.__getitem__,
        required=True,
        persist_state=KEEP,
        on_change=_forget_neuron,
    )
    return side or View.side


def choose_layer(run: OpenRun, side: Side) -> int:
    """Draw the choice of a layer; the mean, which other pages have, is none here."""
    config = run.checkpoint.config
    count = config.n_encoder_layers if side == "source" else config.n_decoder_layers
    layers = list(range(count))
    st.session_state[LAYER] = min(run.link.view.layer or 0, count - 1)

    def take() -> None:
        take_layer(st.session_state[LAYER])

    if count > MOST_SEGMENTS:
        return int(st.selectbox("Layer", layers, key=LAYER, format_func=_number, on_change=take, width=120))
    chosen = st.segmented_control("Layer", layers, key=LAYER, format_func=_number, required=True, on_change=take)
    return int(chosen or 0)


def _number(place: int) -> str:
    return str(place + 1)


def take_layer(layer: object) -> None:
    """Callback: look at a layer; a neuron of another layer has nothing but its number in common."""
    if isinstance(layer, int) and st.session_state.get(keys.LAYER) != str(layer + 1):
        st.session_state[keys.LAYER] = str(layer + 1)
        _forget_neuron()


def _forget_neuron() -> None:
    st.session_state[keys.NEURON] = None


def choose_token(run: OpenRun, side: Side, pieces: list[str]) -> int:
    """Draw the choice of a token: a source piece, or the step whose row it is."""
    last = len(pieces) - 1
    st.session_state[TOKEN] = min(run.view.key or 0, last) if side == "source" else run.view.step
    chosen: int = st.selectbox(
        "Token" if side == "source" else "Token (its step)",
        range(len(pieces)),
        key=TOKEN,
        format_func=lambda token: f"{token + 1}: {pieces[token]}" if token <= last else "",
        on_change=lambda: take_token(side, st.session_state[TOKEN]),
        width=240,
    )
    return chosen


def take_token(side: Side, token: object) -> None:
    """Callback: look at a token; one of the output belongs to a step, so the step follows."""
    if not isinstance(token, int):
        return
    if side == "source":
        st.session_state[keys.KEY] = token
    else:
        session.move_to(token)


def choose_neuron(run: OpenRun) -> None:
    """Draw the choice of a neuron by its number, counted from 1."""
    d_ff, asked = run.checkpoint.config.d_ff, run.view.neuron
    st.session_state[NEURON] = None if asked is None or asked >= d_ff else asked + 1

    def take() -> None:
        number = st.session_state[NEURON]
        st.session_state[keys.NEURON] = None if number is None else int(number) - 1

    st.number_input(
        f"Neuron (1 to {d_ff:,})",
        min_value=1,
        max_value=d_ff,
        value=None,
        key=NEURON,
        placeholder="most active",
        on_change=take,
        width=180,
        help="Left empty, it is the most active one of the token.",
    )
