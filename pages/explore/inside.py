"""Inside: the parts of the loaded model, and what the rest of the forward pass did with the sentence."""

from transformer.checkpoint.load import Checkpoint
from ui.frame.sentence_stepper import sentence
from ui.frame.sidebar import sidebar
from ui.frame.source_box import of_a_sentence
from ui.inside import embeddings_panel, ffn, lens, model_panel, stream
from ui.inside import inside_controls as inside_controls
from ui.inside.looked_at import INSIDE, deeper_stack
from ui.runs.open_run import open_run
from ui.shared import cover
from ui.shared.door import st
from ui.state import session

DRAW = {
    "model": model_panel.draw,
    "stream": stream.draw,
    "lens": lens.draw,
    "ffn": ffn.draw,
    "pieces": embeddings_panel.draw,
}

session.begin(INSIDE.path)


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the chosen part; a step or a click runs this again, but not the controls around it."""
    run = open_run(checkpoint, kind=deeper_stack(checkpoint))
    if run is None:
        return
    sentence(run, compact=True, still=inside_controls.still(run))
    row = inside_controls.draw(run)
    cover.part(lambda: DRAW[run.view.inside_panel](run, row))
    run.publish()


of_a_sentence(INSIDE.title, sidebar(INSIDE.title, shows_run=True), follow)
