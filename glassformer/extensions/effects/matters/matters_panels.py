"""The page What matters: one row with the part and what it asks beside it, and the part Logit.

The others are in `heads` and `pieces_panel`.
"""

from functools import partial
from typing import Final

from glassformer.extensions.effects.effects_look import EffectAt
from glassformer.extensions.effects.matters import heads, pieces_panel
from glassformer.extensions.effects.matters.credit_pictures import bars, open_logit, parts
from glassformer.extensions.effects.matters.head_effect_pictures import MATTERS
from glassformer.extensions.effects.matters.measures import EFFECTS
from glassformer.extensions.effects.matters.parts_of_logit import Grid, rival_of, sums, what_it_is
from glassformer.extensions.effects.matters.pieces_words import BASELINES
from glassformer.extensions.what_if.whatif import for_head
from glassformer.frame.sentence_stepper import sentence
from glassformer.runs.attempt import attempt
from glassformer.runs.guessing import ask_first
from glassformer.runs.open_run import OpenRun, address
from glassformer.runs.show import choose_part, show
from glassformer.shared import choices, cover, drawing, menu
from glassformer.shared.door import st
from transformer.i18n import say
from transformer.model.anatomy import anatomy

N_RIVALS: Final = 10
REVEAL: Final = "matters_logit_reveal"
PLACES: Final[dict[EffectAt, str]] = {"output": say("Whole output"), "step": say("This step")}


def draw(run: OpenRun) -> None:
    """Draw the sentence, the choice of a part with its own controls, and the part."""
    sentence(run, compact=True)
    with choices.bar(run.slot):
        panel = choose_part(MATTERS, run.slot)
        if panel == "heads" and run.trace.n_steps:
            choices.menu(choices.field(run.slot, "effect"), say("Measure"), EFFECTS, bare=True, width=250)
            choices.choose(choices.field(run.slot, "effect_at"), say("Measured on"), PLACES, bare=True)
        elif panel == "pieces" and anatomy(run.checkpoint.config).writes:
            _pieces(run)
        elif panel == "logit" and anatomy(run.checkpoint.config).writes:
            _rival(run)
    cover.part(lambda: {"heads": heads.draw, "pieces": pieces_panel.draw, "logit": _logit}[panel](run))


def _pieces(run: OpenRun) -> None:
    """Whose weights, and where the line of integrated gradients begins."""
    n_layers, n_heads = run.trace.maps(run.looking.kind).shape[:2]
    choices.let_go(run.slot, n_layers, n_heads)
    layer = choices.menu_of_layers(choices.field(run.slot, "layer"), n_layers)
    choices.menu_of_heads(choices.field(run.slot, "head"), n_heads, disabled=layer is None)
    choices.menu(choices.field(run.slot, "begin"), say("Integrated gradients"), BASELINES, bare=True, width=280)


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


# ------------------------------------------------------------------------------------------------ Logit


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
