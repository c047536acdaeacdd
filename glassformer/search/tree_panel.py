"""Part "Beam tree": controls and tree; clicks that open a result or force a beginning; a switch to beam search."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from glassformer.runs.error_boundary import attempt
from glassformer.runs.open_run import OpenRun
from glassformer.runs.run_address import address
from glassformer.runs.show import show
from glassformer.search import Rounds, tree_pictures
from glassformer.shared import controls, menu
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.link import write_link
from glassformer.state.view import Slot
from transformer.analysis.search_tree import SearchTree
from transformer.i18n import say
from transformer.runs.query import Beam

WHOLE, DECODE_SO, DRAW_BESIDE = "search_whole", "search_decode_so", "search_beside"
ROUNDS: Final[dict[Rounds, str]] = {
    "results": say("Up to the last result"),
    "all": say("All steps"),
    "step": say("Up to this step"),
}


def draw(run: OpenRun, row: Any) -> None:
    """Draw the part, with its controls in `row`."""
    scene = attempt(lambda: tree_pictures.searched(run))
    if not isinstance(run.trace.query.decoding, Beam):
        _decodes_otherwise(run, drawn=scene is not None)
    if scene is None:
        return
    if not run.view.guess:
        with row:
            controls.choose(controls.field(run.slot, "rounds"), say("Steps drawn"), ROUNDS, bare=True)
    if scene.until < 0:
        st.info(say("The tree appears once you reveal the first token."), icon=":material/visibility_off:")
        return
    show(tree_pictures.tree, scene, take=opens(run, scene.tree))
    _ways(run)


def _decodes_otherwise(run: OpenRun, *, drawn: bool) -> None:
    """Say that this run is not a beam search and the tree is of another; for a large model offer to run it."""
    slot, size = run.slot, Beam().size
    if not drawn:
        said = say(
            "This run does not use beam search. A search with this model may take a while, so it starts only when "
            "you ask for it."
        )
    else:
        said = say(
            "This run does not use beam search. The tree shows a separate one for the same sentence, with {n} beams.",
            n=size,
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(said, width="content")
        if not drawn:
            st.button(
                say("Show a separate beam search with {n} beams", n=size),
                key=run.key(DRAW_BESIDE),
                on_click=partial(session.replace, slot, with_beam=True),
            )
        st.button(say("Decode by beam search"), key=run.key(DECODE_SO), on_click=decode_by_beam)


def _ways(run: OpenRun) -> None:
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        link = address(run.checkpoint, run.link, step=run.view.step)
        menu.ways([("step", say("Step through the output above"), write_link(link))], at_step=True)
        if run.trace.query.forced:
            st.button(
                say("Search without the forced beginning"),
                key=run.key(WHOLE),
                on_click=partial(_whole, run.slot),
                icon=":material/undo:",
            )


def _whole(slot: Slot) -> None:
    """Callback: nothing is forced any more; the step stays."""
    session.go_to_output(slot, (), 0, session.view(slot).step)


# ------------------------------------------------------------------------------------------------ what a click opens


def opens(run: OpenRun, tree: SearchTree) -> Callable[[int], None]:
    """Callback with a place in the tree: the result that it leads to, at its step; else the run that is forced so.

    A session keeps it, so it holds of each beginning what that continues, its last piece and its best result, no tree.
    """
    slot, beam, forced = run.slot, isinstance(run.trace.query.decoding, Beam), run.trace.query.forced
    never, ways = frozenset(run.checkpoint.config.never_written), tree.ways_to(tree.results)
    known = [(node.parent, node.piece, ways.get(node.place)) for node in tree.nodes]

    def go(place: int) -> None:
        if place >= len(known):
            return
        at: int | None = place
        ids, result = list[int](), known[place][2]
        while at is not None:
            at, piece, _ = known[at]
            ids.insert(0, piece)
        if beam and result is not None:
            session.go_to_output(slot, forced, result, len(ids) - 1)
        elif not never.intersection(ids):
            session.go_to_output(slot, tuple(ids), 0, len(ids) - 1)

    return go


def decode_by_beam() -> None:
    """Callback: the run itself decodes by beam search."""
    st.session_state[session.HOW] = "beam"
    session.new_run()
