"""Attention: every layer's and head's map of the sentence at hand, and how one weight came to be."""

from transformer.checkpoint.load import Checkpoint
from ui.attention import all_heads, flow, head_table, one_map, one_weight
from ui.attention import controls as attention_controls
from ui.frame.sentence import sentence
from ui.frame.sidebar import sidebar
from ui.frame.source_box import source_box
from ui.runs.open_run import open_run
from ui.shared.door import st
from ui.state import session
from words import say

DRAW = {
    "overview": all_heads.draw,
    "head": one_map.draw,
    "flow": flow.draw,
    "walk": one_weight.draw,
    "table": head_table.draw,
}

session.begin("attention")
st.title(say("Attention"), anchor=False)
checkpoint = sidebar(shows_run=True)
source_box(checkpoint, folded=True)


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the chosen part; a step or a click runs this again, but not the controls around it."""
    run = open_run(checkpoint)
    if run is None:
        return
    sentence(run, compact=True)
    attention_controls.draw(run)
    DRAW[run.view.panel](run)
    run.publish()


follow(checkpoint)
