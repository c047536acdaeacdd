"""What matters: what the output owes to the parts of the model and of the sentence, measured by taking them away."""

from transformer.checkpoint.load import Checkpoint
from ui.frame.sentence_stepper import sentence
from ui.frame.sidebar import sidebar
from ui.frame.source_box import of_a_sentence
from ui.matters import heads, logit, pieces_panel
from ui.matters import matters_controls as matters_controls
from ui.matters.head_effect_pictures import MATTERS
from ui.runs.open_run import open_run
from ui.shared import cover
from ui.shared.door import st
from ui.state import session

DRAW = {
    "heads": heads.draw,
    "pieces": pieces_panel.draw,
    "logit": logit.draw,
}

session.begin(MATTERS.path)


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the chosen part; a step or a click runs this again, but not the controls around it."""
    run = open_run(checkpoint)
    if run is None:
        return
    sentence(run, compact=True)
    chosen = matters_controls.draw(run)
    cover.part(lambda: DRAW[chosen](run))
    run.publish()


of_a_sentence(MATTERS.title, sidebar(MATTERS.title, shows_run=True), follow)
