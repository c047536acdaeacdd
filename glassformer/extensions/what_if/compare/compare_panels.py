"""The page Compare: what is compared, both runs with their steppers, and what sets them apart.

One stepper moves both runs. Its buttons stand at the longer one, so that they reach every step of both; of two alike
at the run of the main slot.
"""

from contextlib import AbstractContextManager
from functools import partial
from typing import Final

from glassformer.extensions.what_if import comparing
from glassformer.extensions.what_if.blocks import told
from glassformer.extensions.what_if.compare import map_difference, outputs, pair_pictures, second_run
from glassformer.extensions.what_if.compare.pair import Pair
from glassformer.extensions.what_if.what_if_look import Compared
from glassformer.frame.sentence_stepper import sentence
from glassformer.frame.sidebar import HOW_NAMES
from glassformer.runs import loading
from glassformer.runs.attempt import attempt
from glassformer.runs.open_run import OpenRun, open_run, publish
from glassformer.runs.show import show
from glassformer.runs.sides import KIND_NAMES
from glassformer.runs.step_rows import heads_name
from glassformer.shared import drawing
from glassformer.shared.door import st
from glassformer.state import session
from glassformer.state.view import Slot
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, joined, say, say_n

Place = AbstractContextManager[object]
HIDDEN = say(
    "A comparison shows whole outputs, so it would give away what comes next. To see it, turn off “Hide candidates "
    "until I guess” in the sidebar."
)
OTHER: Final[dict[Compared, Sentence]] = {
    "changed": say("**Right:** with a change"),
    "sentences": say("**Right:** another sentence"),
    "checkpoints": say("**Right:** another checkpoint"),
    "branches": say("**Right:** another branch"),
    "heads": say("**Right:** another head"),
    "ways": say("**Right:** the same model, run differently"),
}
CONTROL: Final = say("**Left:** the unchanged model")
CHANGED: Final = say("**Right:** with the change")
CHANGES: Final = say("**Right:** with the changes")


def draw(checkpoint: Checkpoint) -> None:
    """Draw the page below its first row."""
    if session.view().guess:
        st.info(HIDDEN, icon=":material/visibility_off:")
        publish(checkpoint)
        return
    compared, notes = comparing.settled(session.asked())
    drawing.notes(notes)
    second_run.row(compared)
    main = open_run(checkpoint)
    if main is None:
        if second_run.stands_right(compared):
            _control_alone(checkpoint)
        return
    head = st.container()
    left, right = st.columns(2, gap="large")
    main_place, other_place = (right, left) if (changed := second_run.stands_right(compared)) else (left, right)
    with other_place:
        st.markdown(CONTROL if changed else _right(compared))
        pair = second_run.beside(main, compared) if not main.earlier else None
    with main_place:
        one_change = len(main.trace.query.interventions) == 1
        st.markdown(_left(main, compared) if not changed else CHANGED if one_change else CHANGES)
        if pair is None:
            sentence(main, compact=True)
    if pair is not None:
        _both(pair, head, left, right)
    elif main.trace.n_steps:
        outputs.draw_alone(main, branches=compared == "branches")
    second_run.publish(main, pair)


