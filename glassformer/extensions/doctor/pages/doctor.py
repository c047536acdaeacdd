"""Doctor: is the chosen checkpoint healthy? What is wrong first; and what extensions add."""

from glassformer.extensions.doctor.page import DOCTOR, doctor_panels
from glassformer.frame.sidebar import sidebar
from glassformer.frame.source_box import head_without_run
from glassformer.runs.added_parts import added_parts
from glassformer.runs.open_run import publish
from glassformer.runs.show import choose_part
from glassformer.shared import choices, cover
from glassformer.shared.door import st
from glassformer.state import session
from glassformer.state.view import MAIN
from transformer.i18n import say

session.begin(DOCTOR.path)
checkpoint = sidebar(DOCTOR.title)
head_without_run(DOCTOR.title)
parts = added_parts(DOCTOR.path)
with choices.bar(MAIN):
    part = parts.get(choose_part(DOCTOR, MAIN))
if part is not None:
    cover.part(lambda: part.draw(checkpoint))
else:
    st.caption(
        say("Tests of the chosen checkpoint: its weights, its wiring, its tokenizers, and how it handles sentences.")
    )
    cover.part(lambda: doctor_panels.draw(checkpoint))
publish(checkpoint)
