"""Every checkpoint folder that was found: what the chosen one is, and why a broken one cannot be opened."""

import streamlit as st

from ui import checkpoint_panels, controls, score_panels, state, tensor_panels, training_panels

state.begin("checkpoints")
st.title("Checkpoints", anchor=False)
checkpoint_panels.broken()
chosen = st.container()
checkpoint_panels.folders()  # first: if the chosen one cannot be opened, the page stops there
with chosen:
    checkpoint = controls.sidebar()
    checkpoint_panels.card(checkpoint)
    score_panels.scores(checkpoint)
    training_panels.training(checkpoint)
    checkpoint_panels.features(checkpoint)
    tensor_panels.tensors(checkpoint)
