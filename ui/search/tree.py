"""Beam search of the sentence at hand, as a tree that a click opens at any beginning."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import charts
from charts.search_tree import HOW_TO_READ
from transformer.analysis.search_tree import SearchTree
from transformer.runs.query import Beam, Sampling
from ui.runs.attempt import attempt
from ui.runs.measuring import begins_by_itself
from ui.runs.open_run import OpenRun, address
from ui.search import drawn_tree, opening, round_table, telling
from ui.search.recorded import recorded, searched
from ui.shared import choices, drawing, menu
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state import session
from ui.state.click import place_of
from ui.state.view import Rounds
from words import joined, say, say_n

TREE, WHOLE = "search_tree", "search_whole"
DECODE_SO, DRAW_BESIDE = "search_decode_so", "search_beside"
ROUNDS: Final[dict[Rounds, str]] = {
    "results": say("Up to the last result"),
    "all": say("All steps"),
    "step": say("Up to this step"),
}


def draw(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    if not isinstance(run.trace.query.decoding, Beam):
        unasked = begins_by_itself(run.checkpoint)
        _decodes_otherwise(run, drawn=unasked or run.view.with_beam)
        if not (unasked or run.view.with_beam):
            return
    tree = attempt(lambda: recorded(run.checkpoint, searched(run.trace.query)))
    if tree is None:
        return
    rounds = run.view.rounds
    if not run.view.guess:
        with row:
            rounds = choices.choose(choices.field(run.slot, "rounds"), say("Steps drawn"), ROUNDS, bare=True)
    known, until = _known(run, tree, rounds), _until(run, tree, rounds)
    if until < 0:
        st.info(say("The tree begins with the first piece that you reveal."), icon=":material/visibility_off:")
        return
    step = min(run.view.step, known)
    st.markdown(drawing.plain(telling.of_round(tree, step, run.trace.vocabulary)))
    _chart(run, tree, until, known)
    _ways(run)
    round_table.draw(run, tree, step, known)


def _known(run: OpenRun, tree: SearchTree, rounds: Rounds) -> int:
    """The last round of which anything is said: no later one than the reader has stepped to, or may see."""
    last = len(tree.rounds) - 1
    if run.view.guess:
        return min(run.looking.n_steps - int(run.looking.covered) - 1, last)
    return min(run.view.step, last) if rounds == "step" else last


def _until(run: OpenRun, tree: SearchTree, rounds: Rounds) -> int:
    """The last round that is drawn: after the last result the search goes on, to see that it is the last."""
    known = _known(run, tree, rounds)
    if run.view.guess or rounds != "results":
        return known
    return max(tree.nodes[place].step for place in tree.results)


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
        st.button(say("Decode by beam search"), key=run.key(DECODE_SO), on_click=opening.decode_by_beam)


def _chart(run: OpenRun, tree: SearchTree, until: int, known: int) -> None:
    key, vocabulary, decode = run.key(TREE), run.trace.vocabulary, run.checkpoint.tgt_tokenizer.decode
    beam = isinstance(run.trace.query.decoding, Beam)
    last, step = len(tree.rounds) - 1, run.view.step
    size, alpha = tree.how.size, tree.how.length_penalty
    title = say_n("Search with {n} beam, length penalty {alpha:g}", "Search with {n} beams, length penalty {alpha:g}",
                  size, alpha=alpha)  # fmt: skip
    figure = charts.search_tree_spec(
        drawn_tree.twigs(tree, vocabulary, until=until, known=known, step=step),
        drawn_tree.leaves(tree, decode, known=known),
        title=title,
        start=run.trace.row_label(run.trace.first_row).reads,
        n_steps=last + 1 if run.view.rounds == "step" and not run.view.guess else until + 1,
        step=step,
        shown=run.trace.query.hypothesis if beam and known == last else None,
    )
    best = [decode(tree.ids(place)) for place in tree.standing(known)[:1]]
    alt = say("A tree of the beginnings that the search kept and dropped over {n} steps; the best is “{text}”.",
              n=until + 1, text=joined("", best))  # fmt: skip
    drawing.chart(
        figure,
        key=key,
        alt=alt,
        how_to_read=joined(" ", [HOW_TO_READ, _how_it_ended(tree, until)]) if known == last else HOW_TO_READ,
        fit=True,
        on_click=on_click(key, place_of, opening.opens(run, tree)),
    )


def _how_it_ended(tree: SearchTree, until: int) -> str:
    last = len(tree.rounds) - 1
    if not tree.settled:
        return say("The search ended at the most pieces that may be written.")
    if until < last:
        return say("Until step {n} it went on, and found nothing that came among the results.", n=last + 1)
    return say("It ended when nothing that was open could come among the results any more.")


def _ways(run: OpenRun) -> None:
    """Draw the ways on from what is looked at."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        link = address(run.checkpoint, run.link, step=run.view.step)
        menu.link("step", say("Step through what is shown above"), link, icon=":material/play_arrow:")
        if run.trace.query.forced:
            st.button(
                say("Search without the forced beginning"),
                key=run.key(WHOLE),
                on_click=partial(session.show, run.slot, (), 0, run.view.step),
                icon=":material/undo:",
            )
