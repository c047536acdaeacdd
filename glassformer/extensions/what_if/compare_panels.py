"""Panels of the page Compare: both runs with their steppers, folds of results, both maps and their difference.

One stepper moves both runs. Its buttons are at the longer run, to reach every step of both; of equally long runs, at
the run of the main slot. A difference of two maps needs equal rows and columns. So if two runs wrote different
outputs, the right run's model reads the left output, and its map is of that.
"""

from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from glassformer.charts.heatmap import HOW_TO_READ
from glassformer.charts.marks import Axis, Numbers, heat
from glassformer.extensions.what_if import comparison, outputs, pair_pictures, second_run
from glassformer.extensions.what_if.comparison import Compared, Pair, read_by
from glassformer.extensions.what_if.second_run import address_of, differ
from glassformer.extensions.what_if.what_if_panels import told
from glassformer.frame.decoding import HOW_NAMES, hidden_while_guessing
from glassformer.frame.sentence_stepper import sentence
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.map_axes import KIND_NAMES
from glassformer.runs.open_run import OpenRun, open_run
from glassformer.runs.run_address import publish
from glassformer.runs.show import show
from glassformer.runs.viewed_run import VisibleTrace, heads_name
from glassformer.shared import controls, drawing
from glassformer.shared.controls import ControlBinding
from glassformer.shared.csv_export import Origin
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.view import MAIN, SECOND, Slot
from glassformer.step.step_pictures import SeenMap, seen_map
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, joined, say, say_n

Place = AbstractContextManager[object]
OTHER: Final[dict[Compared, Sentence]] = {
    "changed": say("**Right:** the changed model"),
    "sentences": say("**Right:** another sentence"),
    "checkpoints": say("**Right:** another checkpoint"),
    "branches": say("**Right:** another branch"),
    "heads": say("**Right:** another head"),
    "ways": say("**Right:** the same model, run differently"),
}
CONTROL: Final = say("**Left:** the unchanged model")


def draw(checkpoint: Checkpoint) -> None:
    """Draw the page below its first row."""
    if hidden_while_guessing(session.view().guess):
        publish(checkpoint)
        return
    compared, notes = comparison.settled(session.asked())
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
        st.markdown(_left(main, compared) if not changed else OTHER["changed"])
        if pair is None:
            sentence(main, compact=True)
    if pair is not None:
        _both(pair, head, left, right)
    elif main.trace.n_steps:
        outputs.draw_alone(main, branches=compared == "branches")
    second_run.shown(main, pair).publish()


def _control_alone(checkpoint: Checkpoint) -> None:
    """Draw the control of a changed run that failed, as the message above says."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown(CONTROL)
        session.stand(SECOND, interventions=(), notes=())
        control = open_run(checkpoint, slot=SECOND, link=comparison.control_of(session.asked()))
        if control is not None:
            sentence(control, compact=True)
    with right:
        st.markdown(OTHER["changed"])
        st.caption(say("The changed model could not be run; the message above gives the reason."))


def _both(pair: Pair[OpenRun], head: Place, left: Place, right: Place) -> None:
    for place, run in ((left, pair.left), (right, pair.right)):
        with place:
            if pair.compared == "ways":
                st.caption(drawing.plain(_way(run)))
            _stepper(pair, run)
    if pair.is_one_run:
        _maps(pair)
        return
    if pair.writes:
        both = outputs.head(pair, head)
        attempt(lambda: show(pair_pictures.outputs, pair))
        with _fold("outputs", say("Both outputs, token by token")):
            outputs.draw(pair, both)
        with _fold("candidates", say("Candidates of this step"), is_open=pair.compared == "branches"):
            attempt(lambda: outputs.draw_candidates(pair))
    else:
        outputs.draw_vectors(pair)
    with _fold("maps", say("The same map in both runs")):
        _maps(pair)


def _fold(name: str, label: str, *, is_open: bool = False) -> Place:
    """An expander below the result; open if a click in it makes the second run."""
    return st.expander(label, expanded=is_open, key=f"compared_fold_{name}_{is_open}")


def _maps(pair: Pair[OpenRun]) -> None:
    map_controls(pair)
    attempt(lambda: draw_maps(pair))


# ------------------------------------------------------------------------------------------------ over each run


def _left(run: OpenRun, compared: Compared) -> str:
    """The heading of the main slot's run, if that is not the changed one."""
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
        name = joined(", ", [KIND_NAMES[kind], heads_name(run.trace, run.view, kind)])
        return say("**Left:** {name}", name=name)
    return say("**Left:** {name}", name=drawing.plain(run.checkpoint.name))


