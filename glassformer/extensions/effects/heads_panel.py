"""Columns and charts of the table of heads on the page Attention: effect of removing each, progress, verdict."""

from collections.abc import Hashable, Mapping
from functools import partial
from typing import Final, cast

import numpy as np

from glassformer.attention import AttentionLook
from glassformer.attention.head_table_panel import HeadColumn, HeadColumns
from glassformer.attention.head_table_pictures import Heads
from glassformer.extensions.effects import head_effect_pictures as pictures
from glassformer.extensions.effects.effects_look import EffectAt
from glassformer.extensions.effects.head_effect_pictures import Shown
from glassformer.extensions.what_if import head_effect_jobs
from glassformer.extensions.what_if.head_effect_jobs import result_of
from glassformer.extensions.what_if.head_effects import HeadEffects, key_of
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.map_axes import head_of_kind
from glassformer.runs.measurement_jobs import begins_by_itself, studies
from glassformer.runs.open_run import AnyRun, OpenRun
from glassformer.runs.show import ask_first, show
from glassformer.runs.viewed_run import Viewed
from glassformer.server.jobs import JobStatus
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import st
from transformer.i18n import Sentence, joined, say

MEASURE, STOP, REVEAL, VERDICT = "matters_measure", "matters_stop", "matters_heads_reveal", "matters_verdict"
LOOK_SECONDS: Final = 0.5
PLACES: Final[dict[EffectAt, str]] = {"output": say("Whole output"), "step": say("This step")}


class HeadEffectColumns(HeadColumns):
    """What the table of heads has of it."""

    def measures(self, run: Viewed) -> Mapping[str, str]:
        """Every measure, for the charts."""
        return {str(name): _heading(name) for name in pictures.names_of(run)} if isinstance(run, OpenRun) else {}

    def at_step(self, run: AnyRun) -> bool:
        """Whether the reader has chosen the step and not the whole output."""
        return isinstance(run, OpenRun) and pictures.step_of(run.visible) is not None

    def controls(self, run: AnyRun) -> None:
        """Draw the choice between both."""
        if isinstance(run, OpenRun) and run.trace.n_steps:
            controls.choose(controls.field(run.slot, "effect_at"), say("Measured on"), PLACES)

    def charts(self, found: Heads, measure: str) -> None:
        """Draw all heads, one head at each step, and how attention and effect compare."""
        run = cast("OpenRun", found.run)
        if run.visible.covered:
            ask_first(run, say("This chart would give the answer away."), key=REVEAL)
        elif (effects := result_of(head_effect_jobs.look(run.trace))) is not None:
            measured = pictures.MeasuredHeads(run, found.measures, effects)
            one = run.view.layer is not None and run.view.head is not None
            parts = (pictures.effects, pictures.steps) if one else (pictures.effects,)
            drawing.beside(*(partial(show, part, measured) for part in parts), gap="medium")
            attempt(lambda: _verdict(run, effects, cast("Shown", measure)))

    def columns(self, found: Heads) -> Mapping[str, HeadColumn]:
        """The measure of the charts, else the first, of the whole output or of the step; the file has all of both."""
        run = found.run
        if not isinstance(run, OpenRun) or run.visible.covered:
            return {}
        if (effects := result_of(attempt(lambda: head_effect_jobs.begun(run.checkpoint, run.trace)))) is None:
            return {}
        chosen, n_steps, names = pictures.step_of(run.visible), run.visible.n_steps, pictures.names_of(run)
        asked = run.view.of(AttentionLook).measure
        both = {"": None} | ({"_step": run.view.step} if run.trace.n_steps else {})
        return {
            f"{name}{ending}": HeadColumn(
                pictures.values(effects, run.view.kind, name, n_steps=n_steps, step=step),
                say("Without it"),
                joined("\n\n", [_heading(name), pictures.MEASURES[name].meaning]),
                "%d" if name == "pieces" else "%.3f",
                in_table=step == chosen and name == (asked if asked in names else names[0]),
            )
            for ending, step in both.items()
            for name in names
        }

    def under_table(self, found: Heads) -> None:
        """Draw how far the measurement is, or what begins it."""
        run = found.run
        if isinstance(run, OpenRun) and not run.visible.covered:
            _progress(run, head_effect_jobs.look(run.trace))


