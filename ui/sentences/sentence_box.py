"""The box for sentences, what begins to run them, and the file of them that a session looks at."""

from __future__ import annotations

from typing import Final

from transformer.analysis.line_file import Line, read_bytes, read_text
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import anatomy
from ui.runs.attempt import attempt
from ui.runs.loading import runner
from ui.sentences.sentence_runs import LIMITS, SentenceRuns
from ui.server import switch
from ui.server.jobs import Job
from ui.shared.choices import KEEP
from ui.shared.clicks import pressed
from ui.shared.door import st
from ui.state import session
from ui.state.view import MAIN
from words import joined, say

TEXT, FILE, START = "sentences_text", "sentences_file", "sentences_start"
ARROW: Final = "=>"  # nobody can type a tab into a box
_MEGABYTES: Final = 1
GONE: Final = say(
    "The file of sentences in this address is not kept any more: the server was started anew, or others took its "
    "place. Run it again."
)


@st.cache_resource(show_spinner=False)
def jobs() -> SentenceRuns:
    """All of the server's."""
    return SentenceRuns(runner())


def current() -> Job | None:
    """The one that the session looks at; says so if it is gone."""
    asked = str(st.session_state.get(session.JOB) or "")
    found = jobs().find(asked) if asked else None
    if asked and found is None:
        st.session_state[session.JOB] = ""
        st.info(GONE, icon=":material/info:")
    return found


def ask(checkpoint: Checkpoint, job: Job | None) -> None:
    """Draw the box; below results, those of `job`, it is folded away."""
    if TEXT not in st.session_state:  # another tab, or the same one loaded again
        st.session_state[TEXT] = "" if job is None else _as_text(job.about.lines)
    running = job is not None and job.seen.is_under_way
    with st.container() if job is None else st.expander(say("Other sentences, or the same once more")):
        lines, characters = LIMITS.lines, LIMITS.characters
        most = say("At most {lines:,} lines, {characters:,} characters in each.", lines=lines, characters=characters)
        st.caption(joined(" ", [_what_is_given(checkpoint), most]))
        st.text_area(
            say("Sentences, one a line"),
            key=TEXT,
            height=220,
            placeholder=say("source {arrow} reference", arrow=ARROW),
            persist_state=KEEP,
        )
        if switch.mode() != "off":
            st.file_uploader(
                say("Or a text file, which goes before what is typed"),
                type=["txt", "tsv"],
                key=FILE,
                max_upload_size=_MEGABYTES,
            )
        said, about = say("Run them"), checkpoint.content_hash
        help = say("Cancel those that are being run first.") if running else None
        with pressed(st.button, said, key=START, about=about, type="primary", disabled=running, help=help) as asked:
            begun = attempt(lambda: jobs().start(checkpoint, _lines(), session.asked())) if asked else None
            if begun is not None:
                st.session_state[session.JOB] = begun.about.id
                session.replace(MAIN, line=None, listed="all", holding="")  # of another file
    if begun is not None:
        st.rerun()


def _lines() -> tuple[Line, ...]:
    """What shall be run. Raises `DataError`: it cannot be taken."""
    file = st.session_state.get(FILE)
    if file is not None:
        return read_bytes(file.getvalue(), LIMITS, label=say("The file {name}", name=file.name))
    text = str(st.session_state.get(TEXT) or "")
    rows = (row if "\t" in row else "\t".join(row.split(ARROW, 1)) for row in text.split("\n"))
    return read_text("\n".join(rows), LIMITS, label=say("What was typed"))


def _as_text(lines: tuple[Line, ...]) -> str:
    return "\n".join(joined("\t", filter(None, (line.source, line.reference))) for line in lines)


def _what_is_given(checkpoint: Checkpoint) -> str:
    parts = anatomy(checkpoint.config)
    if not parts.writes:
        return say(
            "A text a line. This model writes nothing: each text gets its pseudo-log-likelihood, every piece hidden "
            "alone."
        )
    if not parts.reads:
        return say(
            "A prompt a line, which the model goes on with; a reference may follow behind a tab or “{arrow}”.",
            arrow=ARROW,
        )
    return say("A source a line; a reference may follow behind a tab or “{arrow}”.", arrow=ARROW)
