"""Every checkpoint folder that was found: what the chosen one is, and why a broken one cannot be opened."""

from glassformer import checkpoints
from glassformer.frame.run_page import checkpoint_or_maps
from glassformer.frame.source_box import head
from glassformer.runs import sources
from glassformer.runs.run_address import publish
from glassformer.shared import cover_box, drawing
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.i18n import say
from transformer.runs.trace import LabelledMaps

session.begin("checkpoints")
head(say("Checkpoints"))
checkpoints.broken()
chosen = st.container()
checkpoints.folders()  # first: if the chosen one cannot be opened, the page stops there
for source in sources.sources():
    source.explain()
with chosen:
    found = checkpoint_or_maps()
    drawing.notes(session.take_notes())
    if isinstance(found, LabelledMaps):
        for source in sources.sources():
            source.card(found, st.session_state[session.MODEL])
    else:
        checkpoints.card(found)
        if not cover_box.stands_for(cover_box.PART):
            checkpoints.scores(found)
        checkpoints.features(found)
        checkpoints.further(found)
    publish(found)
