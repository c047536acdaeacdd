"""Every checkpoint folder that was found: what the chosen one is, and why a broken one cannot be opened."""

from ui.checkpoints import panels, scores, tensors, training
from ui.frame.sidebar import sidebar
from ui.shared.door import st
from ui.state import session
from words import say

session.begin("checkpoints")
st.title(say("Checkpoints"), anchor=False)
panels.broken()
chosen = st.container()
panels.folders()  # first: if the chosen one cannot be opened, the page stops there
with chosen:
    checkpoint = sidebar()
    panels.card(checkpoint)
    scores.scores(checkpoint)
    training.training(checkpoint)
    panels.features(checkpoint)
    tensors.tensors(checkpoint)
