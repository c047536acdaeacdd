"""Step through decoding: a sentence becomes another one, piece by piece."""

from transformer.checkpoint.load import Checkpoint
from ui.frame.sentence_stepper import sentence
from ui.frame.sidebar import sidebar
from ui.frame.source_box import of_a_sentence
from ui.frame.whatif import for_head
from ui.runs.open_run import open_run
from ui.shared import cover
from ui.shared.door import st
from ui.state import session
from ui.step import hiding, step_panels
from ui.step.step_pictures import STEP

session.begin(STEP.path)


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the run; a step runs this again, but not the controls around it."""
    run = open_run(checkpoint, kind=STEP.kind(session.view()))
    if run is None:
        return
    sentence(run, chosen=hiding.chosen(run))
    cover.part(lambda: step_panels.draw(run))
    for_head(run, run.looking.kind, run.view.layer, run.view.head)
    run.publish()


of_a_sentence(STEP.title, sidebar(STEP.title, shows_run=True, chooses_head=True), follow)
