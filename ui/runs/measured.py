"""What a page draws of a measurement: its result if it is quick, else a button, progress and a way to stop."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from typing import Any, Final, Protocol, TypeVar, cast

from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.studies import Seen, Step, Studies
from ui.shared import drawing
from ui.shared.door import st
from words import Sentence, say, say_n

AT_ONCE: Final = 1.5  # seconds of work that a page waits for
LOOK_SECONDS: Final = 0.7
WANTED: Final = "measurements_wanted"
MOST_WANTED: Final = 32
COST: Final = 60.0  # of one second of the model, in the unit of `ui.server.queue.cost_of`


class Sized(Protocol):
    """What knows its memory."""

    @property
    def nbytes(self) -> int:
        """In bytes."""


_Result = TypeVar("_Result", bound=Sized)


@st.cache_resource(show_spinner=False)
def studies() -> Studies:
    """What is measured for the server's visitors."""
    return Studies(loading.runner())


def measured(
    key: Hashable,
    measuring: Callable[[], Generator[Step, None, _Result]],
    *,
    seconds: float,
    wish: Hashable,
    widget: str,
    label: str,
) -> _Result | None:
    """What is measured; None as long as there is nothing, or nobody has asked for it.

    The key says all that decides the result, the wish what a reader asks for with the button: it may stand for
    several keys, such as one a step. `seconds` are about how long it takes; it is begun in the model's thread.
    `widget` begins the keys of what is drawn.
    """
    if seconds <= AT_ONCE:
        runner = loading.runner()
        return attempt(lambda: runner.compute(key, lambda: _at_once(measuring()), nbytes=lambda one: one.nbytes))
    visitor = loading.visitor()
    seen = studies().look(key, visitor)
    if seen is None and wish in st.session_state.get(WANTED, ()):
        seen = attempt(lambda: studies().ask(key, measuring, visitor=visitor, cost=seconds * COST))
    if seen is not None and seen.state == "done":
        return cast("_Result", seen.result)
    if seen is not None and seen.is_under_way:
        st.fragment(_follow, run_every=LOOK_SECONDS)(key, wish, widget, label)
        return None
    if seen is not None and seen.problem is not None:
        st.error(drawing.plain(seen.problem))
    _offer(wish, widget, label, seconds)
    return None


def _at_once(parts: Generator[Step, None, _Result]) -> _Result:
    while True:
        try:
            next(parts)
        except StopIteration as end:
            return cast("_Result", end.value)


def _offer(wish: Hashable, widget: str, label: str, seconds: float) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(label, key=f"{widget}_begin", icon=":material/play_arrow:", on_click=_want, args=(wish,))
        st.caption(takes_about(seconds))


def takes_about(seconds: float) -> Sentence:
    """How long something that is asked for will take."""
    return say_n(
        "Takes about {n:,} second with this model and this text; others go first.",
        "Takes about {n:,} seconds with this model and this text; others go first.",
        max(round(seconds), 1),
    )


def _follow(key: Hashable, wish: Hashable, widget: str, label: str) -> None:
    """Draw how far it is; runs again and again."""
    seen: Seen | None = studies().look(key, loading.visitor())
    if seen is None or not seen.is_under_way:
        st.rerun()  # the page once more, which then looks no longer
        return
    st.progress(min(seen.done / seen.whole, 1.0) if seen.whole else 0.0, text=drawing.plain(label))
    st.button(say("Stop"), key=f"{widget}_stop", icon=":material/stop:", on_click=_stop, args=(key, wish))


def _want(wish: Hashable) -> None:
    """Callback: have it measured."""
    wanted: tuple[Any, ...] = st.session_state.get(WANTED, ())
    st.session_state[WANTED] = (*(one for one in wanted if one != wish), wish)[-MOST_WANTED:]


def _stop(key: Hashable, wish: Hashable) -> None:
    """Callback: want it no more."""
    studies().withdraw(key, loading.visitor())
    st.session_state[WANTED] = tuple(one for one in st.session_state.get(WANTED, ()) if one != wish)
