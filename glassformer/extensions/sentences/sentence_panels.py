"""Panels of the page A file of sentences: input box, upload, start, progress, and results while they come."""

from functools import partial
from typing import Final

from glassformer.extensions.sentences.line_table import opened, overview, table
from glassformer.extensions.sentences.sentence_runs import LIMITS, SentenceFile, SentenceRuns
from glassformer.extensions.what_if.what_if_panels import told
from glassformer.runs.error_boundary import attempt
from glassformer.runs.loading import runner
from glassformer.runs.run_address import publish
from glassformer.server import replicas, server_options
from glassformer.server.jobs import Job, JobStatus
from glassformer.shared import drawing
from glassformer.shared.controls import KEEP
from glassformer.shared.drawing import pressed
from glassformer.shared.i18n import st
from glassformer.shared.model_notes import time_of
from glassformer.state import session
from glassformer.state.view import MAIN
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import joined, say, say_n
from transformer.model.anatomy import anatomy
from transformer.runs.query import Beam, Greedy, Query
from transformer.runs.sentence_files import SentenceLine, read_bytes, read_text

TEXT, FILE, START = "sentences_text", "sentences_file", "sentences_start"
ARROW: Final = "=>"  # a tab cannot be typed into a text box
_MEGABYTES: Final = 1
CANCEL: Final = "sentences_cancel"
_LOOK_SECONDS: Final = 1.0
_ROWS_A_SECOND: Final = 400  # of a table that is drawn again: a long one comes less often
GONE: Final = say(
    "The file of sentences that this address refers to is no longer on the server: the server was restarted, or "
    "newer files replaced it. Run the sentences again."
)


@st.cache_resource(show_spinner=False)
def jobs() -> SentenceRuns:
    """All of the server's."""
    return SentenceRuns(runner(), shared=replicas.folder("sentences"))


def current(checkpoint: Checkpoint) -> Job | None:
    """The session's file; shows a message if it is gone."""
    asked = str(st.session_state.get(session.JOB) or "")
    found = jobs().find(asked) or attempt(lambda: jobs().again(asked, checkpoint)) if asked else None
    if asked and found is None:
        st.session_state[session.JOB] = ""
        st.info(replicas.gone(GONE), icon=":material/info:")
    return found


def ask(checkpoint: Checkpoint, job: Job | None) -> None:
    """Draw the box; below results, those of `job`, it is folded away."""
    if TEXT not in st.session_state:  # another tab, or the same one loaded again
        lines = () if job is None else job.about.lines
        st.session_state[TEXT] = "\n".join(joined("\t", filter(None, (one.source, one.reference))) for one in lines)
    running = job is not None and job.seen.is_under_way
    with st.container() if job is None else st.expander(say("Run different sentences, or the same ones again")):
        lines, characters = LIMITS.lines, LIMITS.characters
        most = say(
            "At most {lines:,} lines, each with at most {characters:,} characters.", lines=lines, characters=characters
        )
        st.caption(joined(" ", [_what_is_given(checkpoint), most]))
        st.text_area(
            say("Sentences, one per line"),
            key=TEXT,
            height=220,
            placeholder=say("source {arrow} reference", arrow=ARROW),
            persist_state=KEEP,
        )
        if server_options.mode() != "off":
            st.file_uploader(
                say("Or upload a text file, which replaces the typed text"),
                type=["txt", "tsv"],
                key=FILE,
                max_upload_size=_MEGABYTES,
            )
        said, about = say("Run them"), checkpoint.content_hash
        help = say("Some sentences are still running; cancel them first.") if running else None
        with pressed(st.button, said, key=START, about=about, type="primary", disabled=running, help=help) as asked:
            begun = attempt(lambda: jobs().start(checkpoint, _lines(), session.asked())) if asked else None
            if begun is not None:
                st.session_state[session.JOB] = begun.about.id
                session.replace(MAIN, line=None, listed="all", holding="")  # of another file
    if begun is not None:
        st.rerun()


