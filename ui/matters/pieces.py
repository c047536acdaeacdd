"""The part Pieces: what the current step owes to each piece, by attention, by hiding it and by gradients."""

from __future__ import annotations

from typing import Final

import numpy as np

import charts
from charts.credit import Column
from charts.theme import capitalised
from transformer.analysis.attribution.gradients import Integrated
from transformer.analysis.attribution.hiding import Hiding
from transformer.analysis.attribution.weighed import Weighed
from transformer.model.anatomy import anatomy
from ui.matters import credit, pieces_words
from ui.matters.agreement import StepView, in_all_steps, in_words
from ui.runs.guessing import ask_first
from ui.runs.open_run import OpenRun
from ui.shared import drawing
from ui.shared.door import st
from words import joined, say

TABLE: Final = "matters_pieces"
REVEAL: Final = "matters_pieces_reveal"


def draw(run: OpenRun) -> None:
    """Draw the part."""
    if not anatomy(run.checkpoint.config).writes:
        st.info(say("This model writes nothing, so there is no step whose piece could be explained."))
        return
    if run.looking.covered:
        ask_first(run, say("What this step owes to each piece would tell."), key=REVEAL)
        return
    weighed = credit.weighed_of(run)
    if weighed is None:
        return
    place = st.container()  # the chart comes first; what takes long is offered under it
    hiding, gradient = credit.hiding_of(run), credit.gradient_of(run)
    integrated = credit.integrated_of(run, run.view.begin)
    with place:
        _table(run, weighed, hiding, gradient, integrated)
        if hiding is not None:
            _compare(run, weighed, hiding)
    if integrated is not None:
        st.caption(drawing.plain(pieces_words.completeness(integrated, run.view.begin)))


def _table(
    run: OpenRun,
    weighed: Weighed,
    hiding: Hiding | None,
    gradient: np.ndarray | None,
    integrated: Integrated | None,
) -> None:
    pieces, step = credit.pieces_of(run), run.view.step
    columns = columns_of(run, weighed, hiding, gradient, integrated)
    target = run.trace.tgt_pieces[step]
    figure = charts.piece_credit_spec(
        pieces,
        columns,
        title=say("Step {step}: what {piece} owes to each piece", step=step + 1, piece=target),
        piece_axis=say("Piece"),
    )
    alt = say(
        "For each of {n} pieces, {m} measures of what step {step} owes to it. The table has the same numbers.",
        n=len(pieces), m=len(columns), step=step + 1,
    )  # fmt: skip
    drawing.chart(figure, key=run.key(TABLE), alt=alt, how_to_read=pieces_words.how_to_read(run, weighed))


def columns_of(
    run: OpenRun,
    weighed: Weighed,
    hiding: Hiding | None,
    gradient: np.ndarray | None,
    integrated: Integrated | None,
) -> list[Column]:
    """The columns of the table; one without numbers says why."""
    n, step, view = len(credit.pieces_of(run)), run.view.step, run.looking.view
    none = np.full(n, np.nan)
    not_yet = say("not measured yet; see under the table")
    lost = none if hiding is None else -hiding.probability_change(step)[:n]
    own_row = say("this step's row begins at this piece, so it cannot be hidden")
    rolls = run.checkpoint.config.residual
    told: dict[str, tuple[np.ndarray, str, str, float]] = {
        "attention": (weighed.attention(view.layer, view.head), ".2f", "", 0.0),
        "hidden": (lost, "+.2f", not_yet if hiding is None else own_row, 0.02),
        "gradient": (none if gradient is None else gradient, "+.3f", not_yet, 0.01),
        "integrated": (none if integrated is None else integrated.credit, "+.2f", not_yet, 0.05),
        "moved": (weighed.moved(view.layer, view.head), ".2f", "", 0.0),
        "rollout": (weighed.rollout if rolls else none, ".2f", pieces_words.no_rollout(run), 0.0),
    }
    return [
        Column(pieces_words.NAMES[name], *numbers, meaning=pieces_words.MEANINGS[name])
        for name, numbers in told.items()
    ]


def _compare(run: OpenRun, weighed: Weighed, hiding: Hiding) -> None:
    """Say whether attention and hiding name the same piece, at this step and at all that may be seen."""
    view = run.looking.view
    here = StepView.of(credit.pieces_of(run), weighed.attention(view.layer, view.head), hiding, run.view.step)
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
