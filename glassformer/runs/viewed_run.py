"""A run with the current view: the input of every chart (page, handout or notebook)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from glassformer.runs.visible_trace import VisibleMaps, VisibleTrace
from glassformer.state.link import Link
from glassformer.state.view import Slot, View
from transformer.runs.query import Query
from transformer.runs.trace import Trace

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint


@dataclass(frozen=True)
class Viewed:
    """Something with maps in a slot of a page."""

    visible: VisibleTrace | VisibleMaps  # the run or the maps, and what of them is looked at
    checkpoint: Checkpoint | None  # what was run; None for given maps

    @property
    def view(self) -> View:
        """What is looked at."""
        return self.visible.view

    @property
    def slot(self) -> Slot:
        """Where it is drawn."""
        return self.visible.slot

    def key(self, name: str) -> str:
        """The key of something that is drawn from it; a page may draw another beside it."""
        return f"{self.slot}{name}"


@dataclass(frozen=True)
class Scene:
    """What a part of a page computes for all its pictures, from a run or from given maps."""

    run: Viewed

    @property
    def slot(self) -> Slot:
        """Where it is drawn."""
        return self.run.slot


_Result = TypeVar("_Result")


class ModelAccess(Protocol):
    """Who works with the model. A server keeps what was computed and has one queue for all (`runs.loading`).

    Each raises `QueryError` for what does not fit the checkpoint, and a server `BusyError`.
    """

    def compute(self, key: Hashable, work: Callable[[], _Result], *, nbytes: Callable[[_Result], int]) -> _Result:
        """The result of any work; `key` says all that decides it, `nbytes` its memory."""

    def long(
        self,
        key: Hashable,
        work: Callable[[Callable[[], None]], _Result],
        *,
        cost: float,
        nbytes: Callable[[_Result], int],
    ) -> _Result:
        """The same of work that takes about `cost`; shorter work is done whenever it calls what it is given."""

    def run(self, checkpoint: Checkpoint, query: Query) -> Trace:
        """The trace of a query."""

    def batch(self, checkpoint: Checkpoint, queries: Sequence[Query]) -> tuple[Trace, ...]:
        """Several queries as one padded batch, without their maps."""

    def replay(self, checkpoint: Checkpoint, trace: Trace, sites: Sequence[str]) -> dict[str, np.ndarray]:
        """What a run had at some sites."""


class HasSteps(Protocol):
    """What has pictures at each of its steps: a run, or runs that one stepper moves."""

    @property
    def slot(self) -> Slot:
        """Whose step its charts follow."""

    @property
    def runs(self) -> tuple[ViewedRun, ...]:
        """The runs; a shorter one stays at its end while the others go on."""

    @property
    def together(self) -> Callable[..., Any]:
        """What makes the same of such runs, each an argument; it holds none."""


def n_steps_of(shown: HasSteps) -> int:
    """How many steps there are."""
    return max(run.trace.n_steps for run in shown.runs)


def step_of(shown: HasSteps) -> int:
    """The current step, from 0."""
    return max(run.view.step for run in shown.runs)


def at_step(shown: HasSteps, step: int) -> Any:
    """The same at another step."""
    return shown.together(*(run.at(max(min(step, run.trace.n_steps - 1), 0)) for run in shown.runs))


@dataclass(frozen=True)
class ViewedRun(Viewed):
    """A run, what of it is looked at, and who computes what is not there yet."""

    visible: VisibleTrace
    checkpoint: Checkpoint
    link: Link  # what is asked for
    work: ModelAccess

    @cached_property
    def decides(self) -> str:
        """Tells apart what is seen of runs at all their steps: all that decides it, once for all pictures."""
        views = [replace(one, step=0) for one in (self.view, self.link.view)]
        return repr((self.slot, self.trace.query, views, replace(self.link, view=views[0])))

    @property
    def trace(self) -> Trace:
        """The trace."""
        return self.visible.trace

    @property
    def runs(self) -> tuple[ViewedRun, ...]:
        """As of `HasSteps`."""
        return (self,)

    @property
    def together(self) -> Callable[[ViewedRun], ViewedRun]:
        """As of `HasSteps`."""
        return _alone

    def at(self, step: int) -> ViewedRun:
        """The same at another step."""
        visible = replace(self.visible, view=replace(self.view, step=step))
        return replace(self, visible=visible, link=replace(self.link, view=replace(self.link.view, step=step)))


def _alone(run: ViewedRun) -> ViewedRun:
    return run


@dataclass(frozen=True)
class RunScene(Scene):
    """What a part of a page computes from a run for all its pictures."""

    run: ViewedRun