def _lines() -> tuple[SentenceLine, ...]:
    """The lines to run. Raises `DataError`: they are invalid."""
    file = st.session_state.get(FILE)
    if file is not None:
        return read_bytes(file.getvalue(), LIMITS, label=say("The file {name}", name=file.name))
    text = str(st.session_state.get(TEXT) or "")
    rows = (row if "\t" in row else "\t".join(row.split(ARROW, 1)) for row in text.split("\n"))
    return read_text("\n".join(rows), LIMITS, label=say("What was typed"))


def _what_is_given(checkpoint: Checkpoint) -> str:
    parts = anatomy(checkpoint.config)
    if not parts.writes:
        return say(
            "One text per line. This encoder-only model generates no output, so the app computes a "
            "pseudo-log-likelihood for each text instead, by hiding its tokens one at a time."
        )
    if not parts.reads:
        return say(
            "One prompt per line; the model continues it. You can add a reference after a tab or “{arrow}”.",
            arrow=ARROW,
        )
    return say("One source per line. You can add a reference after a tab or “{arrow}”.", arrow=ARROW)


# ------------------------------------------------------------------------------------------------ results


def draw(job: Job, checkpoint: Checkpoint) -> None:
    """Draw a job's progress and results; `checkpoint` is the selected one, for URLs."""
    file: SentenceFile = job.about
    if file.how.checkpoint != checkpoint.content_hash:
        said = say("These lines were run on {name}, not on the checkpoint now selected.", name=file.checkpoint_name)
        st.info(drawing.with_code(said), icon=":material/info:")
    if file.how.interventions:
        st.warning(drawing.with_code(told(file.how.interventions)), icon=":material/science:")
    running = job.seen.is_under_way
    st.fragment(_how_far, run_every=_LOOK_SECONDS if running else None)(file.id)
    every = max(2.0, len(file.lines) / _ROWS_A_SECOND) if running else None
    st.fragment(_what_is_there, run_every=every)(file.id, checkpoint)


def _how_far(job_id: str) -> None:
    """The first line; takes an id, because a session keeps a fragment's arguments and must not hold the job."""
    job = jobs().find(job_id)
    if job is None:
        return
    seen, file, was_running = job.seen, job.about, f"sentences_running_{job_id}"
    what = say("{model}, {how}.", model=drawing.plain(file.checkpoint_name), how=_how(file.how))
    said = joined(" ", [what, _state(job, seen, file)])
    if not seen.is_under_way:
        st.caption(said)
        if seen.problem is not None:
            st.error(drawing.with_code(seen.problem))
        if st.session_state.pop(was_running, False):
            st.rerun()  # without looking again and again
        return
    st.session_state[was_running] = True
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.progress(len(seen.so_far or ()) / len(file.lines), text=said)
        st.button(say("Cancel"), key=CANCEL, icon=":material/stop:", on_click=partial(jobs().withdraw, job_id))


def _what_is_there(job_id: str, checkpoint: Checkpoint) -> None:
    job = jobs().find(job_id)
    if job is None:
        st.info(GONE, icon=":material/info:")
        return
    file: SentenceFile = job.about
    over, results = not job.seen.is_under_way, file.results(job)
    if results:
        overview(results)
        opened(file, results)
        table(file, results, over=over)
    publish(checkpoint, job=file.id)


def _how(query: Query) -> str:
    if isinstance(query.decoding, Greedy):
        return say("greedy")
    if isinstance(query.decoding, Beam):
        return say_n("{n} beam", "{n} beams", query.decoding.size)
    return say("sampling with seed {seed}", seed=query.decoding.seed)


def _state(job: Job, seen: JobStatus, file: SentenceFile) -> str:
    n, whole = len(seen.so_far or ()), len(file.lines)
    if seen.state == "done":
        return say_n("{n:,} line was run.", "{n:,} lines were run.", n)
    if seen.state in ("cancelled", "failed"):
        return say("Stopped after {n:,} of {whole:,} lines.", n=n, whole=whole)
    if seen.state == "waiting":
        return say("Waiting for other files of sentences to finish.")
    rest = file.rest(job)
    if rest is None:
        return say("{n:,} of {whole:,} lines done.", n=n, whole=whole)
    return say("{n:,} of {whole:,} lines done, about {time} left.", n=n, whole=whole, time=time_of(rest))
