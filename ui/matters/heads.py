"""The part Heads of the page What matters: what the output owes to each head, beside what the heads look at.

Below it stands the head that is looked at: its number, its map, and one click that takes it away.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Final

import numpy as np

from transformer.analysis.head_effects import HeadEffects
from ui.frame.whatif import for_head
from ui.maps.grid import columns, is_long
from ui.matters import effect_verdicts, heads_table
from ui.matters import head_effect_pictures as pictures
from ui.matters.head_effect_pictures import Measured, name_of
from ui.matters.measures import shown, step_of, values, written
from ui.runs import loading, measuring
from ui.runs.attempt import attempt
from ui.runs.guessing import ask_first
from ui.runs.measured import studies
from ui.runs.open_run import OpenRun
from ui.runs.show import show
from ui.runs.sides import sides
from ui.server.jobs import Seen
from ui.shared import drawing
from ui.shared.door import st
from words import Sentence, say

MEASURE, STOP = "matters_measure", "matters_stop"
REVEAL: Final = "matters_heads_reveal"
LOOK_SECONDS: Final = 0.5
CHOOSE: Final = say("Click a cell of either map to look at one head: what it changes step by step, and its weights.")


def draw(run: OpenRun) -> None:
    """Draw the part."""
    seen = attempt(lambda: measuring.begun(run.checkpoint, run.trace))
    if is_long(run, run.view.kind):  # tiles need all the width there is
        place = st.container()
        _grid(run)
    else:
        place, right = st.columns(2, gap="medium")
        with right:
            _grid(run)
    if run.looking.covered:
        with place:
            ask_first(run, say("What this step owes to each head would tell."), key=REVEAL)
        return
    with place:
        found = _measured(run, seen)
    if found is not None:
        attempt(lambda: effect_verdicts.draw(run, found))
        _one_head(run, found)
        attempt(lambda: heads_table.draw(run, found))


def _grid(run: OpenRun) -> None:
    behind = partial(columns, run.again(), run.view.kind, sides(run.looking, run.view.kind))
    attempt(lambda: show(pictures.what_they_look_at, Measured(run, None), table=behind))


# ---------------------------------------------------------------- how far it is


def _measured(run: OpenRun, seen: Seen | None) -> HeadEffects | None:
    """Draw the map of all heads once it is there, else how far it is; returns what was found."""
    if seen is not None and seen.is_under_way:
        seen = measuring.look(run.trace, patience=measuring.PATIENCE_SECONDS)
    if seen is None:
        _offer(run)
        return None
    if seen.state == "failed":
        st.error(drawing.plain(seen.problem or ""))
        _offer(run)
        return None
    if seen.is_under_way:
        st.fragment(_follow, run_every=LOOK_SECONDS)(measuring.key_of(run.trace))
        return None
    found: HeadEffects = seen.result
    show(pictures.effects, Measured(run, found))
    return found


def _offer(run: OpenRun) -> None:
    """Draw the button that begins the measurement."""
    if not measuring.begins_by_itself(run.checkpoint):
        n = run.checkpoint.config.count_parameters()
        said = say("With {n:,} parameters this may take a minute; other visitors go first.", n=n)
        st.info(said, icon=":material/hourglass_top:")
    st.button(
        say("Measure every head"),
        key=run.key(MEASURE),
        type="primary",
        icon=":material/science:",
        on_click=measuring.want,
        args=(measuring.key_of(run.trace),),
    )


def _follow(key: Hashable) -> None:
    """Draw how far it is, again and again; once it is over, the page is drawn with what was found."""
    seen = studies().look(key, loading.visitor())
    if seen is None or not seen.is_under_way:
        st.rerun()
    done, whole = (seen.so_far.done, seen.so_far.whole) if seen.so_far else (0, 0)
    said = say("Measuring: {done} of {whole} heads", done=done, whole=whole)
    st.progress(done / max(whole, 1), text=said if whole else say("Waiting for the model"))
    st.button(say("Stop"), key=STOP, icon=":material/stop:", on_click=measuring.stop, args=(key,))


# ---------------------------------------------------------------- one head


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
    measure, step, n_steps = shown(found, run.view.effect), step_of(run.looking), run.looking.n_steps
    every = [np.abs(values(found, kind, measure, n_steps=n_steps, step=step)).ravel() for kind in found.of]
    own = values(found, run.view.kind, measure, n_steps=n_steps, step=step)[layer, head]
    sizes = np.concatenate(every)
    return say(
        "{head}: {effect}, number {rank} of all {n} heads by size.",
        head=name_of(run, layer, head),
        effect=written(own, measure),
        rank=int((sizes > abs(own)).sum()) + 1,
        n=sizes.size,
    )
