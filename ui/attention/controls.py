"""The controls of the Attention page: which part, attention, layer and head, and how colours and pieces are shown."""

from __future__ import annotations

from typing import Final

import streamlit as st

from transformer.checkpoint.load import Checkpoint
from transformer.runs.trace import Kind
from ui.shared.choices import KEEP
from ui.state import keys, session
from ui.state.view import Aggregate, Panel, View

PANELS: Final[dict[Panel, str]] = {
    "overview": "All heads",
    "head": "One map",
    "flow": "Flow",
    "walk": "One weight",
    "table": "What heads do",
}
KINDS: Final[dict[Kind, str]] = {"encoder": "Encoder self", "decoder": "Decoder self", "cross": "Cross"}
AGGREGATES: Final[dict[Aggregate, str]] = {"mean": "Mean", "max": "Max", "rollout": "Rollout"}
AGGREGATE_HELP: Final = (
    "What stands for all heads together. Rollout follows the weights through the layers, up to the chosen one; the "
    "text under the map says how."
)
MOST_SEGMENTS: Final = 8  # more choices are in a menu
ROW: Final = "attention_controls"


def draw(checkpoint: Checkpoint) -> None:
    """Draw the choice of a part, and under it that of an attention, a layer and a head.

    Args:
        checkpoint: Its numbers of layers and heads are the choices.
    """
    for key in (keys.PANEL, keys.KIND, keys.AGGREGATE):
        st.session_state.setdefault(key, getattr(View, key))
    panel = st.segmented_control(
        "Part of the page",
        list(PANELS),
        key=keys.PANEL,
        format_func=lambda name: PANELS[name],
        required=True,
        persist_state=KEEP,
        label_visibility="collapsed",
    )
    with st.container(horizontal=True, gap="small", key=ROW):
        kind = st.segmented_control(
            "Attention",
            list(KINDS),
            key=keys.KIND,
            format_func=lambda name: KINDS[name],
            required=True,
            persist_state=KEEP,
            on_change=session.forget_cell,
        )
        config = checkpoint.config
        n_layers = config.n_encoder_layers if kind == "encoder" else config.n_decoder_layers
        layer = _choice("Layer", keys.LAYER, n_layers)
        head = _choice("Head", keys.HEAD, config.n_heads, disabled=layer == session.MEAN)
        if panel == "head" and session.MEAN in (layer, head):
            st.selectbox(
                "Together",
                list(AGGREGATES),
                key=keys.AGGREGATE,
                format_func=lambda name: AGGREGATES[name],
                persist_state=KEEP,
                help=AGGREGATE_HELP,
                width=116,
            )


def scales() -> None:
    """Draw the choice of a colour scale."""
    st.toggle("Log colours", key=keys.LOG_SCALE, persist_state=KEEP)
    st.toggle(
        "Own scale per head",
        key=keys.OWN_SCALE,
        persist_state=KEEP,
        help="Off: colours mean the same in all maps, from weight 0 to 1.",
    )


def pieces() -> None:
    """Draw the choice of what rows and columns are."""
    st.toggle(
        "Merge to words",
        key=keys.WORDS,
        persist_state=KEEP,
        help="Weights are summed over the pieces of a key word and averaged over those of a query word. Scripts "
        "without spaces keep their pieces.",
    )
    st.toggle(
        "Hide special",
        key=keys.HIDE_SPECIAL,
        persist_state=KEEP,
        help="Leaves out the columns of special pieces such as `</s>`, and their rows: in the decoder those that "
        "predict one. What is left is not rescaled.",
    )


def open_head(kind: Kind, layer: int | None, head: int | None) -> None:
    """Callback: show the map of a head.

    Args:
        kind: Which attention.
        layer, head: From 0; None for all together.
    """
    if st.session_state.get(keys.KIND) != kind:
        session.forget_cell()
    st.session_state[keys.KIND] = kind
    st.session_state[keys.LAYER] = session.MEAN if layer is None else str(layer + 1)
    st.session_state[keys.HEAD] = session.MEAN if head is None else str(head + 1)
    open_panel("head")


def open_panel(panel: Panel) -> None:
    """Callback: go to another part of the page."""
    st.session_state[keys.PANEL] = panel


def _choice(name: str, key: str, count: int, *, disabled: bool = False) -> str:
    """Draw the choice of a layer or head, or of all."""
    options = [session.MEAN, *(str(number) for number in range(1, count + 1))]
    if st.session_state.setdefault(key, session.MEAN) not in options:
        st.session_state[key] = session.MEAN  # the run has said so
    help_text = "Choose a layer to choose among its heads." if disabled else None
    if count > MOST_SEGMENTS:
        return st.selectbox(
            name, options, key=key, format_func=_all, persist_state=KEEP, disabled=disabled, help=help_text, width=120
        )
    chosen = st.segmented_control(
        name,
        options,
        key=key,
        format_func=_all,
        required=True,
        persist_state=KEEP,
        disabled=disabled,
        help=help_text,
    )
    return chosen or session.MEAN


def _all(option: str) -> str:
    return "All" if option == session.MEAN else option
