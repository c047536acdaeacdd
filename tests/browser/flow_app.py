"""A page around the flow view, with made-up data of the app in component_app.py."""

import numpy as np
import streamlit as st

from glassformer.components.flow_component import flow_view, last_choice
from glassformer.components.flow_data import Choice, Flow, Pin

HOSTILE = (
    "<img src=x onerror=alert(1)>", "<b>x</b>", "$x^2$", "**b**", "`c`", "[a](http://b.co)", ":red[x]", "=1+1", "+2",
    "@x", "-3", "</s>", "שלום", "Donaudampfschifffahrtsgesellschaft", "a,\"b\"", "\u202eevil",
)  # fmt: skip
SHAPES = {"cross": (6, 9), "causal": (7, 7), "hostile": (16, 16), "long": (60, 62), "huge": (512, 512)}
N_HEADS = {"hostile": 8, "huge": 8}


def example(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Weights [head, query, key] and the mask [query, key] of an example; the test computes them again."""
    n_queries, n_keys = SHAPES[name]
    random = np.random.default_rng(n_queries * 1000 + n_keys)
    scores = 2.5 * random.standard_normal((N_HEADS.get(name, 4), n_queries, n_keys))
    allowed = np.tri(n_queries, n_keys, dtype=bool) if name == "causal" else np.ones((n_queries, n_keys), dtype=bool)
    weights = np.exp(scores) * allowed
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32), allowed


def pieces(name: str, count: int, letter: str) -> tuple[str, ...]:
    return HOSTILE[:count] if name == "hostile" else tuple(f"▁{letter}{place + 1}" for place in range(count))


def draw() -> None:
    name = st.sidebar.radio("data", list(SHAPES))
    step = int(st.sidebar.number_input("step", 0, 5, 0))
    guess = st.sidebar.toggle("guess")
    weights, allowed = example(name)
    rows = step + 1 if guess else len(allowed)
    flow = Flow(
        sentence=name,
        kind="Cross-attention",
        layer="layer 1",
        queries=pieces(name, len(allowed), "q")[:rows],
        keys=pieces(name, allowed.shape[1], "k"),
        query_axis="Reads → predicts (query)",
        key_axis="Source token (key)",
        query_side="target",
        key_side="source",
        weights=weights[:, :rows],
        allowed=allowed[:rows],
        row_of_step=tuple(range(rows)),
    )

    def chosen() -> None:
        told = last_choice("flow", n_heads=len(weights), n_queries=rows, n_keys=allowed.shape[1])
        st.session_state.told, st.session_state.shown = told.pin, told.heads

    if st.sidebar.button("pin key 3"):
        st.session_state.told = Pin("key", 2)
    head = st.sidebar.selectbox("head", [None, 1, 2])
    told = st.session_state.get("told")
    shown = st.session_state.get("shown", ()) if head is None else (head,)
    flow_view(
        flow, key="flow", alt="A flow.", caption="How to read this.", choice=Choice(shown, told), on_choice=chosen
    )
    st.session_state.runs = st.session_state.get("runs", 0) + 1
    st.text(f"runs: {st.session_state.runs}")
    st.text(f"told: {told.side} {told.index}" if told else "told: nothing")
