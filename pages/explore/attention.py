"""Page script of Attention: the chosen part, for the run of a sentence or for attention maps from a file."""

from functools import partial

from glassformer.attention import attention_panels
from glassformer.attention.drawn_maps import ATTENTION
from glassformer.frame.run_page import below, checkpoint_or_maps
from glassformer.frame.source_box import given_head, of_a_sentence
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.open_run import open_maps
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.runs.trace import LabelledMaps

session.begin(ATTENTION.path)


@st.fragment
def look(name: str) -> None:
    """Draw the chosen part of maps that were given; a session keeps the name of their file, not the maps."""
    if (maps := attempt(lambda: loading.open_maps(name))) is None:
        return
    given_head(ATTENTION.title, maps)
    run = open_maps(maps, name)
    attention_panels.chosen(run)
    run.publish()


found = checkpoint_or_maps(ATTENTION.title)
if not isinstance(found, LabelledMaps):
    of_a_sentence(ATTENTION.title, found, partial(below, ATTENTION, attention_panels.draw, None))
else:
    look(st.session_state[session.MODEL])