def _control_alone(checkpoint: Checkpoint) -> None:
    """Draw the control of a changed run that could not be done, as the sentence above says."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown(CONTROL)
        control = second_run.control(checkpoint)
        if control is not None:
            sentence(control, compact=True)
    with right:
        st.markdown(CHANGED)
        st.caption(say("The changed model could not be run; the message above gives the reason."))


def _both(pair: Pair[OpenRun], head: Place, left: Place, right: Place) -> None:
    for place, run in ((left, pair.left), (right, pair.right)):
        with place:
            if pair.compared == "ways":
                st.caption(drawing.plain(_way(run)))
            _stepper(pair, run)
    if pair.is_one_run:
        st.subheader(say("Two maps of one run"))
        _maps(pair)
        return
    if pair.writes:
        both = outputs.head(pair, head)
        attempt(lambda: show(pair_pictures.outputs, pair))
        with _fold("outputs", say("Both outputs, piece by piece")):
            outputs.draw(pair, both)
        with _fold("candidates", say("Candidates of this step"), is_open=pair.compared == "branches"):
            attempt(lambda: outputs.draw_candidates(pair))
    else:
        outputs.draw_vectors(pair)
    with _fold("maps", say("The same map in both runs")):
        _maps(pair)


def _fold(name: str, label: str, *, is_open: bool = False) -> Place:
    """What a reader unfolds below the answer; where a click on it makes the second run it stands open."""
    return st.expander(label, expanded=is_open, key=f"compared_fold_{name}_{is_open}")


def _maps(pair: Pair[OpenRun]) -> None:
    map_difference.controls(pair)
    attempt(lambda: map_difference.draw(pair))


# ------------------------------------------------------------------------------------------------ over each run


def _left(run: OpenRun, compared: Compared) -> str:
    """What stands over the run of the main slot, if that is not the changed one."""
    if compared == "sentences":
        return say("**Left:** “{sentence}”", sentence=drawing.plain(run.trace.query.source))
    if compared == "branches" and run.trace.query.forced:
        forced = run.trace.query.forced
        piece = drawing.plain(run.trace.vocabulary[forced[-1]])
        return say("**Left:** the branch that starts at step {n} with {piece}", n=len(forced), piece=piece)
    if compared == "branches":
        return say("**Left:** the model's own choice")
    if compared == "heads":
        kind = run.view.kind
        name = heads_name(run.trace, run.view, kind)
        return say("**Left:** {attention}, {map}", attention=KIND_NAMES[kind], map=name)
    return say("**Left:** {checkpoint}", checkpoint=drawing.plain(run.checkpoint.name))


def _right(compared: Compared) -> str:
    """What stands over the other run: a snapshot's name, which the menu below does not say."""
    asked = second_run.differs_in().get("model", "")
    if compared == "checkpoints" and loading.found(asked) != loading.whole(asked):
        return say("**Right:** {checkpoint}", checkpoint=drawing.plain(asked))
    return OTHER[compared]


def _way(run: OpenRun) -> str:
    """How a run was made: how its pieces were chosen, and what was changed."""
    query = run.trace.query
    how = HOW_NAMES[type(query.decoding).__name__.lower()]
    said = say("How the pieces were chosen: {how}.", how=how)
    return joined(" ", [said, told(query.interventions)]) if query.interventions else said


def _stepper(pair: Pair[OpenRun], run: OpenRun) -> None:
    """Draw the pieces of one of the two, with the buttons if it is the one that leads; its steps move the other.

    A source that both have is drawn on the left alone.
    """
    other = pair.right if run is pair.left else pair.left
    sentence(
        run,
        compact=True,
        sourceless=run is pair.right and run.stepper.source == other.stepper.source,
        led=run is not pair.leads,
        moved=partial(_follow, run.slot, other.slot, other.trace.n_steps - 1),
        beside=other.slot,
        shown=second_run.shown(pair),
    )
    if 0 < run.trace.n_steps < other.trace.n_steps:
        st.caption(
            say_n(
                "This output has only {n} piece, so it stays at its last step while the other output continues.",
                "This output has only {n} pieces, so it stays at its last step while the other output continues.",
                run.trace.n_steps,
            )
        )


def _follow(moved: Slot, follows: Slot, last: int) -> None:
    """Callback: the reader has come to rest on another step of one run."""
    report = st.session_state.get(f"{moved}{session.STEPPER}")
    step = report["step"]["step"] if isinstance(report, dict) and isinstance(report.get("step"), dict) else None
    if not isinstance(step, int) or isinstance(step, bool) or step < 0:
        return
    session.replace(moved, step=step)
    if session.view(follows).step != (there := max(min(step, last), 0)):
        session.move_to(follows, there)
