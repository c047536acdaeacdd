"""Start: what this is, the diagram of the loaded model with a sentence running through it, and the ways on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassformer.frame.sidebar import sidebar
from glassformer.frame.source_box import head, source_box
from glassformer.runs.open_run import open_run, publish
from glassformer.shared import menu, page_style
from glassformer.shared.i18n import st
from glassformer.start import diagram
from glassformer.state import session
from transformer.i18n import say

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

session.begin("start")


@st.fragment
def show(checkpoint: Checkpoint) -> None:
    """Draw the page; another sentence runs this again. Without one the ways on remain."""
    row = head(menu.NAME)
    said = say(
        "A Transformer you can see through: type a sentence and watch a trained model work on it piece by "
        "piece, with every number it computes on the way. Each block below opens the page that shows that part "
        "at work."
    )
    st.markdown(said)
    source_box(checkpoint, row)
    diagram.draw_examples(checkpoint)
    run = open_run(checkpoint)
    if run is not None:
        diagram.draw(run)
        run.publish()
    else:
        publish(checkpoint)
    diagram.ways(checkpoint)


checkpoint = sidebar(menu.NAME)
st.html(page_style.TO_SENTENCE)
show(checkpoint)
