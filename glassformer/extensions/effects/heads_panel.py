"""Part "Heads": head ablation effects, beside what the heads attend to.

Below it are the selected head with its number, its map and a button that ablates it, and a table and a file of all
heads with their effects and concentration.
"""

from collections.abc import Hashable
from functools import partial
from typing import Any, Final, cast

import numpy as np
import pandas as pd

from glassformer.extensions.effects import head_effect_pictures as pictures
from glassformer.extensions.effects.effects_look import EffectAt, EffectsLook
from glassformer.extensions.effects.head_effect_pictures import (
    EFFECTS,
    LEAST,
    WORDS,
    Measured,
    Shown,
    concentration,
    in_numbers,
    name_of,
    said,
    shown,
    step_of,
    values,
    verdict,
    written,
)
from glassformer.extensions.what_if import head_effect_jobs
from glassformer.extensions.what_if.head_effects import HeadEffects
from glassformer.extensions.what_if.what_if_panels import for_head
from glassformer.maps import columns, is_long
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.map_axes import sides
from glassformer.runs.measurement_jobs import begins_by_itself, studies
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import ask_first, show
from glassformer.server.jobs import JobStatus
from glassformer.shared import controls, cover_box, drawing
from glassformer.shared.i18n import here, st
from transformer.i18n import Sentence, say

MEASURE, STOP, REVEAL = "matters_measure", "matters_stop", "matters_heads_reveal"
VERDICT, TABLE, CSV = "matters_verdict", "matters_table", "matters_csv"
LOOK_SECONDS: Final = 0.5
PLACES: Final[dict[EffectAt, str]] = {"output": say("Whole output"), "step": say("This step")}
CHOOSE: Final = say("Click a cell of either chart to look at one head: its weights, and what it changes at each step.")


def draw(run: OpenRun, row: Any) -> None:
    """Draw the part, with its controls in `row`."""
    if run.trace.n_steps:
        with row:
            controls.menu(controls.field(run.slot, "effect"), say("Measure"), EFFECTS, bare=True, width=250)
            controls.choose(controls.field(run.slot, "effect_at"), say("Measured on"), PLACES, bare=True)
    cover_box.part(partial(_heads, run))


def _heads(run: OpenRun) -> None:
    seen = attempt(lambda: head_effect_jobs.begun(run.checkpoint, run.trace))
    if is_long(run, run.view.kind):  # tiles need all the width there is
        place = st.container()
        _grid(run)
    else:
        place, right = st.columns(2, gap="medium")
        with right:
            _grid(run)
    if run.visible.covered:
        with place:
            ask_first(run, say("This chart would give the answer away."), key=REVEAL)
        return
    with place:
        found = _measured(run, seen)
    if found is not None:
        attempt(lambda: _verdict(run, found))
        _one_head(run, found)
        attempt(lambda: _table(run, found))


def _grid(run: OpenRun) -> None:
    behind = partial(columns, run.again(), run.view.kind, sides(run.visible, run.view.kind))
    attempt(lambda: show(pictures.what_they_look_at, Measured(run, None), table=behind))


# ---------------------------------------------------------------- how far it is


def _measured(run: OpenRun, seen: JobStatus | None) -> HeadEffects | None:
    """Draw the map of all heads once it is there, else how far it is; returns what was found."""
    if seen is not None and seen.is_under_way:
        seen = head_effect_jobs.look(run.trace, patience=head_effect_jobs.PATIENCE_SECONDS)
    if seen is None:
        _offer(run)
        return None
    if seen.state == "failed":
        st.error(drawing.with_code(seen.problem or ""))
        _offer(run)
        return None
    if seen.is_under_way:
        st.fragment(_follow, run_every=LOOK_SECONDS)(head_effect_jobs.key_of(run.trace))
        return None
    found: HeadEffects = seen.result
    show(pictures.effects, Measured(run, found))
    return found


def _offer(run: OpenRun) -> None:
    """Draw the button that begins the measurement."""
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
        args=(head_effect_jobs.key_of(run.trace),),
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


# ---------------------------------------------------------------- one head


def _verdict(run: OpenRun, found: HeadEffects) -> None:
    """Say whether the head that looks most sharply is the one that the output owes most to."""
    measure = in_numbers(shown(found, run.view.of(EffectsLook).effect))
    step, kind = step_of(run.visible), run.view.kind
    effects = values(found, kind, measure, n_steps=run.visible.n_steps, step=step)
    sharp = concentration(run.visible, kind, step=step)
    one = verdict(effects, sharp, least=LEAST[measure])
    if one is None:
        return
    icon = ":material/compare_arrows:" if one.outcome == "disagree" else ":material/info:"
    with st.container(key=run.key(VERDICT)):
        st.info(drawing.plain(said(one, kind, effects, sharp, measure, step)), icon=icon)


