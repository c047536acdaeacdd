"""In guess mode, what stands in the place of what would give the answer away."""

from functools import partial

from glassformer.runs.open_run import OpenRun
from glassformer.shared.door import st
from glassformer.state import session
from transformer.i18n import joined, say


def ask_first(run: OpenRun, why: str, *, key: str) -> None:
    """Ask for a guess, saying in a sentence what would be given away, and offer to reveal the step."""
    st.info(joined(" ", [say("What comes next?"), why]), icon=":material/visibility_off:")
    reveal = partial(session.reveal, run.slot, run.stepper.run_id, run.view.step)
    st.button(say("Reveal this step"), key=run.key(key), on_click=reveal, type="primary")
