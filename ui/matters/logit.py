"""The part Logit: what each part of the decoder adds to the logit of the piece that was written."""

from __future__ import annotations

from functools import partial
from typing import Final

from transformer.model.anatomy import anatomy
from ui.frame.whatif import for_head
from ui.matters.credit_pictures import bars, open_logit, parts
from ui.matters.parts_of_logit import Grid, sums, what_it_is
from ui.runs.attempt import attempt
from ui.runs.guessing import ask_first
from ui.runs.open_run import OpenRun, address
from ui.runs.show import show
from ui.shared import drawing, menu
from ui.shared.door import st
from words import say

REVEAL: Final = "matters_logit_reveal"


def draw(run: OpenRun) -> None:
    """Draw the part."""
    if not anatomy(run.checkpoint.config).writes:
        st.info(_why_not(run))
        return
    if run.looking.covered:
        ask_first(run, say("What adds to this logit would tell."), key=REVEAL)
        return
    scene = attempt(lambda: open_logit(run))
    if scene is None:
        return
    drawing.beside(partial(show, parts, scene), partial(show, bars, scene), widths=(3, 2))
    st.markdown(drawing.plain(sums(run, scene.found, scene.values)))
    _chosen(run, scene.grid)
    st.caption(drawing.plain(what_it_is(run)))


def _why_not(run: OpenRun) -> str:
    if anatomy(run.checkpoint.config).fills:
        return say(
            "This model writes nothing. Between its stream and its logits stands a head that is not linear, so that "
            "a logit is no sum of what its parts add."
        )
    return say("This model writes nothing: it has no logits that could be taken apart.")


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
