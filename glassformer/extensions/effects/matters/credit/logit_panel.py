"""The part Logit of the page What matters: what each part of the decoder adds to the logit of a piece."""

from functools import partial
from typing import Any, Final

from glassformer.extensions.effects.matters.credit.credit_pictures import bars, open_logit, parts
from glassformer.extensions.effects.matters.credit.parts_of_logit import Grid, rival_of, sums, what_it_is
from glassformer.extensions.what_if.whatif import for_head
from glassformer.runs.attempt import attempt
from glassformer.runs.open_run import OpenRun, address
from glassformer.runs.show import ask_first, show
from glassformer.shared import choices, cover, drawing, menu
from glassformer.shared.door import st
from transformer.i18n import say
from transformer.model.anatomy import anatomy

N_RIVALS: Final = 10
REVEAL: Final = "matters_logit_reveal"


def draw(run: OpenRun, row: Any) -> None:
    """Draw the part, with its controls in `row`."""
    if anatomy(run.checkpoint.config).writes:
        with row:
            _rival(run)
    cover.part(partial(_logit, run))


def _rival(run: OpenRun) -> None:
    """The other piece that a logit is compared with: one of the step's candidates, or one that was."""
    if run.looking.covered:
        return
    trace, kept = run.trace, rival_of(run)
    ids = [one.id for one in trace.step(run.view.step, top_k=N_RIVALS).candidates if not one.chosen]
    ids += [kept] if kept is not None and kept not in ids else []
    options: dict[int | None, str] = {None: say("Its logit")}
    options |= {i: say("Minus the logit of “{piece}”", piece=trace.vocabulary[i]) for i in ids}
    choices.menu(choices.field(run.slot, "rival"), say("Compared with"), options, bare=True, width=280)


def _logit(run: OpenRun) -> None:
    """Draw what each part of the decoder adds to the logit of the piece that was written."""
    if not anatomy(run.checkpoint.config).writes:
        st.info(_why_not(run))
        return
    if run.looking.covered:
        ask_first(run, say("This chart would give the answer away."), key=REVEAL)
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
            "This encoder-only model generates no output. The MLM head between its stream and its logits is not "
            "linear, so a logit is not a sum of contributions."
        )
    return say("This encoder-only model generates no output, so it has no logits to break down.")


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
