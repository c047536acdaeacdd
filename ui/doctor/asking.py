"""What the session wants examined: the sentences it gave, and which of the draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from transformer.checkpoint.load import Checkpoint
from transformer.errors import DataError
from transformer.trying.samples import Samples, samples_of
from ui.doctor.examinations import Asked, Examinations
from ui.runs import loading
from ui.shared import drawing, pairs
from ui.shared.choices import KEEP
from ui.shared.door import st
from ui.state import session
from words import Sentence, say

WANTED, PROBLEM = "examination_wanted", "examination_problem"
TEXTS, FORM, REPORTED = "examination_texts", "examination_form", "examination_reported"
WITH_THESE, WITH_EXAMPLES, AGAIN = "examine_these", "examine_examples", "examine_again"
SMALL: Final = 30_000_000
"""Parameters of a model that is examined unasked: that takes seconds; the shipped ones have 8 million."""


@dataclass(frozen=True)
class Wanted:
    """What a session wants of a checkpoint."""

    given: Samples | None = None  # its own sentences; None for the examples
    reported: float | None = None  # the loss that the training reported; None where the session did not say it
    seed: int = 0  # which draw
    is_asked: bool = False  # whether a button was pressed, or that is left to the page
    is_stopped: bool = False  # whether the last examination was stopped


@st.cache_resource(show_spinner=False)
def examinations() -> Examinations:
    """The examinations of the server."""
    return Examinations(is_busy=lambda: loading.runner().is_busy)


def wanted(checkpoint: Checkpoint) -> Wanted:
    """What the session wants of a checkpoint."""
    found: Wanted = st.session_state.get(WANTED, {}).get(checkpoint.content_hash, Wanted())
    return found


def want(content_hash: str, wish: Wanted) -> None:
    """Callback: want something else of a checkpoint."""
    st.session_state[WANTED] = {**st.session_state.get(WANTED, {}), content_hash: wish}
    st.session_state[PROBLEM] = None


def stop(asked: Asked, wish: Wanted) -> None:
    """Callback: want an examination no more."""
    examinations().withdraw(asked, loading.visitor())
    want(asked.content_hash, replace(wish, is_asked=False, is_stopped=True))


def again(checkpoint: Checkpoint) -> None:
    """Draw the button that examines once more, with another draw."""
    wish = wanted(checkpoint)
    st.button(
        say("Examine again"),
        key=AGAIN,
        icon=":material/refresh:",
        on_click=want,
        args=(checkpoint.content_hash, replace(wish, seed=wish.seed + 1, is_asked=True, is_stopped=False)),
        help=say("Draws other pieces, and other sentences if there are many. Verdicts should stay what they are."),
    )


def begins_by_itself(checkpoint: Checkpoint) -> bool:
    """Whether the page examines it without being asked to."""
    return checkpoint.config.count_parameters() <= SMALL


def own_sentences(checkpoint: Checkpoint, *, unfolded: bool) -> None:
    """Draw the box for sentences of the reader's.

    Args:
        checkpoint: That is examined.
        unfolded: Whether it stands open: without pairs nothing says that the model does its task.
    """
    which = checkpoint.content_hash
    name, typed = st.session_state.get(pairs.CARRIED) or ("", "")
    if name == session.asked().model and not st.session_state.get(TEXTS):
        st.session_state[TEXTS] = typed
        del st.session_state[pairs.CARRIED]  # who empties the box finds it empty
    with st.expander(say("Examine it with sentences of your own"), expanded=unfolded):
        with st.form(FORM, border=False):
            pairs.box(key=TEXTS, persist=KEEP)
            st.number_input(
                say("Loss that the training reported"), key=REPORTED, min_value=0.0, max_value=100.0, value=None,
                format="%.6g", placeholder=say("nats a piece"), persist_state=KEEP,
                help=say(
                    "On texts that were not trained on, without label smoothing. A loss that is much higher here "
                    "says that something is computed in another way."
                ),
            )  # fmt: skip
            st.form_submit_button(say("Examine with these"), key=WITH_THESE, on_click=_take, args=(which,))
        st.caption(
            say(
                "With pairs the doctor also compares what the model writes with what it should write. The sentences "
                "stay in the memory of this server until newer examinations take their room."
            )
        )
        if wanted(checkpoint).given is not None:
            wish = Wanted(is_asked=True)
            st.button(say("Examine with the examples"), key=WITH_EXAMPLES, on_click=want, args=(which, wish))
        problem: Sentence | None = st.session_state.get(PROBLEM)
        if problem is not None:
            st.error(drawing.plain(problem))


def _take(content_hash: str) -> None:
    """Callback: examine with the sentences in the box."""
    texts = pairs.with_tabs(st.session_state.get(TEXTS) or "")
    try:
        given = samples_of(texts, label=say("The sentences"))
        want(content_hash, Wanted(given, st.session_state.get(REPORTED), is_asked=True))
    except DataError as error:
        st.session_state[PROBLEM] = error.sentence
