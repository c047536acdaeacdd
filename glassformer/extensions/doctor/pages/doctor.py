"""Doctor: is the chosen checkpoint healthy? What is wrong first; and what extensions add."""

from glassformer.extensions.doctor.page import DOCTOR, FINDINGS
from glassformer.frame.run_page import sidebar
from glassformer.frame.source_box import head_without_run
from glassformer.runs.open_run import publish
from glassformer.runs.show import choose_part
from glassformer.shared import controls, cover_box
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.view import MAIN
from transformer.i18n import say

session.begin(DOCTOR.path)
checkpoint = sidebar(DOCTOR.title)
head_without_run(DOCTOR.title)
with controls.bar(MAIN):
    part = choose_part(DOCTOR, MAIN)
if part == FINDINGS.name:
    st.caption(
        say("Tests of the chosen checkpoint: its weights, its wiring, its tokenizers, and how it handles sentences.")
    )
cover_box.part(lambda: DOCTOR.listed()[part].draw(checkpoint))
publish(checkpoint)
