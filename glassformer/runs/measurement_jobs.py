"""Measurements as background jobs: quick ones at once, else start and stop buttons, time estimate, progress bar.

A measurement lets shorter work go first wherever it says how far it is, and is stopped there once nobody wants it.
"""

from collections.abc import Callable, Generator, Hashable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.server.jobs import SMALL, Job, JobRegistry, JobStatus
from glassformer.server.model_runner import BusyError, ModelRunner
from glassformer.shared import drawing
from glassformer.shared.i18n import st
from transformer.i18n import Sentence, say, say_n

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

AT_ONCE: Final = 1.5  # seconds of work that a page waits for
LOOK_SECONDS: Final = 0.7
WANTED: Final = "measurements_wanted"
MOST_WANTED: Final = 32
COST: Final = 60.0  # of one second of the model, in the unit of `glassformer.server.model_runner.cost_of`
MOST_UNDER_WAY: Final = 16
CACHE_BYTES: Final = 64 * 2**20  # for what was found


class MeasurementProgress(Protocol):
    """How far a measurement is."""

    @property
    def done(self) -> int:
        """Parts that are done."""

    @property
    def whole(self) -> int:
        """Of how many."""


class SizedResult(Protocol):
    """What knows its memory."""

    @property
    def nbytes(self) -> int:
        """In bytes."""


_Result = TypeVar("_Result", bound=SizedResult)
Measuring = Callable[[], Generator[MeasurementProgress, None, _Result]]
"""Begins a measurement, which says how far it is before each of its parts, and returns what it found."""


@st.cache_resource(show_spinner=False)
def studies() -> JobRegistry[Hashable]:
    """What is measured for the server's visitors; each job tells its `MeasurementProgress`."""
    return JobRegistry(too_many, most=MOST_UNDER_WAY, at_once=MOST_UNDER_WAY, room=CACHE_BYTES, size=_size)


def begins_by_itself(checkpoint: "Checkpoint") -> bool:
    """Whether a model is so small that all of it is measured without being asked for."""
    return checkpoint.config.count_parameters() <= SMALL


def too_many(n: int) -> BusyError:
    """The error where so many are under way."""
    return BusyError(
        "{n} measurement is already running, the most this server allows. Try again in a minute.",
        "{n} measurements are already running, the most this server allows. Try again in a minute.",
        n,
    )


def _size(job: Job) -> int:
    """Bytes of what was found."""
    seen = job.seen
    return 0 if seen.is_under_way else 1_000 + (0 if seen.result is None else int(seen.result.nbytes))


def study(runner: ModelRunner, measuring: Measuring[_Result], cost: float, job: Job) -> _Result:
    """Measure, as the work of a job; `cost` as in `glassformer.server.model_runner.cost_of`."""
    return job.in_model(runner, partial(_parts, measuring, job.tell), cost=cost)


def _parts(
    measuring: Measuring[_Result],
    tell: Callable[[MeasurementProgress], object] = lambda step: None,
    pause: Callable[[], None] = lambda: None,
) -> _Result:
    with closing(measuring()) as begun:
        while True:
            pause()
            try:
                tell(next(begun))
            except StopIteration as end:
                return cast("_Result", end.value)


def measured(
    key: Hashable,
    measuring: Measuring[_Result],
    *,
    seconds: float,
    wish: Hashable,
    widget: str,
    label: str,
    needs_model: bool = True,
) -> _Result | None:
    """The measurement's result; None as long as there is none, or nobody has requested it.

    `key` identifies the result, `seconds` estimates its time. The button requests a `wish`, possibly of several keys,
    such as one per step. `widget` begins the widgets' keys. Work without `needs_model` bypasses the model's queue.
    """
    if seconds <= AT_ONCE:
        runner = loading.runner()
        return attempt(lambda: runner.compute(key, lambda: _parts(measuring), nbytes=lambda one: one.nbytes))
    visitor = loading.visitor()
    seen = studies().look(key, visitor)
    if seen is None and wish in st.session_state.get(WANTED, ()):
        in_model = partial(study, loading.runner(), measuring, seconds * COST)
        work = in_model if needs_model else lambda job: _parts(measuring, job.tell, job.pause)
        seen = attempt(lambda: studies().ask(key, work, visitor=visitor).seen)
    if seen is not None and seen.state == "done":
        return cast("_Result", seen.result)
    if seen is not None and seen.is_under_way:
        st.fragment(_follow, run_every=LOOK_SECONDS)(key, wish, widget, label)
        return None
    if seen is not None and seen.problem is not None:
        st.error(drawing.with_code(seen.problem))
    _offer(wish, widget, label, seconds)
    return None


def _offer(wish: Hashable, widget: str, label: str, seconds: float) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(label, key=f"{widget}_begin", icon=":material/play_arrow:", on_click=_want, args=(wish,))
        st.caption(takes_about(seconds))


def takes_about(seconds: float) -> Sentence:
    """How long something that is asked for will take."""
    return say_n(
        "This takes about {n:,} second with this model and text, or longer if other requests come first.",
        "This takes about {n:,} seconds with this model and text, or longer if other requests come first.",
        max(round(seconds), 1),
    )


def _follow(key: Hashable, wish: Hashable, widget: str, label: str) -> None:
    """Draw how far it is; runs again and again."""
    seen: JobStatus | None = studies().look(key, loading.visitor())
    if seen is None or not seen.is_under_way:
        st.rerun()  # the page once more, which then looks no longer
        return
    step: MeasurementProgress | None = seen.so_far
    st.progress(min(step.done / step.whole, 1.0) if step and step.whole else 0.0, text=drawing.plain(label))
    st.button(say("Stop"), key=f"{widget}_stop", icon=":material/stop:", on_click=_stop, args=(key, wish))


def _want(wish: Hashable) -> None:
    wanted: tuple[Any, ...] = st.session_state.get(WANTED, ())
    st.session_state[WANTED] = (*(one for one in wanted if one != wish), wish)[-MOST_WANTED:]


def _stop(key: Hashable, wish: Hashable) -> None:
    studies().withdraw(key, loading.visitor())
    st.session_state[WANTED] = tuple(one for one in st.session_state.get(WANTED, ()) if one != wish)
