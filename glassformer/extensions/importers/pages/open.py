"""The page Open a checkpoint: import report of another program's model, questions, a trial sentence, links."""

from dataclasses import replace

from glassformer.extensions.importers import import_report, imported_model
from glassformer.extensions.importers.third_party_models import ways
from glassformer.frame.run_page import chosen_entry
from glassformer.frame.source_box import head
from glassformer.runs.error_boundary import to_the_doctor
from glassformer.runs.run_address import publish_unopened
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.i18n import say

session.begin("open")
for way in ways():
    way.arrive()
head(say("Open a checkpoint"))
st.caption(
    say(
        "Open a model that another program saved: see what is known about it, what is guessed, and what you still "
        "need to specify."
    )
)
top = st.container()
entry = imported_model.source(chosen_entry())
with top:
    for way in ways():
        way.offer(entry)
publish_unopened()
if entry is None:
    imported_model.how_to_bring_one()
    st.stop()
for way in ways():
    way.about(entry)
if entry.holds != "foreign":  # an uploaded checkpoint of this program, or a saved run: nothing is asked
    if entry.holds != "model" or imported_model.trying(entry) is not None:
        imported_model.links(entry)
    st.stop()
found = import_report.examined(entry)
if found is not None:
    import_report.steps(found, has_pieces=import_report.has_pieces(entry, found))
    import_report.summary(found)
    if found.asked:
        to_the_doctor(replace(session.asked(), revision=""))
    if not found.lacks_embeddings:
        import_report.questions(entry, found)
    if found.can_be_written and imported_model.trying(entry) is not None:
        imported_model.going_on(entry)
    import_report.details(found)
