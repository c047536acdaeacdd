"""Step through decoding: a sentence becomes another one, piece by piece."""

from transformer.checkpoint.load import Checkpoint
from ui.frame.sentence import sentence
from ui.frame.sidebar import sidebar
from ui.frame.source_box import source_box
from ui.runs.open_run import open_run
from ui.shared.door import st
from ui.state import session
from ui.step import panels
from words import say

session.begin("step")
st.title(say("Step through decoding"), anchor=False)
checkpoint = sidebar(shows_run=True, chooses_head=True)
source_box(checkpoint)


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the run; a step runs this again, but not the controls around it."""
    run = open_run(checkpoint, kind="cross")
    if run is None:
        return
    sentence(run)
    panels.draw(run)
    run.publish()


follow(checkpoint)
