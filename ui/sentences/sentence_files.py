"""The server's files of sentences, and the one that a session looks at."""

from __future__ import annotations

from ui.runs.loading import runner
from ui.sentences.sentence_runs import Job, Jobs
from ui.shared.door import st
from ui.state import session
from ui.state.view import MAIN
from words import say

GONE = say(
    "The file of sentences in this address is not kept any more: the server was started anew, or others took its "
    "place. Run it again."
)


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """All of them."""
    return Jobs(runner())


def current() -> Job | None:
    """The one that the session looks at; says so if it is gone."""
    asked = str(st.session_state.get(session.JOB) or "")
    found = jobs().find(asked) if asked else None
    if asked and found is None:
        st.session_state[session.JOB] = ""
        st.info(GONE, icon=":material/info:")
    return found


def look_at(job: Job) -> None:
    """Look at another one; which line of it is open, and what is listed, begins anew."""
    st.session_state[session.JOB] = job.id
    session.replace(MAIN, line=None, listed="all", holding="")