def _right(compared: Compared) -> str:
    """The heading of the other run: a snapshot's name, which the menu below does not show; a proposal is an example."""
    asked = second_run.differs_in().get("model", "")
    if compared == "checkpoints" and loading.found(asked) != loading.whole(asked):
        return say("**Right:** {checkpoint}", checkpoint=drawing.plain(asked))
    return say("**Right:** an example of a change") if compared == "changed" else OTHER[compared]


def _way(run: OpenRun) -> str:
    """How a run's pieces were chosen, and what was changed."""
    query = run.trace.query
    how = HOW_NAMES[type(query.decoding).__name__.lower()]
    said = say("How the tokens were chosen: {how}.", how=how)
    return joined(" ", [said, told(query.interventions)]) if query.interventions else said


def _stepper(pair: Pair[OpenRun], run: OpenRun) -> None:
    """Draw the pieces of one of the two, with the buttons if it leads; its steps move the other.

    A common source is drawn on the left only.
    """
    other = pair.right if run is pair.left else pair.left
    sentence(
        run,
        compact=True,
        sourceless=run is pair.right and run.stepper.source == other.stepper.source,
        led=run is not pair.leads,
        moved=partial(_follow, run.slot, other.slot, other.trace.n_steps - 1),
        beside=other.slot,
        publish=second_run.shown(pair.main, pair).publish,
    )
    if 0 < run.trace.n_steps < other.trace.n_steps:
        said = say_n(
            "This output has only {n} token, so it stays at its last step while the other output continues.",
            "This output has only {n} tokens, so it stays at its last step while the other output continues.",
            run.trace.n_steps,
        )
        st.caption(said)


def _follow(moved: Slot, follows: Slot, last: int) -> None:
    """Callback: the user has moved one run to another step."""
    report = st.session_state.get(f"{moved}{session.STEPPER}")
    step = report["step"]["step"] if isinstance(report, dict) and isinstance(report.get("step"), dict) else None
    if not isinstance(step, int) or isinstance(step, bool) or step < 0:
        return
    session.replace(moved, step=step)
    if session.view(follows).step != (there := max(min(step, last), 0)):
        session.move_to(follows, there)


# ------------------------------------------------------------------------------------------------ both maps

LEFT_MAP: Final = "compared_left_map"
RIGHT_MAP: Final = "compared_right_map"
DIFFERENCE: Final = "compared_difference"
HOW_TO_READ_DIFFERENCE: Final = say(
    "Each cell is the weight in the right-hand map minus the weight in the left-hand map: purple where the "
    "right-hand map gives the key more weight, green where it gives less, colourless where both give the same."
)
READS_LEFT: Final = say(
    "For the map on the right, the model on the right read the output on the left, so both maps have the same rows."
)
SAME_HEAD: Final = say("Both sides show the same map. Choose a different layer, head or kind of attention on one side.")
ROUNDING: Final = 1e-5  # float32 sums in another order
OTHER_TOKENS: Final = say("No difference map: the two maps have different tokens in their rows or columns.")
ONE_MODEL: Final = say(
    "No difference map: the rows of the two maps belong to different outputs. Up to the first difference between "
    "the outputs, both maps are the same, because the same model has read the same tokens."
)
OTHER_KINDS: Final = say("No difference map: the two maps show different kinds of attention, each with its own rows.")


def map_controls(pair: Pair[OpenRun]) -> None:
    """Draw the choice of an attention, a layer and a head: one for both, or of two heads one for each."""
    if pair.compared != "heads":
        _choice(pair.main, MAIN)
        return
    drawing.beside(partial(_choice, pair.left, MAIN), partial(_choice, pair.right, None))


def _choice(run: OpenRun, slot: Slot | None) -> None:
    """Draw one row; without a slot it sets the second run's difference."""
    fields = {
        name: ControlBinding(run.key(name), run.view.get(name), partial(_differ, name))
        if slot is None
        else controls.field(slot, name)
        for name in ("kind", "layer", "head")
    }
    n_layers, n_heads = run.trace.maps(run.view.kind).shape[:2]
    controls.let_go(run.slot, n_layers, n_heads)
    with controls.bar(run.slot):
        kinds = {kind: KIND_NAMES[kind] for kind in run.trace.kinds}
        controls.menu(fields["kind"], say("Attention"), kinds, otherwise=run.view.kind, bare=True, width=200)
        layer = controls.menu_of_layers(fields["layer"], n_layers)
        controls.menu_of_heads(fields["head"], n_heads, disabled=layer is None)


def _differ(name: str, value: str | int | None) -> None:
    """Callback: the second run's view changes."""
    differ(**{name: address_of(value)})


