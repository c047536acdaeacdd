"""Two runs that are compared: which of them stands where, and what one model makes of the other's output."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from glassformer.extensions.what_if import comparing
from glassformer.extensions.what_if.two_runs import Crossed, crossed, read_output, share_vocabulary
from glassformer.extensions.what_if.what_if_look import Compared
from glassformer.runs.seen import Seen
from glassformer.runs.step_rows import Looking
from glassformer.server.work import MAP_BYTES
from glassformer.state.view import MAIN, SECOND, Slot
from transformer.runs.trace import Trace

_Run = TypeVar("_Run", bound=Seen, covariant=True)


@dataclass(frozen=True)
class Pair(Generic[_Run]):
    """Two runs beside each other."""

    compared: Compared  # what is compared; never "auto"
    left: _Run  # one of them is drawn in the main slot, the other one in the second
    right: _Run

    @property
    def main(self) -> _Run:
        """The run of the main slot, whose step the page's address says."""
        return self.left if self.left.slot == MAIN else self.right

    @property
    def second(self) -> _Run:
        """The other one."""
        return self.right if self.left.slot == MAIN else self.left

    @property
    def leads(self) -> _Run:
        """The one whose stepper has the buttons, so that they reach every step of both: the longer one."""
        return self.second if self.second.trace.n_steps > self.main.trace.n_steps else self.main

    @property
    def slot(self) -> Slot:
        """As of `Stepped`."""
        return self.leads.slot

    @property
    def runs(self) -> tuple[_Run, _Run]:
        """As of `Stepped`."""
        return self.left, self.right

    @property
    def together(self) -> partial[Any]:
        """As of `Stepped`."""
        return partial(Pair, self.compared)

    @property
    def writes(self) -> bool:
        """Whether both have an output."""
        return bool(self.left.trace.n_steps and self.right.trace.n_steps)

    @property
    def is_one_run(self) -> bool:
        """Whether both sides show the same run, and differ in what of it is looked at."""
        return self.left.trace.query == self.right.trace.query

    @property
    def is_one_model(self) -> bool:
        """Whether both are outputs of one model for one source, which expects the same behind the same pieces."""
        left, right = self.left.trace, self.right.trace
        same = left.query.checkpoint == right.query.checkpoint and left.src_ids == right.src_ids
        return same and left.query.interventions == right.query.interventions

    @property
    def share_vocabulary(self) -> bool:
        """Whether each model can read the other's output."""
        return share_vocabulary(self.left.trace, self.right.trace)


def pair_of(shown: Seen | Pair[Seen]) -> Pair[Seen] | None:
    """Such a pair; of a run that is on no page, the one that its link names, if both are of one checkpoint.

    Errors as of `Work`.
    """
    if isinstance(shown, Pair):
        return shown
    compared, _ = comparing.settled(shown.link)
    stands_right = compared == "changed" and bool(shown.link.interventions)
    link = comparing.control_of(shown.link) if stands_right else comparing.second_of(shown.link)[0]
    if link.model != shown.link.model or not shown.trace.n_steps or shown.view.guess:
        return None
    trace = shown.work.run(shown.checkpoint, link.query(shown.checkpoint.content_hash))
    view = replace(shown.view, step=max(min(shown.view.step, trace.n_steps - 1), 0))
    slot = SECOND if shown.slot == MAIN else MAIN
    looking = Looking(trace, view, slot=slot)
    second = Seen(looking, shown.checkpoint, replace(link, view=view), shown.work)
    return Pair(compared, second, shown) if stands_right else Pair(compared, shown, second)


def read_by(reader: Seen, written: Seen) -> Trace:
    """What a run's model makes of the other run's output, behind its own source; once for all visitors.

    Raises `QueryError` if the output does not fit the model, and `BusyError` if that has too much to do.
    """
    if reader.trace.query == written.trace.query:
        return written.trace
    query, ids = reader.trace.query, written.trace.tgt_ids
    return reader.work.compute(
        ("read_output", query, ids),
        partial(read_output, reader.checkpoint, query, ids, most_map_bytes=MAP_BYTES),
        nbytes=lambda trace: trace.nbytes,
    )


def cross(written: Seen, reader: Seen) -> Crossed:
    """A run's output under its own model and under the other one; errors as of `read_by`."""
    other = read_by(reader, written)
    return reader.work.compute(
        ("crossed", written.trace.query, reader.trace.query),
        partial(crossed, written.trace, other),
        nbytes=lambda found: found.nbytes,
    )
