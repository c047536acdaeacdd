"""The results of a file of sentences, drawn while they come."""

from __future__ import annotations

from functools import partial
from typing import Final

from transformer.checkpoint.load import Checkpoint
from transformer.runs.query import Beam, Greedy, Query
from ui.runs.change_chips import told
from ui.runs.open_run import publish
from ui.sentences import sentence_files
from ui.sentences.line_table import table
from ui.sentences.opened import opened
from ui.sentences.overview import overview
from ui.sentences.sentence_runs import Job, Progress
from ui.shared import drawing
from ui.shared.door import st
from words import joined, say, say_n

CANCEL: Final = "sentences_cancel"
_LOOK_SECONDS: Final = 1.0
_ROWS_A_SECOND: Final = 400  # of a table that is drawn again: a long one comes less often
_MOST_SECONDS: Final = 90  # beyond, minutes are said


def draw(job: Job, checkpoint: Checkpoint) -> None:
    """Draw how far a job is, and what is there.

    Args:
        job: What is looked at.
        checkpoint: The one that is chosen, for the address.
    """
    if job.how.checkpoint != checkpoint.content_hash:
        said = say(
            "These lines were run on {name}, not on the checkpoint that is chosen now.", name=job.checkpoint_name
        )
        st.info(drawing.plain(said), icon=":material/info:")
    if job.how.interventions:
        st.warning(drawing.plain(told(job.how.interventions)), icon=":material/science:")
    found = job.progress()
    every = None if found.over else _LOOK_SECONDS
    st.fragment(_how_far, run_every=every)(job.id)
    every = None if found.over else max(2.0, found.n_lines / _ROWS_A_SECOND)
    st.fragment(_what_is_there, run_every=every)(job.id, checkpoint)


def _how_far(job_id: str) -> None:
    """The first line; a session keeps what a fragment is given, which must not be the job itself."""
    job = sentence_files.jobs().find(job_id)
    if job is None:
        return
    found = job.progress()
    said = [_with_what(job), _state(found)]
    if found.over:
        st.caption(joined(" ", said))
        if found.problem is not None:
            st.error(drawing.plain(found.problem))
        if st.session_state.pop(_was_running(job_id), False):
            st.rerun()  # without looking again and again
        return
    st.session_state[_was_running(job_id)] = True
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.progress(len(found.results) / found.n_lines, text=joined(" ", said))
        st.button(say("Cancel"), key=CANCEL, icon=":material/stop:", on_click=partial(_cancel, job_id))


def _cancel(job_id: str) -> None:
    """Callback; it must not hold the job, as a session keeps it."""
    job = sentence_files.jobs().find(job_id)
    if job is not None:
        job.cancel()


def _what_is_there(job_id: str, checkpoint: Checkpoint) -> None:
    job = sentence_files.jobs().find(job_id)
    if job is None:
        st.info(sentence_files.GONE, icon=":material/info:")
        return
    found = job.progress()
    if found.results:
        overview(found.results)
        opened(job, found.results)
        table(job, found.results, over=found.over)
    show_address(job, checkpoint)


def show_address(job: Job | None, checkpoint: Checkpoint) -> None:
    """Write the address, which names the job."""
    publish(checkpoint, job="" if job is None else job.id)


def _was_running(job_id: str) -> str:
    return f"sentences_running_{job_id}"


def _with_what(job: Job) -> str:
    return say("{model}, {how}.", model=drawing.plain(job.checkpoint_name), how=_how(job.how))


def _how(query: Query) -> str:
    if isinstance(query.decoding, Greedy):
        return say("greedy")
    if isinstance(query.decoding, Beam):
        return say_n("{n} beam", "{n} beams", query.decoding.size)
    return say("sampling with seed {seed}", seed=query.decoding.seed)


def _state(found: Progress) -> str:
    n, whole = len(found.results), found.n_lines
    if found.state == "done":
        return say_n("{n:,} line was run.", "{n:,} lines were run.", n)
    if found.state in ("cancelled", "failed"):
        return say("Stopped after {n:,} of {whole:,} lines.", n=n, whole=whole)
    if found.state == "waiting":
        return say("Waiting for other files of sentences.")
    if found.rest is None:
        return say("{n:,} of {whole:,} lines.", n=n, whole=whole)
    if found.rest < _MOST_SECONDS:
        return say("{n:,} of {whole:,} lines, about {seconds:.0f} s left.", n=n, whole=whole, seconds=found.rest)
    minutes = round(found.rest / 60)
    return say("{n:,} of {whole:,} lines, about {minutes} min left.", n=n, whole=whole, minutes=minutes)
