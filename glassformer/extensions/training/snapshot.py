"""A click on a picture that opens a snapshot of the chosen checkpoint's training."""

from typing import Final

from glassformer.extensions.training import training_time
from glassformer.runs import loading
from glassformer.shared.door import st
from glassformer.state import session
from transformer.checkpoint.snapshots import at_step
from transformer.i18n import say

NO_SNAPSHOTS: Final = say(
    "This checkpoint has no snapshots of its training. A training with the option `--snapshots` keeps some."
)
MOVED: Final = "moved_to_snapshot"  # in the session: a click has just chosen another snapshot


def move_to(step: int) -> None:
    """Callback: look at another snapshot of the same training, at the same place."""
    whole = loading.whole(str(st.session_state.get(session.MODEL)))
    if whole is not None:
        training_time.choose(at_step(whole.name, step))
        st.session_state[MOVED] = True


def whole_page_if_moved() -> None:
    """Draw the whole page once more after such a click; it runs the fragment alone that the picture stands in."""
    if st.session_state.pop(MOVED, False):
        st.rerun()
