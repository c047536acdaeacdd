"""The part Pieces: what the current step owes to each piece, by attention, by hiding it and by gradients."""

from __future__ import annotations

from typing import Final

from charts.theme import capitalised
from transformer.analysis.attribution.hiding import Hiding
from transformer.analysis.attribution.weighed import Weighed
from transformer.model.anatomy import anatomy
from ui.matters import credit, pieces_words
from ui.matters import credit_pictures as pictures
from ui.matters.agreement import StepView, in_all_steps, in_words
from ui.matters.credit_pictures import gradient_of, pieces_of, weighed_of
from ui.runs.attempt import attempt
from ui.runs.guessing import ask_first
from ui.runs.open_run import OpenRun
from ui.runs.show import show
from ui.shared import drawing
from ui.shared.door import st
from words import joined, say

REVEAL: Final = "matters_pieces_reveal"


def draw(run: OpenRun) -> None:
    """Draw the part."""
    if not anatomy(run.checkpoint.config).writes:
        st.info(say("This model writes nothing, so there is no step whose piece could be explained."))
        return
    if run.looking.covered:
        ask_first(run, say("What this step owes to each piece would tell."), key=REVEAL)
        return
    weighed = attempt(lambda: weighed_of(run))
    if weighed is None:
        return
    place = st.container()  # the chart comes first; what takes long is offered under it
    hiding, gradient = credit.hiding_of(run), attempt(lambda: gradient_of(run))
    integrated = credit.integrated_of(run, run.view.begin)
    with place:
        show(pictures.pieces, pictures.Owed(run, weighed, hiding, gradient, integrated))
        if hiding is not None:
            _compare(run, weighed, hiding)
    if integrated is not None:
        st.caption(drawing.plain(pieces_words.completeness(integrated, run.view.begin)))


def _compare(run: OpenRun, weighed: Weighed, hiding: Hiding) -> None:
    """Say whether attention and hiding name the same piece, at this step and at all that may be seen."""
    view = run.looking.view
    here = StepView.of(pieces_of(run), weighed.attention(view.layer, view.head), hiding, run.view.step)
    st.markdown(drawing.plain(in_words(here, run.trace.tgt_pieces[run.view.step])))
    weights, first = run.looking.weights(), run.trace.first_row
    n_steps = run.looking.n_steps
    steps = [
        StepView.of(pieces, weights[first + step, : len(pieces)], hiding, step)
        for step in range(n_steps)
        if (pieces := [*run.trace.src_pieces[: weights.shape[1]]] if _reads(run) else _prefix(run, step))
    ]
    st.caption(
        drawing.plain(joined(" ", [say("{whose}.", whose=capitalised(run.looking.whose())), in_all_steps(steps)]))
    )


def _reads(run: OpenRun) -> bool:
    return "encoder" in run.trace.kinds


def _prefix(run: OpenRun, step: int) -> list[str]:
    return list(run.trace.read_pieces[: run.trace.row_of(step) + 1])
