"""The results of a file of sentences, drawn while they come."""

from __future__ import annotations

from functools import partial
from typing import Final

from transformer.checkpoint.load import Checkpoint
from transformer.runs.query import Beam, Greedy, Query
from ui.runs.change_chips import told
from ui.runs.open_run import publish
from ui.sentences import sentence_box
from ui.sentences.line_table import opened, table
from ui.sentences.overview import overview
from ui.sentences.sentence_runs import SentenceFile
from ui.server.jobs import Job, Seen
from ui.shared import drawing
from ui.shared.door import st
from words import joined, say, say_n

CANCEL: Final = "sentences_cancel"
_LOOK_SECONDS: Final = 1.0
_ROWS_A_SECOND: Final = 400  # of a table that is drawn again: a long one comes less often
_MOST_SECONDS: Final = 90  # beyond, minutes are said


def draw(job: Job, checkpoint: Checkpoint) -> None:
    """Draw how far a job is, and what is there; `checkpoint` is the one that is chosen, for the address."""
    file: SentenceFile = job.about
    if file.how.checkpoint != checkpoint.content_hash:
        said = say(
            "These lines were run on {name}, not on the checkpoint that is chosen now.", name=file.checkpoint_name
        )
        st.info(drawing.plain(said), icon=":material/info:")
    if file.how.interventions:
        st.warning(drawing.plain(told(file.how.interventions)), icon=":material/science:")
    running = job.seen.is_under_way
    st.fragment(_how_far, run_every=_LOOK_SECONDS if running else None)(file.id)
    every = max(2.0, len(file.lines) / _ROWS_A_SECOND) if running else None
    st.fragment(_what_is_there, run_every=every)(file.id, checkpoint)


def _how_far(job_id: str) -> None:
    """The first line; a session keeps what a fragment is given, which must not be the job itself."""
    job = sentence_box.jobs().find(job_id)
    if job is None:
        return
    seen, file = job.seen, job.about
    what = say("{model}, {how}.", model=drawing.plain(file.checkpoint_name), how=_how(file.how))
    said = joined(" ", [what, _state(job, seen, file)])
    if not seen.is_under_way:
        st.caption(said)
        if seen.problem is not None:
            st.error(drawing.plain(seen.problem))
        if st.session_state.pop(_was_running(job_id), False):
            st.rerun()  # without looking again and again
        return
    st.session_state[_was_running(job_id)] = True
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.progress(len(seen.so_far or ()) / len(file.lines), text=said)
        st.button(say("Cancel"), key=CANCEL, icon=":material/stop:", on_click=partial(_cancel, job_id))


def _cancel(job_id: str) -> None:
    """Callback; it must not hold the job, as a session keeps it."""
    sentence_box.jobs().withdraw(job_id)


def _what_is_there(job_id: str, checkpoint: Checkpoint) -> None:
    job = sentence_box.jobs().find(job_id)
    if job is None:
        st.info(sentence_box.GONE, icon=":material/info:")
        return
    file: SentenceFile = job.about
    over, results = not job.seen.is_under_way, file.results(job)
    if results:
        overview(results)
        opened(file, results)
        table(file, results, over=over)
    publish(checkpoint, job=file.id)


def _was_running(job_id: str) -> str:
    return f"sentences_running_{job_id}"


def _how(query: Query) -> str:
    if isinstance(query.decoding, Greedy):
        return say("greedy")
    if isinstance(query.decoding, Beam):
        return say_n("{n} beam", "{n} beams", query.decoding.size)
    return say("sampling with seed {seed}", seed=query.decoding.seed)


def _state(job: Job, seen: Seen, file: SentenceFile) -> str:
    n, whole = len(seen.so_far or ()), len(file.lines)
    if seen.state == "done":
        return say_n("{n:,} line was run.", "{n:,} lines were run.", n)
    if seen.state in ("cancelled", "failed"):
        return say("Stopped after {n:,} of {whole:,} lines.", n=n, whole=whole)
    if seen.state == "waiting":
        return say("Waiting for other files of sentences.")
    rest = file.rest(job)
    if rest is None:
        return say("{n:,} of {whole:,} lines.", n=n, whole=whole)
    if rest < _MOST_SECONDS:
        return say("{n:,} of {whole:,} lines, about {seconds:.0f} s left.", n=n, whole=whole, seconds=rest)
    minutes = round(rest / 60)
    return say("{n:,} of {whole:,} lines, about {minutes} min left.", n=n, whole=whole, minutes=minutes)
