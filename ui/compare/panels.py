"""The page Compare: what is compared, both runs with their steppers, and what sets them apart."""

from __future__ import annotations

from transformer.checkpoint.load import Checkpoint
from ui.compare import candidates, choosing, maps, opening, outputs
from ui.compare.pair import Pair
from ui.compare.steps import steppers
from ui.frame.sentence import sentence
from ui.runs.attempt import attempt
from ui.runs.open_run import publish
from ui.shared import drawing
from ui.shared.door import st
from ui.state import comparing, session
from words import say

HIDDEN = say("A comparison shows whole outputs. Switch “Hide candidates until I guess” off in the sidebar to see it.")


def draw(checkpoint: Checkpoint) -> None:
    """Draw the page below its first row.

    Args:
        checkpoint: That of the main slot.
    """
    if session.view().guess:
        st.info(HIDDEN, icon=":material/visibility_off:")
        publish(checkpoint)
        return
    compared, notes = comparing.settled(session.asked())
    drawing.notes(notes)
    choosing.row(compared)
    left, right = st.columns(2, gap="large")
    found = opening.opened(checkpoint, compared, left, right)
    if found is None:
        return
    if isinstance(found, Pair):
        _both(found, left, right)
    else:
        with left if compared != "changed" or not session.asked().interventions else right:
            sentence(found, compact=True)
            if compared == "branches" and found.trace.n_steps:
                candidates.alone(found)
    opening.publish(found)


def _both(pair: Pair, left: opening.Place, right: opening.Place) -> None:
    for place, run in ((left, pair.left), (right, pair.right)):
        with place:
            steppers(pair, run)
    if pair.writes and not pair.is_one_run:
        outputs.draw(pair)
        st.subheader(say("Candidates of this step"))
        attempt(lambda: candidates.draw(pair))
    st.subheader(say("The same map in both runs"))
    maps.controls(pair)
    attempt(lambda: maps.draw(pair))
