"""A file of sentences: each line run on the chosen checkpoint, in a table that leads to every page."""

from glassformer.extensions.sentences import sentence_panels
from glassformer.frame.decoding import decoding_line
from glassformer.frame.run_page import sidebar
from glassformer.frame.source_box import head_without_run
from glassformer.runs.open_run import publish
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.i18n import say

session.begin("sentences")
TITLE = say("A file of sentences")
checkpoint = sidebar(TITLE, decodes=True)
head_without_run(TITLE)
decoding_line(checkpoint)
job = sentence_panels.current(checkpoint)
if job is None:
    st.caption(say("Each line is run separately in the background. Afterwards, you can open it on any page."))
    sentence_panels.ask(checkpoint, None)
    publish(checkpoint, job="")
else:
    sentence_panels.draw(job, checkpoint)
    sentence_panels.ask(checkpoint, job)
