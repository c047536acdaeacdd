"""The page Compare: what is compared, both runs with their steppers, and what sets them apart."""

from __future__ import annotations

from contextlib import AbstractContextManager

from transformer.checkpoint.load import Checkpoint
from ui.compare import candidates, comparison_choice, headings, map_difference, opening, outputs, reading
from ui.compare.pair import Pair
from ui.compare.steps import steppers
from ui.frame.sentence_stepper import sentence
from ui.runs.attempt import attempt
from ui.runs.open_run import open_run, publish
from ui.shared import drawing
from ui.shared.door import st
from ui.state import comparing, session
from words import say

Place = AbstractContextManager[object]
HIDDEN = say("A comparison shows whole outputs. Switch “Hide candidates until I guess” off in the sidebar to see it.")


def draw(checkpoint: Checkpoint) -> None:
    """Draw the page below its first row."""
    if session.view().guess:
        st.info(HIDDEN, icon=":material/visibility_off:")
        publish(checkpoint)
        return
    compared, notes = comparing.settled(session.asked())
    drawing.notes(notes)
    comparison_choice.row(compared)
    main = open_run(checkpoint)
    if main is None:
        if opening.stands_right(compared):
            _control_alone(checkpoint)
        return
    head = st.container()
    left, right = st.columns(2, gap="large")
    main_place, other_place = (right, left) if (changed := opening.stands_right(compared)) else (left, right)
    with other_place:
        st.markdown(headings.other(compared, changed=changed))
        pair = opening.beside(main, compared) if not main.earlier else None
    with main_place:
        st.markdown(headings.main(main, compared, changed=changed))
        if pair is None:
            sentence(main, compact=True)
    if pair is not None:
        _both(pair, head, left, right)
    elif main.trace.n_steps:
        candidates.alone(main, branches=compared == "branches")
    opening.publish(main, pair)


def _control_alone(checkpoint: Checkpoint) -> None:
    """Draw the control of a changed run that could not be done, as the sentence above says."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown(headings.CONTROL)
        control = opening.control(checkpoint)
        if control is not None:
            sentence(control, compact=True)
    with right:
        st.markdown(headings.CHANGED)
        st.caption(say("There is no changed run: the sentence above says why."))


def _both(pair: Pair, head: Place, left: Place, right: Place) -> None:
    for place, run in ((left, pair.left), (right, pair.right)):
        with place:
            if pair.compared == "ways":
                st.caption(drawing.plain(headings.way(run)))
            steppers(pair, run)
    if pair.is_one_run:
        st.subheader(say("Two maps of one run"))
        _maps(pair)
        return
    if pair.writes:
        both = outputs.head(pair, head)
        with _fold("outputs", say("Both outputs, piece by piece")):
            outputs.draw(pair, both)
        with _fold("candidates", say("Candidates of this step"), is_open=pair.compared == "branches"):
            attempt(lambda: candidates.draw(pair))
    else:
        reading.draw(pair)
    with _fold("maps", say("The same map in both runs")):
        _maps(pair)


def _fold(name: str, label: str, *, is_open: bool = False) -> Place:
    """What a reader unfolds below the answer; where a click on it makes the second run it stands open."""
    return st.expander(label, expanded=is_open, key=f"compared_fold_{name}_{is_open}")


def _maps(pair: Pair) -> None:
    map_difference.controls(pair)
    attempt(lambda: map_difference.draw(pair))