def halves(pair: Pair[OpenRun]) -> tuple[SeenMap, SeenMap, bool, str]:
    """Both maps, whether the right one is of the left output, and why they cannot be subtracted; "" if they can."""
    left, right = (seen_map(run, run.view.kind) for run in (pair.left, pair.right))
    if _same_axes(left, right):
        return left, right, False, ""
    if left.kind != right.kind:
        return left, right, False, OTHER_KINDS
    if pair.is_one_model:
        return left, right, False, ONE_MODEL
    if pair.writes and pair.share_vocabulary and left.kind != "encoder":
        trace = read_by(pair.right, pair.left)
        by_layer = partial(loading.by_layer, pair.right.checkpoint, trace)
        view = replace(pair.right.view, step=pair.left.view.step)
        visible = VisibleTrace(trace, view, slot=pair.left.slot, by_layer=by_layer)
        reads = seen_map(pair.right, left.kind, visible)
        if _same_axes(left, reads):
            return left, reads, True, ""
    return left, right, False, OTHER_TOKENS


def _same_axes(left: SeenMap, right: SeenMap) -> bool:
    return left.sides.queries == right.sides.queries and left.sides.keys == right.sides.keys


def draw_maps(pair: Pair[OpenRun]) -> None:
    """Draw both maps and the difference; errors as of `read_by`."""
    left, right, reads_left, why = halves(pair)
    if pair.compared == "heads" and (left.kind, _name(left)) == (right.kind, _name(right)):
        st.info(SAME_HEAD, icon=":material/compare_arrows:")
        return
    largest = max(float(np.where(one.allowed, one.weights, 0.0).max(initial=0)) for one in (left, right)) or 1.0
    drawing.beside(
        partial(_one, left, LEFT_MAP, say("Left: {map}", map=_name(left)), largest, pair.left.slot),
        partial(
            _one, right, RIGHT_MAP, say("Right: {map}", map=_name(right)), largest,
            pair.left.slot if reads_left else pair.right.slot,
        ),
    )  # fmt: skip
    if why:
        st.caption(why)
        return
    _difference(pair, left, right, reads_left=reads_left)


def _name(half: SeenMap) -> Sentence:
    whose = heads_name(half.visible.trace, half.visible.view, half.kind)
    return say("{attention}: {map}", attention=KIND_NAMES[half.kind], map=whose)


def _one(half: SeenMap, name: str, title: str, largest: float, follows: Slot) -> None:
    figure = half.spec(title, limits=(0.0, largest))
    half.mark(figure)
    drawing.chart(
        figure,
        key=f"{follows}{name}",
        alt=half.alt(title),
        follows=_still,
        how_to_read=joined(" ", [HOW_TO_READ, *half.closed]),
    )


def _still(of: Origin, moment: dict[str, Any]) -> str:
    """A step does not change a whole map; the browser marks its row."""
    return "still"


def _difference(pair: Pair[OpenRun], left: SeenMap, right: SeenMap, *, reads_left: bool) -> None:
    open_cells = left.allowed | right.allowed
    names = dict.fromkeys([_name(right), _name(left)])  # one, where both maps are of one head
    title = say("Right − left: {map}", map=joined(" − ", names))
    change = np.where(right.allowed, right.weights, 0.0) - np.where(left.allowed, left.weights, 0.0)
    figure = heat(
        title,
        Axis(left.sides.query_axis, left.sides.queries),
        Axis(left.sides.key_axis, left.sides.keys),
        Numbers(say("right − left"), change),
        signed=True,
        allowed=open_cells,
    )["spec"]
    left.mark(figure)
    drawing.chart(
        figure,
        key=f"{pair.left.slot}{DIFFERENCE}",
        alt=left.alt(title),
        follows=_still,
        how_to_read=joined(" ", [HOW_TO_READ_DIFFERENCE, *[READS_LEFT] * reads_left]),
    )
    drawing.explain(drawing.plain(moved(left, right)))


def moved(left: SeenMap, right: SeenMap) -> str:
    """How far the right map is from the left one, which has the same rows and columns, in numbers."""
    change = np.where(left.allowed | right.allowed, right.weights - left.weights, 0.0)
    row, column = np.unravel_index(np.abs(change).argmax(), change.shape)
    if not change[row, column]:
        return say("The two maps are equal.")
    if abs(change[row, column]) < ROUNDING:
        return say("The two maps are equal apart from rounding: no weight differs by more than {most:.1g}.",
                   most=float(abs(change[row, column])))  # fmt: skip
    return say("On average, {share:.3f} of a row's weight is on different keys in the map on the right. The largest "
               "change is in row {row} ({query}), column {column} ({key}): from {before:.3f} to {after:.3f}.",
               share=float(np.abs(change).sum(axis=1).mean() / 2), row=int(row) + 1, query=left.sides.queries[row],
               column=int(column) + 1, key=left.sides.keys[column], before=float(left.weights[row, column]),
               after=float(right.weights[row, column]))  # fmt: skip
