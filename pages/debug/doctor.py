"""Doctor: is the chosen checkpoint healthy? What is wrong first; and what numbers its parameters are."""

from ui.doctor import controls, panels, parameters
from ui.frame.sidebar import sidebar
from ui.frame.source_box import head_without_run
from ui.runs.open_run import publish
from ui.shared import cover
from ui.shared.door import st
from ui.state import session
from words import say

session.begin("doctor")
TITLE = say("Doctor")
checkpoint = sidebar(TITLE)
head_without_run(TITLE)
if controls.part() == "parameters":
    cover.part(lambda: parameters.draw(checkpoint))
else:
    st.caption(say("Tests of the chosen checkpoint: weights, wiring, what it does with sentences, tokenizers."))
    cover.part(lambda: panels.draw(checkpoint))
publish(checkpoint)
