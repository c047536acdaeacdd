"""The page How pieces are chosen: its row of parts, a beam search, a step before the draw. `draws` has the third."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from transformer.analysis.reshaping import Reshaped, Spread, spread
from transformer.analysis.search_tree import Node, SearchTree
from transformer.model.anatomy import anatomy
from transformer.runs.query import Beam, Sampling
from transformer.runs.trace import Trace
from ui.runs.attempt import attempt
from ui.runs.measuring import begins_by_itself
from ui.runs.open_run import OpenRun, address
from ui.runs.show import choose_part, show
from ui.search import draws, opening, pictures, settings, telling
from ui.search.pictures import SEARCH, BeforeDraw, Searched
from ui.shared import choices, drawing, menu
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


def choose(run: OpenRun) -> Any:
    """Draw the row of parts, which is returned: a part adds its own controls. None of a model that writes nothing."""
    if not anatomy(run.checkpoint.config).writes:
        said = say("This model is an encoder alone: it reads, and writes no pieces, so that none are chosen.")
        st.info(said, icon=":material/info:")
        return None
    row = choices.bar(run.slot)
    with row:
        choose_part(SEARCH, run.slot)
    return row


def draw(run: OpenRun, row: Any) -> None:
    """Draw the chosen part, with its controls in `row`."""
    {"tree": _tree, "sampling": _sampling, "draws": draws.draw}[run.view.search_panel](run, row)


# ------------------------------------------------------------------------------------------------ the tree


def _tree(run: OpenRun, row: Any) -> None:
    if not isinstance(run.trace.query.decoding, Beam):
        unasked = begins_by_itself(run.checkpoint)
        _decodes_otherwise(run, drawn=unasked or run.view.with_beam)
        if not (unasked or run.view.with_beam):
            return
    scene = attempt(lambda: pictures.searched(run))
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
    show(pictures.tree, scene, take=opening.opens(run, scene.tree))
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
        st.button(say("Decode by beam search"), key=run.key(DECODE_SO), on_click=opening.decode_by_beam)


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


# ------------------------------------------------------------------------------------------------ before the draw


def _sampling(run: OpenRun, row: Any) -> None:
    if run.looking.covered:
        said = say(
            "What the model could write here would give the answer away: reveal the step on the Step page first."
        )
        st.info(said, icon=":material/visibility_off:")
        return
    settings.draw(run)
    scene = pictures.before(run)
    if scene is not None:
        drawing.beside(lambda: show(pictures.shares, scene), lambda: _numbers(scene), widths=(3, 2))


def _numbers(scene: BeforeDraw) -> None:
    """Draw the numbers of each distribution beside each other, and what follows from them."""
    found = scene.found
    stages = (
        (say("The model's own"), spread(found.raw)),
        (say("Tempered"), spread(found.tempered)),
        (say("Drawn from"), spread(found.cut)),
    )
    rows = [[name, f"{one.entropy:.2f}", f"{one.left:,}", f"{one.top:.4f}"] for name, one in stages]
    columns: list[str] = [
        say("Distribution"),
        say("Entropy (bits)"),
        say("Pieces left"),
        say("Probability of the likeliest"),
    ]
    st.container(key=f"{scene.slot}search_spreads").table(
        frame(rows, columns=columns).set_index(frame([], columns=columns).columns[0])
    )
    st.markdown(drawing.plain(joined(" ", _said(scene.run.trace, found, *(one for _, one in stages)))))


def _said(trace: Trace, found: Reshaped, raw: Spread, tempered: Spread, cut: Spread) -> list[str]:
    piece = trace.vocabulary
    said: list[str] = []
    if raw.best == tempered.best:
        said.append(say("“{piece}” is the likeliest at every temperature: dividing all scores by one number keeps "
                        "their order.", piece=piece[tempered.best]))  # fmt: skip
    else:
        said.append(
            say(
                "The model's own likeliest, “{closed}”, is closed or scored lower by the rules of its config; of "
                "what they leave, “{piece}” is the likeliest at every temperature.",
                closed=piece[raw.best],
                piece=piece[tempered.best],
            )
        )
    said.append(_of_temperature(found.how.temperature, raw, tempered))
    said.append(_of_cut(trace, found, cut))
    return said


def _of_temperature(temperature: float, raw: Spread, tempered: Spread) -> str:
    if temperature == 1:
        return say("At temperature 1 the scores stay as they are.")
    return say(
        "At temperature {temperature:g} the entropy goes from {raw:.2f} to {tempered:.2f} bits.",
        temperature=temperature,
        raw=raw.entropy,
        tempered=tempered.entropy,
    )


def _of_cut(trace: Trace, found: Reshaped, cut: Spread) -> str:
    away = 1 - float(found.tempered[found.cut > 0].sum())
    if not found.how.top_k and found.how.top_p == 1:
        barred = [trace.vocabulary[i] for i in trace.never_written if found.tempered[i] == 0]
        if len(barred) == 1:
            return say("Nothing is cut: every piece but “{piece}” may be drawn, which no output may hold.",
                       piece=barred[0])  # fmt: skip
        if barred:
            return say("Nothing is cut: every piece may be drawn but {n:,} that no output may hold, “{piece}” among "
                       "them.", n=len(barred), piece=barred[0])  # fmt: skip
        return say("Nothing is cut: every piece may be drawn, however improbable.")
    if cut.left == 1:
        return say("One piece is left, so that each draw gives it: as greedy decoding does.")
    by_k = int((found.by_k > 0).sum())
    if found.how.top_k and found.how.top_p < 1:
        return say("Top-k leaves {by_k:,} pieces and top-p {n:,} of these; what was cut had {away:.2%} together.",
                   by_k=by_k, n=cut.left, away=away)  # fmt: skip
    return say("{n:,} pieces are left; what was cut had {away:.2%} together.", n=cut.left, away=away)
