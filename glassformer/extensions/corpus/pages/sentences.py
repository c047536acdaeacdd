"""A file of sentences: each line run on the chosen checkpoint, in a table that leads to every page."""

from ui.frame.sidebar import sidebar
from ui.frame.source_box import head_without_run
from ui.runs.open_run import publish
from ui.sentences import sentence_panels
from ui.shared.door import st
from ui.state import session
from words import say

session.begin("sentences")
TITLE = say("A file of sentences")
checkpoint = sidebar(TITLE, shows_run=True)
head_without_run(TITLE)
job = sentence_panels.current(checkpoint)
if job is None:
    st.caption(say("Each line is run separately in the background. Afterwards, you can open it on any page."))
    sentence_panels.ask(checkpoint, None)
    publish(checkpoint, job="")
else:
    sentence_panels.draw(job, checkpoint)
    sentence_panels.ask(checkpoint, job)
