"""Doctor: is the chosen checkpoint healthy? What is wrong first; and what numbers its parameters are."""

from ui.doctor import doctor_panels, parameters
from ui.doctor.parameter_pictures import DOCTOR
from ui.frame.sidebar import sidebar
from ui.frame.source_box import head_without_run
from ui.runs.open_run import publish
from ui.runs.show import choose_part
from ui.shared import choices, cover
from ui.shared.door import st
from ui.state import session
from ui.state.view import MAIN
from words import say

session.begin(DOCTOR.path)
checkpoint = sidebar(DOCTOR.title)
head_without_run(DOCTOR.title)
with choices.bar(MAIN):
    part = choose_part(DOCTOR, MAIN)
if part == "parameters":
    cover.part(lambda: parameters.draw(checkpoint))
else:
    st.caption(
        say("Tests of the chosen checkpoint: its weights, its wiring, its tokenizers, and how it handles sentences.")
    )
    cover.part(lambda: doctor_panels.draw(checkpoint))
publish(checkpoint)
