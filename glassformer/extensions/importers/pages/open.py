"""A model of another program: what was understood of it, what is asked, a sentence to try, and the way on."""

from glassformer.extensions.importers.open import questions, report, save_import, trial_run
from glassformer.extensions.importers.source import ways
from glassformer.frame.run_page import chosen_entry
from glassformer.frame.source_box import head
from glassformer.runs.open_run import publish_unopened
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
entry = save_import.source(chosen_entry())
with top:
    for way in ways():
        way.offer(entry)
publish_unopened()
if entry is None:
    save_import.how_to_bring_one()
    st.stop()
for way in ways():
    way.about(entry)
if entry.holds == "model":  # an uploaded checkpoint of this program: nothing is asked
    if trial_run.trying(entry) is not None:
        save_import.links(entry)
    st.stop()
found = report.examined(entry)
if found is not None:
    report.steps(found, has_pieces=questions.has_pieces(entry, found))
    report.summary(found)
    questions.questions(entry, found)
    if found.can_be_written and trial_run.trying(entry) is not None:
        save_import.going_on(entry)
    report.details(found)
