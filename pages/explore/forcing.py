"""Teacher forcing: how probable the model finds the right output, piece by piece."""

from transformer.checkpoint.load import Checkpoint
from ui.forcing import forcing_panels
from ui.forcing.forcing_pictures import FORCING, judges_itself
from ui.frame.sentence_stepper import Still, sentence
from ui.frame.sidebar import sidebar
from ui.frame.source_box import of_a_sentence
from ui.runs.open_run import open_run
from ui.shared import cover
from ui.shared.door import st
from ui.state import session

session.begin(FORCING.path)


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the page; a step or a click runs this again, but not the controls around it."""
    run = open_run(checkpoint)
    if run is None:
        return
    sentence(run, compact=True, still=Still() if judges_itself(run) else None)
    cover.part(lambda: forcing_panels.draw(run))
    run.publish()


of_a_sentence(FORCING.title, sidebar(FORCING.title, shows_run=True), follow)
