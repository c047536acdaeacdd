"""The page How pieces are chosen: its row of parts, and a beam search. The others are in `sampling` and `draws`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from transformer.analysis.search_tree import Node, SearchTree
from transformer.model.anatomy import anatomy
from transformer.runs.query import Beam, Sampling
from ui.frame.sentence_stepper import sentence
from ui.runs.attempt import attempt
from ui.runs.measuring import begins_by_itself
from ui.runs.open_run import OpenRun, address
from ui.runs.show import choose_part, show
from ui.search import draws, sampling, search_pictures, telling
from ui.search.search_pictures import SEARCH, Searched
from ui.shared import choices, cover, drawing, menu
from ui.shared.door import frame, here, st
from ui.state import session
from ui.state.view import Rounds
from words import joined, say

WHOLE, DECODE_SO, DRAW_BESIDE = "search_whole", "search_decode_so", "search_beside"
ROUNDS: Final[dict[Rounds, str]] = {
    "results": say("Up to the last result"),
    "all": say("All steps"),
    "step": say("Up to this step"),
}


def draw(run: OpenRun) -> None:
    """Draw the sentence, the row of parts, to which a part adds its own controls, and the chosen part."""
    sentence(run, compact=True)
    if not anatomy(run.checkpoint.config).writes:
        said = say("This model is an encoder alone: it reads, and writes no pieces, so that none are chosen.")
        st.info(said, icon=":material/info:")
        return
    row = choices.bar(run.slot)
    with row:
        choose_part(SEARCH, run.slot)
    part = {"tree": _tree, "sampling": sampling.draw, "draws": draws.draw}[run.view.search_panel]
    cover.part(lambda: attempt(lambda: part(run, row)))


# ------------------------------------------------------------------------------------------------ the tree


def _tree(run: OpenRun, row: Any) -> None:
    if not isinstance(run.trace.query.decoding, Beam):
        unasked = begins_by_itself(run.checkpoint)
        _decodes_otherwise(run, drawn=unasked or run.view.with_beam)
        if not (unasked or run.view.with_beam):
            return
    scene = attempt(lambda: search_pictures.searched(run))
    if scene is None:
        return
    if not run.view.guess:
        with row:
            choices.choose(choices.field(run.slot, "rounds"), say("Steps drawn"), ROUNDS, bare=True)
    if scene.until < 0:
        st.info(say("The tree begins with the first piece that you reveal."), icon=":material/visibility_off:")
        return
    step = min(run.view.step, scene.known)
    st.markdown(drawing.plain(telling.of_round(scene.tree, step, run.trace.vocabulary)))
    show(search_pictures.tree, scene, take=opens(run, scene.tree))
    _ways(run)
    _round(scene, step)


def _decodes_otherwise(run: OpenRun, *, drawn: bool) -> None:
    """Say that this run is no beam search, and that the tree is of another; of a large model offer that one."""
    slot, size = run.slot, Beam().size
    if not drawn:
        said = say("This run does not decode by beam search, and a search with this model may take a while.")
    elif isinstance(run.trace.query.decoding, Sampling):
        said = say("The run itself samples. This tree is a search with {n} beams of the same sentence.", n=size)
    else:
        said = say("The run itself is greedy. This tree is a search with {n} beams of the same sentence.", n=size)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(said, width="content")
        if not drawn:
            st.button(
                say("Draw a search with {n} beams beside it", n=size),
                key=run.key(DRAW_BESIDE),
                on_click=partial(session.replace, slot, with_beam=True),
            )
        st.button(say("Decode by beam search"), key=run.key(DECODE_SO), on_click=decode_by_beam)


def _ways(run: OpenRun) -> None:
    """Draw the ways on from what is looked at."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        link = address(run.checkpoint, run.link, step=run.view.step)
        menu.link("step", say("Step through what is shown above"), link, icon=":material/play_arrow:")
        if run.trace.query.forced:
            st.button(
                say("Search without the forced beginning"),
                key=run.key(WHOLE),
                on_click=partial(session.go_to_output, run.slot, (), 0, run.view.step),
                icon=":material/undo:",
            )