HEADS = HeadEffectColumns()


def _heading(name: Shown) -> Sentence:
    return say("Without it: {what}", what=pictures.MEASURES[name].name)


# ---------------------------------------------------------------- how far it is


def _progress(run: OpenRun, seen: JobStatus | None) -> None:
    if result_of(seen) is not None:
        return
    if seen is not None and seen.is_under_way:
        st.fragment(_follow, run_every=LOOK_SECONDS)(key_of(run.trace))
        return
    if seen is not None and seen.state == "failed":
        st.error(drawing.with_code(seen.problem or ""))
    if not begins_by_itself(run.checkpoint):
        n = run.checkpoint.config.count_parameters()
        said = say(
            "This model has {n:,} parameters, so this may take a minute; other visitors' requests run first.", n=n
        )
        st.info(said, icon=":material/hourglass_top:")
    st.button(
        say("Measure every head"),
        key=run.key(MEASURE),
        type="primary",
        icon=":material/science:",
        on_click=head_effect_jobs.want,
        args=(key_of(run.trace),),
    )


def _follow(key: Hashable) -> None:
    """Draw how far it is, again and again; once it is over, the page is drawn with what was found."""
    seen = studies().look(key, loading.visitor())
    if seen is None or not seen.is_under_way:
        st.rerun()
    done, whole = (seen.so_far.done, seen.so_far.whole) if seen.so_far else (0, 0)
    said = say("Measuring: {done} of {whole} heads", done=done, whole=whole)
    st.progress(done / max(whole, 1), text=said if whole else say("Waiting for the model"))
    st.button(say("Stop"), key=STOP, icon=":material/stop:", on_click=head_effect_jobs.stop, args=(key,))


# ---------------------------------------------------------------- in words


def _verdict(run: OpenRun, found: HeadEffects, asked: Shown) -> None:
    """Say whether the head that looks most sharply is the one that the output owes most to, and a head's place."""
    measure = pictures.in_numbers(asked)
    step, kind = pictures.step_of(run.visible), run.view.kind
    effects = pictures.values(found, kind, measure, n_steps=run.visible.n_steps, step=step)
    sharp = pictures.concentration(run.visible, kind, step=step)
    if (one := pictures.verdict(effects, sharp, least=pictures.MEASURES[measure].least)) is not None:
        icon = ":material/compare_arrows:" if one.outcome == "disagree" else ":material/info:"
        with st.container(key=run.key(VERDICT)):
            st.info(drawing.with_code(pictures.said(one, kind, effects, sharp, measure, step)), icon=icon)
    if run.view.layer is not None and run.view.head is not None:
        st.markdown(drawing.plain(_sums_up(run, found, asked, run.view.layer, run.view.head)))


def _sums_up(run: OpenRun, found: HeadEffects, measure: Shown, layer: int, head: int) -> Sentence:
    """The head's number, and its place among all heads."""
    step, n_steps = pictures.step_of(run.visible), run.visible.n_steps
    every = [np.abs(pictures.values(found, kind, measure, n_steps=n_steps, step=step)).ravel() for kind in found.of]
    own = pictures.values(found, run.view.kind, measure, n_steps=n_steps, step=step)[layer, head]
    sizes = np.concatenate(every)
    return say("{head}: {effect}. By the size of this effect, the head has rank {rank} among all {n} heads.",
               head=head_of_kind(run.view.kind, layer, head), effect=pictures.written(own, measure),
               rank=int((sizes > abs(own)).sum()) + 1, n=sizes.size)  # fmt: skip
