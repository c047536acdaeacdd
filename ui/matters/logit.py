"""The part Logit: what each part of the decoder adds to the logit of the piece that was written."""

from __future__ import annotations

from typing import Final

import numpy as np

import charts
from charts.contributions import HOW_TO_READ_BARS, HOW_TO_READ_MAP, Bar
from transformer.analysis.attribution.parts import Contributions
from transformer.model.anatomy import anatomy
from ui.frame.whatif import for_head
from ui.matters import credit
from ui.matters.grid_of_parts import Grid, grid_of
from ui.matters.logit_words import part_name, short_name, sums, what_it_is, whose_logit
from ui.matters.rivals import rival_of
from ui.runs.guessing import ask_first
from ui.runs.open_run import OpenRun, address
from ui.shared import drawing, menu
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state import session
from ui.state.click import cell_of, place_of
from ui.state.view import Slot
from words import say, say_n

MAP: Final = "matters_parts"
BARS: Final = "matters_bars"
REVEAL: Final = "matters_logit_reveal"
MOST_BARS: Final = 12


def draw(run: OpenRun) -> None:
    """Draw the part."""
    if not anatomy(run.checkpoint.config).writes:
        st.info(_why_not(run))
        return
    if run.looking.covered:
        ask_first(run, say("What adds to this logit would tell."), key=REVEAL)
        return
    rival = rival_of(run)
    found = credit.contributions_of(run, rival)
    if found is None:
        return
    values = found.values[0] - (found.values[1] if rival is not None else 0.0)
    grid = grid_of(run.checkpoint.config, found.parts, values)
    drawing.beside(lambda: _map(run, grid), lambda: _bars(run, found, values), widths=(3, 2))
    st.markdown(drawing.plain(sums(run, found, values)))
    _chosen(run, grid)
    st.caption(drawing.plain(what_it_is(run)))


def _why_not(run: OpenRun) -> str:
    if anatomy(run.checkpoint.config).fills:
        return say(
            "This model writes nothing. Between its stream and its logits stands a head that is not linear, so that "
            "a logit is no sum of what its parts add."
        )
    return say("This model writes nothing: it has no logits that could be taken apart.")


def _map(run: OpenRun, grid: Grid) -> None:
    slot, key = run.slot, run.key(MAP)
    heads = grid.heads

    def go(cell: tuple[int, int]) -> None:
        if cell in heads:
            _look(slot, *heads[cell])

    figure = charts.contribution_map_spec(
        grid.values,
        rows=grid.rows,
        columns=grid.columns,
        names=grid.names,
        title=whose_logit(run),
        chosen=grid.cell_of(run.view.kind, run.view.layer, run.view.head),
    )
    alt = say("What each of {n} parts of the decoder adds to the logit, layers by components. The table has the same "
              "numbers.", n=int(np.isfinite(grid.values).sum()))  # fmt: skip
    drawing.chart(figure, key=key, alt=alt, how_to_read=HOW_TO_READ_MAP, on_click=on_click(key, cell_of, go))


def _bars(run: OpenRun, found: Contributions, values: np.ndarray) -> None:
    slot, key = run.slot, run.key(BARS)
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    heads = {
        place: (part.stack_attention, part.layer, part.head)
        for place, part in enumerate(found.parts)
        if part.stack_attention is not None and part.layer is not None and part.head is not None
    }

    def go(place: int) -> None:
        if place in heads:
            _look(slot, *heads[place])

    view = run.view
    bars = [
        Bar(
            part_name(found.parts[place]),
            short_name(found.parts[place]),
            float(values[place]),
            place if place in heads else None,
            chosen=heads.get(place) == (view.kind, view.layer, view.head),
        )
        for place in order
    ]
    every, bars, rest = bars, bars[:MOST_BARS], order[MOST_BARS:]
    if rest:
        others = say_n("{n} other", "{n} others", len(rest))
        bars.append(Bar(others, others, float(values[rest].sum())))
    figure = charts.contribution_bars_spec(bars, title=say("The largest parts"), every=every)
    alt = say("The {n} parts that add most to the logit or take most off it; the first is {part}.",
              n=min(MOST_BARS, len(order)), part=bars[0].name)  # fmt: skip
    drawing.chart(figure, key=key, alt=alt, how_to_read=HOW_TO_READ_BARS, on_click=on_click(key, place_of, go))


def _look(slot: Slot, kind: str, layer: int, head: int) -> None:
    """Callback: look at a head."""
    session.replace(slot, kind=kind, layer=layer, head=head)


def _chosen(run: OpenRun, grid: Grid) -> None:
    """Offer what can be done with the head that is looked at."""
    view = run.view
    cell = grid.cell_of(view.kind, view.layer, view.head)
    if cell is None or view.layer is None or view.head is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            drawing.plain(say("{part}: {value:+.3f}.", part=grid.names[cell[0]][cell[1]], value=grid.values[cell])),
            width="content",
        )
        menu.link(
            "attention",
            say("Open its map"),
            address(run.checkpoint, run.link, kind=view.kind, layer=view.layer, head=view.head, panel="head"),
            icon=":material/grid_on:",
        )
    for_head(run, view.kind, view.layer, view.head)
