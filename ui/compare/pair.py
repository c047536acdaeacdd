"""Two runs that are compared: which of them stands where, and what one model makes of the other's output."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from transformer.analysis.compare import Crossed, crossed, read_output, share_vocabulary
from transformer.runs.trace import Trace
from ui.runs import loading
from ui.runs.open_run import OpenRun
from ui.server.work import MAP_BYTES
from ui.state.view import MAIN, Compared


@dataclass(frozen=True)
class Pair:
    """Two runs beside each other."""

    compared: Compared  # what is compared; never "auto"
    left: OpenRun  # one of them is drawn in the main slot, the other one in the second
    right: OpenRun

    @property
    def main(self) -> OpenRun:
        """The run of the main slot, whose step the page's address says."""
        return self.left if self.left.slot == MAIN else self.right

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


def read_by(reader: OpenRun, written: OpenRun) -> Trace:
    """What a run's model makes of the other run's output, behind its own source; once for all visitors.

    Raises `QueryError` if the output does not fit the model, and `BusyError` if that has too much to do.
    """
    if reader.trace.query == written.trace.query:
        return written.trace
    query, ids = reader.trace.query, written.trace.tgt_ids
    return loading.runner().compute(
        ("read_output", query, ids),
        partial(read_output, reader.checkpoint, query, ids, most_map_bytes=MAP_BYTES),
        nbytes=lambda trace: trace.nbytes,
    )


def cross(written: OpenRun, reader: OpenRun) -> Crossed:
    """A run's output under its own model and under the other one; errors as of `read_by`."""
    other = read_by(reader, written)
    return loading.runner().compute(
        ("crossed", written.trace.query, reader.trace.query),
        partial(crossed, written.trace, other),
        nbytes=lambda found: found.nbytes,
    )
