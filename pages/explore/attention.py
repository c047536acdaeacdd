"""Attention: every layer's and head's map of the sentence at hand, and how one weight came to be."""

from transformer.checkpoint.load import Checkpoint
from ui.attention import attention_controls as attention_controls
from ui.attention import attention_panels, flow, head_table, one_weight
from ui.attention.map_pictures import ATTENTION
from ui.frame.sentence_stepper import sentence
from ui.frame.sidebar import checkpoint_or_maps
from ui.frame.source_box import given_head, of_a_sentence
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_maps import open_maps
from ui.runs.open_run import open_run
from ui.shared import cover
from ui.shared.door import st
from ui.state import session

DRAW = {
    "overview": attention_panels.all_heads,
    "head": attention_panels.one,
    "flow": flow.draw,
    "walk": one_weight.draw,
    "table": head_table.draw,
}

session.begin(ATTENTION.path)


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the chosen part; a step or a click runs this again, but not the controls around it."""
    run = open_run(checkpoint)
    if run is None:
        return
    sentence(run, compact=True, still=attempt(lambda: attention_controls.still(run)))
    attention_controls.draw(run)
    attention_panels.otherwise(run)
    cover.part(lambda: attempt(lambda: DRAW[run.view.panel](run)))
    run.publish()


@st.fragment
def look(name: str) -> None:
    """Draw the chosen part of maps that were given; a session keeps the name of their file, not the maps."""
    if (maps := attempt(lambda: loading.open_maps(name))) is None:
        return
    given_head(ATTENTION.title, maps)
    run = open_maps(maps, name)
    attention_controls.draw(run)
    DRAW[run.view.panel](run)
    run.publish()


found = checkpoint_or_maps(ATTENTION.title, shows_run=True)
if isinstance(found, Checkpoint):
    of_a_sentence(ATTENTION.title, found, follow)
else:
    look(st.session_state[session.MODEL])