def _one_head(run: OpenRun, found: HeadEffects) -> None:
    """Draw the head, if one is chosen."""
    view = run.view
    if view.layer is None or view.head is None:
        st.caption(CHOOSE)
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        st.markdown(drawing.plain(_sums_up(run, found, view.layer, view.head)), width="content")
        for_head(run, view.kind, view.layer, view.head)
    scene = Measured(run, found)
    drawing.beside(partial(show, pictures.steps, scene), partial(show, pictures.weights, scene), gap="medium")


def _sums_up(run: OpenRun, found: HeadEffects, layer: int, head: int) -> Sentence:
    """The head's number, and its place among all heads."""
    measure, step, n_steps = shown(found, run.view.of(EffectsLook).effect), step_of(run.visible), run.visible.n_steps
    every = [np.abs(values(found, kind, measure, n_steps=n_steps, step=step)).ravel() for kind in found.of]
    own = values(found, run.view.kind, measure, n_steps=n_steps, step=step)[layer, head]
    sizes = np.concatenate(every)
    return say("{head}: {effect}. By the size of this effect, the head has rank {rank} among all {n} heads.",
               head=name_of(run.view.kind, layer, head), effect=written(own, measure),
               rank=int((sizes > abs(own)).sum()) + 1, n=sizes.size)  # fmt: skip


# ---------------------------------------------------------------- all heads as a table


OF_OUTPUT: Final[dict[Shown, Sentence]] = {
    "log_prob": say("Log-probability, nats"),
    "probability": say("Probability, mean"),
    "kl": say("KL, mean, nats"),
    "pieces": say("Changed choices"),
}
OF_STEP: Final[dict[Shown, Sentence]] = {
    "log_prob": say("This step: log-probability"),
    "probability": say("This step: probability"),
    "kl": say("This step: KL"),
    "pieces": say("This step: changed"),
}
LARGEST: Final = say("Largest weight, mean")
VECTORS: Final = say("Final vectors")
MOST_WITHOUT_SCROLLING: Final = 24  # heads


def _table(run: OpenRun, found: HeadEffects) -> None:
    """Draw the table, folded."""
    with st.expander(say("All numbers as a table")):
        numbers = frame(run, found)
        described: dict[str, Any] = {
            name: st.column_config.NumberColumn(
                label, help=_meaning(name), format="%d" if name.startswith("pieces") else "%.4f"
            )
            for name, label in _labels(found).items()
        }
        names = [name_of(kind, *place) for kind, one in found.of.items() for place in np.ndindex(one.kl.shape[:2])]
        st.container(key=run.key(TABLE)).dataframe(
            numbers[list(described)].assign(head=here(names))[["head", *described]],
            hide_index=True,
            height="content" if len(names) <= MOST_WITHOUT_SCROLLING else "auto",
            column_config={"head": st.column_config.TextColumn(here(say("Without")), pinned=True)} | described,
            alt=say("What changes when each head is set to 0, one row per head."),
        )
        drawing.csv_button(numbers, key=run.key(CSV), title=say("effects of heads"))


def _labels(found: HeadEffects) -> dict[str, Sentence]:
    if not found.ids.size:
        return {"vectors": VECTORS, "largest": LARGEST}
    return {
        **{str(name): label for name, label in OF_OUTPUT.items()},
        **{f"{name}_step": label for name, label in OF_STEP.items()},
        "largest": LARGEST,
    }


def _meaning(column: str) -> Sentence | None:
    """How the numbers of a column are made, for who points at its heading."""
    words = WORDS.get((cast("Shown", column.removesuffix("_step")), column.endswith("_step")))
    return None if words is None else words.meaning


def frame(run: OpenRun, found: HeadEffects) -> pd.DataFrame:
    """One row per head: attention, layer and head from 1, the measures of the whole output, and those of the step."""
    n_steps, step = run.visible.n_steps, run.view.step
    parts = []
    for kind in found.of:
        sharp = concentration(run.visible, kind, step=None)
        layers, heads = (index.ravel() + 1 for index in np.indices(sharp.shape))
        columns: dict[str, Any] = {"attention": kind, "layer": layers, "head": heads}
        if found.ids.size:
            for name in OF_OUTPUT:
                columns[name] = values(found, kind, name, n_steps=n_steps, step=None).ravel()
            columns["step"] = step + 1
            for name in OF_STEP:
                columns[f"{name}_step"] = values(found, kind, name, n_steps=n_steps, step=step).ravel()
        else:
            columns["vectors"] = values(found, kind, "vectors", n_steps=0, step=None).ravel()
        parts.append(pd.DataFrame(columns | {"largest": sharp.ravel()}))
    return pd.concat(parts, ignore_index=True)
