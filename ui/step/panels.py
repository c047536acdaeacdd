"""The parts of the Step page: the sentence with its controls, candidates, results, attention, entropy."""

from __future__ import annotations

import charts
from charts.bars import HOW_TO_READ as HOW_TO_READ_ATTENTION
from charts.candidates import HOW_TO_READ as HOW_TO_READ_CANDIDATES
from charts.candidates import HOW_TO_READ_DRAWN, HOW_TO_READ_RULES
from charts.following import follow_steps
from charts.heatmap import HOW_TO_READ as HOW_TO_READ_MAP
from charts.heatmap import HOW_TO_READ_CLOSED
from charts.prompt import HOW_TO_READ as HOW_TO_READ_PROMPT
from charts.prompt import part_map
from ui.runs.groups import prompt_row
from ui.runs.looking import Looking, candidate_list
from ui.runs.open_run import OpenRun
from ui.runs.sides import KIND_NAMES, sides
from ui.shared import drawing, style
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state.click import place_of
from ui.step import choosing, hiding, results, unsureness
from ui.step.unsureness import ENTROPY as ENTROPY
from words import joined, say

CANDIDATES = "candidates"
CROSS_ROW = "cross_row"
CROSS_MAP = "cross_map"


def draw(run: OpenRun) -> None:
    """Draw all of them, below the sentence."""
    if not run.trace.n_steps:
        hiding.draw(run)
        return
    results.results(run)
    with st.container(key=run.key(style.STEP_GRID)):
        candidates(run)
        unsureness.draw(run)
        cross_row(run)
        cross_map(run)


def candidates(run: OpenRun) -> None:
    """Draw the most probable pieces of the step; in guess mode ask for a guess first."""
    if not run.view.guess:
        _candidate_chart(run)
        return
    with st.container(key=run.key(style.GUESSING)):
        if run.looking.covered:
            choosing.guess(run)
        else:
            choosing.verdict(run)
            _candidate_chart(run)


def _candidate_chart(run: OpenRun) -> None:
    listed = candidate_list(run.looking)
    how_to_read = HOW_TO_READ_CANDIDATES if listed.drawn_from is None else HOW_TO_READ_DRAWN
    figure = charts.candidates_spec(
        listed.pieces,
        listed.probabilities,
        ids=listed.ids,
        chosen=listed.chosen,
        ranks=listed.ranks,
        drawn_from=listed.drawn_from,
        others=listed.others,
        rules=listed.rules,
        how_chosen=listed.how_chosen,
        title=say("Step {n}: candidates for the next piece", n=run.view.step + 1),
    )
    drawing.chart(
        figure,
        key=run.key(CANDIDATES),
        alt=say(
            "The most probable pieces after {read}, from {best} down; the output has {chosen}.",
            read=run.trace.row_label(run.looking.row).reads,
            best=listed.pieces[0],
            chosen=listed.pieces[listed.chosen or 0],
        ),
        how_to_read=joined(" ", [how_to_read, HOW_TO_READ_RULES]) if any(listed.rules) else how_to_read,
        fit=True,
        on_click=on_click(run.key(CANDIDATES), place_of, choosing.forcing(run)),
    )
    choosing.by_name(run)


def cross_row(run: OpenRun) -> None:
    """Draw where the current step looked: in the source, or in a decoder alone at all that it had read."""
    looking, n, whose = run.looking, run.view.step + 1, run.looking.whose()
    axes = sides(looking, looking.kind)
    weights = looking.weights()[: len(axes.queries), : len(axes.keys)]
    reads_source = looking.kind == "cross"
    figure = charts.attention_bar_spec(
        weights[looking.row],
        axes.keys,
        title=say("Step {n} looks at the source: {whose}", n=n, whose=whose)
        if reads_source
        else say("Step {n} looks at what it has read: {whose}", n=n, whose=whose),
        key_axis=axes.key_axis,
        allowed=run.trace.mask(looking.kind, run.view.layer)[looking.row, : len(axes.keys)],
        mask_reason=_mask_reason(looking),
        largest=float(weights.max(initial=0)),
    )
    drawing.chart(
        figure,
        key=run.key(CROSS_ROW),
        alt=say("Cross-attention weights of step {n} over the source pieces, {whose}.", n=n, whose=whose)
        if reads_source
        else say("Self-attention weights of step {n} over the pieces read so far, {whose}.", n=n, whose=whose),
        how_to_read=HOW_TO_READ_ATTENTION,
    )


def cross_map(run: OpenRun) -> None:
    """Draw the same attention of all steps, the current one framed."""
    looking, whose = run.looking, run.looking.whose()
    axes = sides(looking, looking.kind)
    n_rows, n_columns = len(axes.queries), len(axes.keys)
    allowed = run.trace.mask(looking.kind, run.view.layer)[:n_rows, :n_columns]
    figure = charts.heatmap_spec(
        looking.weights()[:n_rows, :n_columns],
        queries=axes.queries,
        keys=axes.keys,
        title=say("{kind}: {whose}", kind=KIND_NAMES[looking.kind], whose=whose),
        query_axis=axes.query_axis,
        key_axis=axes.key_axis,
        allowed=allowed,
        mask_reason=_mask_reason(looking),
        colour=axes.key_side,
    )
    rows = [run.trace.row_of(step) for step in range(looking.n_steps)]
    follow_steps(figure, rows, n_rows=n_rows, n_columns=n_columns)
    prompt = prompt_row(run, looking.kind)
    if prompt is not None:
        part_map(figure, row=prompt, column=prompt + 1 if prompt + 1 < n_columns else None)
    alt = say("Cross-attention weights, one row a decoding step, one column a source piece, {whose}.", whose=whose)
    if looking.kind != "cross":
        alt = say("Self-attention weights, one row and one column a piece that was read, {whose}.", whose=whose)
    drawing.chart(
        figure,
        key=run.key(CROSS_MAP),
        alt=alt,
        how_to_read=joined(
            " ",
            [
                HOW_TO_READ_MAP,
                *[HOW_TO_READ_CLOSED] * (not allowed.all()),
                *[HOW_TO_READ_PROMPT] * (prompt is not None),
            ],
        ),
        fit=True,
    )


def _mask_reason(looking: Looking) -> str:
    return say("padding") if looking.kind == "cross" else say("comes later")
