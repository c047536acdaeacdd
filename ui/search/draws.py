"""Many draws of the sentence at hand: how often each output came, beside how probable it was."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

from transformer.checkpoint.load import Checkpoint
from transformer.runs.query import MAX_SEED, Sampling
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.measured import takes_about
from ui.runs.open_run import OpenRun, publish
from ui.search import drawn_outputs, settings
from ui.search.draw_jobs import Jobs, Progress, Wanted
from ui.shared import choices, drawing
from ui.shared.door import st
from ui.state import session
from ui.state.link import Link
from ui.state.view import MAIN, MOST_DRAWS, Slot, View
from words import joined, say, say_n

START, CANCEL, FURTHER = "search_draw", "search_cancel", "search_further"
COUNTS: Final = (20, 50, 100, 200)
_LOOK_SECONDS: Final = 0.7
_UNASKED_SECONDS: Final = 0.6


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """All of the server's."""
    return Jobs(loading.runner)  # not the runner itself, which holds all finished runs


def draw(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    if run.view.guess:
        said = say("Draws would give the answer away: switch off that candidates are hidden, in the sidebar.")
        st.info(said, icon=":material/visibility_off:")
        return
    with row:
        options = {n: say_n("{n} draw", "{n} draws", n) for n in COUNTS}
        n = choices.choose(choices.field(run.slot, "draws"), say("How many draws"), options, otherwise=50, bare=True)
    how = settings.draw(run)
    wanted = wanted_of(run, how, n)
    if _begins_by_itself(run, wanted):
        _begin(wanted, run.checkpoint)
    job = jobs().find(wanted)
    progress = None if job is None else job.progress()
    _start(run, wanted, progress)
    if progress is None:
        return
    every = None if progress.over else _LOOK_SECONDS
    st.fragment(_follow, run_every=every)(wanted, run.slot, run.checkpoint, run.link)


def wanted_of(run: OpenRun, how: Sampling, n: int) -> Wanted:
    """What is drawn: the run's sentence with these settings."""
    query = replace(run.trace.query, decoding=replace(how, seed=0), hypothesis=0)
    return Wanted(loading.visitor(), query, run.view.first_seed, n)


def _begins_by_itself(run: OpenRun, wanted: Wanted) -> bool:
    """Whether the draws that the part opens with are made unasked: where a class would not queue for them."""
    as_opened = wanted.n == View.draws and wanted.first_seed == View.first_seed and not settings.is_tried(run.view)
    return as_opened and jobs().find(wanted) is None and _seconds(run, wanted) <= _UNASKED_SECONDS


def _seconds(run: OpenRun, wanted: Wanted) -> float:
    """How long the draws take, about: they are as long as the run, and go through the model some at a time."""
    return wanted.n * run.trace.n_steps * (3e-4 + run.checkpoint.config.count_parameters() * 2.1e-10)


def _start(run: OpenRun, wanted: Wanted, progress: Progress | None) -> None:
    """Draw the button that begins, and which seeds it takes."""
    first, last = wanted.first_seed, wanted.first_seed + wanted.n - 1
    with st.container(horizontal=True, vertical_alignment="center"):
        if progress is None or progress.state in ("cancelled", "failed"):
            st.button(
                say_n("Draw {n} time", "Draw {n} times", wanted.n),
                key=run.key(START),
                type="primary",
                icon=":material/casino:",
                on_click=partial(_begin, wanted, run.checkpoint),
            )
            if (seconds := _seconds(run, wanted)) > _UNASKED_SECONDS:
                st.caption(takes_about(seconds), width="content")
        st.caption(say("Seeds {first:,} to {last:,}: the same seeds draw the same outputs.", first=first, last=last))
        if progress is not None and progress.over:
            further = first + wanted.n if last + MOST_DRAWS < MAX_SEED - MOST_DRAWS else 0
            st.button(
                say("Take other seeds"),
                key=run.key(FURTHER),
                on_click=partial(session.replace, run.slot, first_seed=further, opened_seed=None),
            )


def _begin(wanted: Wanted, checkpoint: Checkpoint) -> None:
    """Callback."""
    attempt(lambda: jobs().start(wanted, checkpoint))


def _cancel(wanted: Wanted) -> None:
    """Callback; a session keeps it, so that it does not hold the job."""
    job = jobs().find(wanted)
    if job is not None:
        job.cancel()


def _follow(wanted: Wanted, slot: Slot, checkpoint: Checkpoint, link: Link) -> None:
    """How far it is, and what is there; a session keeps what a fragment is given, which must not be the run."""
    job = jobs().find(wanted)
    if job is None:
        return
    found, running = job.progress(), f"{slot}search_running"
    if not found.over:
        st.session_state[running] = wanted
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.progress(len(found.found) / wanted.n, text=_state(found, wanted.n))
            st.button(say("Cancel"), key=f"{slot}{CANCEL}", icon=":material/stop:", on_click=partial(_cancel, wanted))
    elif st.session_state.get(running) is not None:
        st.session_state[running] = None
        st.rerun()  # without looking again and again
    elif found.state != "done":
        st.caption(_state(found, wanted.n))
    if found.problem is not None:
        st.error(drawing.plain(found.problem))
    if found.found:
        there = replace(link.view, step=0, **settings.NOT_TRIED)
        drawn = replace(link, decoding=wanted.query.decoding, hypothesis=0, view=there)
        drawn_outputs.draw(found.found, slot, checkpoint, drawn)
    if slot == MAIN:  # a click runs this alone again, and not the page around it
        publish(checkpoint, replace(link, view=session.view(slot)))


def _state(found: Progress, n: int) -> str:
    if found.state == "waiting":
        return say("Waiting for the draws of others.")
    done = say("{done} of {n} draws.", done=len(found.found), n=n)
    stopped = found.state in ("cancelled", "failed")
    return joined(" ", [say("Stopped."), done]) if stopped else done
