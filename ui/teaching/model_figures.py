"""Charts of a handout for what pages show of a model, and its training: costs, losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from charts.theme import Spec
from transformer.checkpoint.load import Checkpoint
from transformer.runs.trace import Trace
from ui.runs import figures
from ui.state.link import Link

Draw = Callable[[Link, Checkpoint, Trace], Spec | None]


def _costs(link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec:
    return figures.cost_curves(checkpoint.config, max(len(trace.src_ids), len(trace.read_ids)))


CHARTS: Final[Mapping[str, Draw]] = {
    "cost_curves": _costs,
}
"""By the key of the chart of a page."""
