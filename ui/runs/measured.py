"""What a page draws of a measurement: its result if it is quick, else a button, progress and a way to stop."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar, cast

from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.measuring import Measurements, Pause, Seen
from ui.shared import drawing
from ui.shared.door import st
from words import say

AT_ONCE: Final = 1.5  # seconds of work that a page waits for
LOOK_SECONDS: Final = 0.7
WANTED: Final = "measurements_wanted"
MOST_WANTED: Final = 32
COST: Final = 60.0  # of one second of the model, in the unit of `ui.runs.queue.cost_of`

_Result = TypeVar("_Result")


@st.cache_resource(show_spinner=False)
def measurements() -> Measurements:
    """The measurements of the server."""
    return Measurements(loading.runner())


def measured(
    key: Hashable,
    work: Callable[[Pause], _Result],
    *,
    nbytes: Callable[[_Result], int],
    seconds: float,
    wish: Hashable,
    widget: str,
    label: str,
) -> _Result | None:
    """What is measured; None as long as there is nothing, or nobody has asked for it.

    Args:
        key: Says all that decides the result.
        work: Measures, in the model's thread.
        nbytes: Memory of a result, in bytes, about.
        seconds: How long it takes, about.
        wish: What a reader asks for with the button; it may stand for several keys, such as one a step.
        widget: Begins the keys of what is drawn.
        label: Of the button, such as "Hide each piece in turn".
    """
    if seconds <= AT_ONCE:
        runner = loading.runner()
        return attempt(lambda: runner.compute(key, lambda: work(lambda done, whole: None), nbytes=nbytes))
    visitor, wanted = loading.visitor(), wish in st.session_state.get(WANTED, ())
    seen = measurements().look(key, visitor)
    if seen is None and wanted:
        cost = seconds * COST
        seen = attempt(lambda: measurements().ask(key, work, nbytes=nbytes, cost=cost, visitor=visitor))
    if seen is None:
        _offer(wish, widget, label, seconds)
        return None
    if seen.state == "done":
        return cast("_Result", seen.result)
    if seen.state == "failed":
        if seen.problem is not None:
            st.error(drawing.plain(seen.problem))
        _offer(wish, widget, label, seconds)
        return None
    st.fragment(_follow, run_every=LOOK_SECONDS)(key, wish, widget, label)
    return None


def _offer(wish: Hashable, widget: str, label: str, seconds: float) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(label, key=f"{widget}_begin", icon=":material/play_arrow:", on_click=_want, args=(wish,))
        st.caption(
            say("Takes about {n:.0f} seconds with this model and this text; others go first.", n=max(seconds, 1))
        )


def _follow(key: Hashable, wish: Hashable, widget: str, label: str) -> None:
    """Draw how far it is; runs again and again."""
    seen: Seen | None = measurements().look(key, loading.visitor())
    if seen is None or seen.state != "running":
        st.rerun()  # the page once more, which then looks no longer
    share = min(seen.done / seen.whole, 1.0) if seen.whole else 0.0
    st.progress(share, text=drawing.plain(label))
    st.button(say("Stop"), key=f"{widget}_stop", icon=":material/stop:", on_click=_stop, args=(key, wish))


def _want(wish: Hashable) -> None:
    """Callback: have it measured."""
    wanted: tuple[Any, ...] = st.session_state.get(WANTED, ())
    st.session_state[WANTED] = (*(one for one in wanted if one != wish), wish)[-MOST_WANTED:]


def _stop(key: Hashable, wish: Hashable) -> None:
    """Callback: want it no more."""
    measurements().withdraw(key, loading.visitor())
    st.session_state[WANTED] = tuple(one for one in st.session_state.get(WANTED, ()) if one != wish)
