"""The part Pieces: what the current step owes to each piece, by attention, by hiding it and by gradients."""

from functools import partial
from typing import Any, Final

from glassformer.charts.theme import capitalised
from glassformer.extensions.effects.attribution.asked import ask, ask_each
from glassformer.extensions.effects.attribution.gradients import Integrated, integrating
from glassformer.extensions.effects.attribution.hiding import Hiding, hiding
from glassformer.extensions.effects.attribution.weighed import Weighed
from glassformer.extensions.effects.effects_look import EffectsLook
from glassformer.extensions.effects.matters.credit import credit_pictures as pictures
from glassformer.extensions.effects.matters.credit import pieces_words
from glassformer.extensions.effects.matters.credit.credit_pictures import gradient_of, key_of, pieces_of, weighed_of
from glassformer.extensions.effects.matters.credit.pieces_words import BASELINES, StepView, in_all_steps, in_words
from glassformer.runs.attempt import attempt
from glassformer.runs.measured import measured
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import ask_first, show
from glassformer.shared import choices, cover, drawing
from glassformer.shared.door import st
from transformer.i18n import joined, say
from transformer.model.anatomy import anatomy

REVEAL: Final = "matters_pieces_reveal"
HIDING: Final = "matters_hiding"
INTEGRATING: Final = "matters_integrating"
_PRODUCTS_A_SECOND: Final = 1.5e10  # multiplications of one thread, about
_POINTS: Final = 100  # of all lines together until the error is small, about


def draw(run: OpenRun, row: Any) -> None:
    """Draw the part, with its controls in `row`."""
    if anatomy(run.checkpoint.config).writes:
        with row:
            _choices(run)
    cover.part(partial(_credit, run))


def _credit(run: OpenRun) -> None:
    if not anatomy(run.checkpoint.config).writes:
        st.info(say("This encoder-only model generates no output, so there are no steps to explain."))
        return
    if run.looking.covered:
        ask_first(run, say("This chart would give the answer away."), key=REVEAL)
        return
    weighed = attempt(lambda: weighed_of(run))
    if weighed is None:
        return
    place = st.container()  # the chart comes first; what takes long is offered under it
    hidden, gradient = _hiding(run), attempt(lambda: gradient_of(run))
    integrated = _integrated(run)
    with place:
        show(pictures.pieces, pictures.Owed(run, weighed, hidden, gradient, integrated))
        if hidden is not None:
            _compare(run, weighed, hidden)
    if integrated is not None:
        st.caption(drawing.plain(pieces_words.completeness(integrated, run.view.of(EffectsLook).begin)))


# ---------------------------------------------------------------- what may take long is measured when it is asked for


def _hiding(run: OpenRun) -> Hiding | None:
    """What hiding each piece does to each step; None as long as nobody has asked for it, where it takes long."""
    checkpoint, trace = run.checkpoint, run.trace
    key = key_of(run, "hiding", trace.tgt_ids)
    return measured(
        key,
        lambda: hiding(ask_each(checkpoint, trace)),
        seconds=_seconds(run, trace.n_tokens("encoder") or len(trace.read_ids)),
        wish=key,
        widget=run.key(HIDING),
        label=say("Hide each piece in turn"),
    )


def _integrated(run: OpenRun) -> Integrated | None:
    """Integrated gradients of this step; None as long as nobody has asked for them, where they take long."""
    checkpoint, trace, step, baseline = run.checkpoint, run.trace, run.view.step, run.view.of(EffectsLook).begin
    return measured(
        key_of(run, "integrated", step, trace.tgt_ids[step], baseline),
        lambda: integrating(ask(checkpoint, trace, step), baseline=baseline),
        seconds=_seconds(run, _POINTS),
        wish=key_of(run, "integrated"),
        widget=run.key(INTEGRATING),
        label=say("Integrate gradients"),
    )


def _seconds(run: OpenRun, rows: int) -> float:
    """How long it takes to read the run so many times, about: one product for each parameter of a layer and token."""
    config = run.checkpoint.config
    tables = (config.src_vocab_size + (0 if config.shared_vocab else config.tgt_vocab_size)) * config.d_model
    n_tokens = run.trace.n_tokens("encoder") + len(run.trace.read_ids)
    return max(config.count_parameters() - tables, 0) * n_tokens * rows / _PRODUCTS_A_SECOND


# ---------------------------------------------------------------- do attention and hiding agree?


def _compare(run: OpenRun, weighed: Weighed, hidden: Hiding) -> None:
    """Say whether attention and hiding name the same piece, at this step and at all that may be seen."""
    view, whole = run.looking.view, "encoder" in run.trace.kinds
    here = StepView.of(pieces_of(run), weighed.attention(view.layer, view.head), hidden, run.view.step)
    st.markdown(drawing.plain(in_words(here, run.trace.tgt_pieces[run.view.step])))
    weights, first = run.looking.weights(), run.trace.first_row
    steps = []
    for step in range(run.looking.n_steps):
        pieces = run.trace.src_pieces[: weights.shape[1]] if whole else run.trace.read_pieces[: first + step + 1]
        steps.append(StepView.of(pieces, weights[first + step, : len(pieces)], hidden, step))
    st.caption(
        drawing.plain(joined(" ", [say("{whose}.", whose=capitalised(run.looking.whose())), in_all_steps(steps)]))
    )


def _choices(run: OpenRun) -> None:
    """Whose weights, and where the line of integrated gradients begins."""
    n_layers, n_heads = run.trace.maps(run.looking.kind).shape[:2]
    choices.let_go(run.slot, n_layers, n_heads)
    layer = choices.menu_of_layers(choices.field(run.slot, "layer"), n_layers)
    choices.menu_of_heads(choices.field(run.slot, "head"), n_heads, disabled=layer is None)
    choices.menu(choices.field(run.slot, "begin"), say("Integrated gradients"), BASELINES, bare=True, width=280)