def _round(scene: Searched, step: int) -> None:
    """Draw what a round weighed as a table, folded away: best first, with what became of each."""
    tree, one = scene.tree, scene.tree.rounds[step]
    nodes = [tree.nodes[place] for place in (*one.kept, *one.closed, *one.dropped)]
    nodes.sort(key=lambda node: -node.compared)
    with st.expander(say("All that step {n} weighed", n=step + 1)):
        st.container(key=f"{scene.slot}search_round").dataframe(
            frame(
                [_weighed(scene.run.trace.vocabulary, tree, node, scene.known) for node in nodes], columns=_COLUMNS
            ),
            hide_index=True,
            height=240 if len(nodes) > 6 else "content",
            column_config={here(name): st.column_config.NumberColumn(format=form) for name, form in _FORMS.items()},
        )
        if len(one.dropped) < one.n_dropped:
            st.caption(say("The {n} nearest of {all:,} that were dropped are listed.", n=len(one.dropped),
                           all=one.n_dropped))  # fmt: skip


_PROBABILITY, _SUM, _SHORT = say("Probability"), say("Sum"), say("Short by")
_COLUMNS: Final[list[str]] = [
    say("Place", about="in an order, 1 is the top"),
    say("Beginning"),
    say("Piece"),
    _PROBABILITY,
    _SUM,
    _SHORT,
    say("What became of it"),
]
_FORMS: Final = {_PROBABILITY: "%.4f", _SUM: "%.3f", _SHORT: "%.3f"}


def _weighed(vocabulary: Sequence[str], tree: SearchTree, node: Node, known: int) -> list[object]:
    before = [vocabulary[i] for i in tree.ids(node.place)[:-1]]
    return [
        node.rank or None,
        joined(" ", before[-6:]),
        vocabulary[node.piece],
        math.exp(node.log_prob),
        node.compared,
        tree.short(node),
        telling.fate_of(tree, node, vocabulary, ends=tree.standing(known), until=known),
    ]


# ------------------------------------------------------------------------------------------------ what a click opens


NONE = -1


@dataclass(frozen=True, eq=False)
class Places:
    """Of a tree what a click needs, by place; a session keeps it instead of the tree."""

    parents: np.ndarray  # what each beginning continues, or `NONE`
    pieces: np.ndarray  # its last piece
    results: np.ndarray  # the best result that it leads to, or `NONE`

    def ids(self, place: int) -> tuple[int, ...]:
        """The pieces of a beginning."""
        found: list[int] = []
        while place != NONE:
            found.append(int(self.pieces[place]))
            place = int(self.parents[place])
        return tuple(reversed(found))


def places(tree: SearchTree) -> Places:
    """What a click needs of a tree."""
    ways = tree.ways_to(tree.results)
    return Places(
        np.array([NONE if node.parent is None else node.parent for node in tree.nodes], np.int32),
        np.array([node.piece for node in tree.nodes], np.int32),
        np.array([ways.get(node.place, NONE) for node in tree.nodes], np.int16),
    )


def opens(run: OpenRun, tree: SearchTree) -> Callable[[int], None]:
    """Callback with a place in the tree: the result that it leads to, at its step; else the run that is forced so."""
    slot, beam, forced = run.slot, isinstance(run.trace.query.decoding, Beam), run.trace.query.forced
    known, never = places(tree), frozenset(run.checkpoint.config.never_written)

    def go(place: int) -> None:
        if place >= len(known.pieces):
            return
        ids, result = known.ids(place), int(known.results[place])
        if beam and result != NONE:
            session.go_to_output(slot, forced, result, len(ids) - 1)
        elif not never.intersection(ids):
            session.go_to_output(slot, ids, 0, len(ids) - 1)

    return go


def decode_by_beam() -> None:
    """Callback: the run itself decodes by beam search."""
    st.session_state[session.HOW] = "beam"
    session.new_run()
