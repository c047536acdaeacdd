"""Every checkpoint folder that was found: what the chosen one is, and why a broken one cannot be opened."""

from transformer.runs.labelled_maps import LabelledMaps
from ui.checkpoints import checkpoint_panels, openable, scores
from ui.frame.sidebar import checkpoint_or_maps
from ui.frame.source_box import head
from ui.runs import sources
from ui.runs.open_run import publish
from ui.shared import cover, drawing
from ui.shared.door import st
from ui.state import session
from words import say

session.begin("checkpoints")
head(say("Checkpoints"))
checkpoint_panels.broken()
chosen = st.container()
checkpoint_panels.folders()  # first: if the chosen one cannot be opened, the page stops there
for source in sources.sources():
    source.explain()
openable.how_to_make_one()
with chosen:
    found = checkpoint_or_maps()
    drawing.notes(session.take_notes())
    if isinstance(found, LabelledMaps):
        openable.card(found, st.session_state[session.MODEL])
    else:
        checkpoint_panels.card(found)
        if not cover.stands_for(cover.PART):
            scores.scores(found)
        checkpoint_panels.features(found)
        checkpoint_panels.further(found)
    publish(found)
