"""What of the part Pieces may take long: measured when it is asked for."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from transformer.analysis.attribution.asked import ask, ask_each
from transformer.analysis.attribution.gradients import (
    Baseline,
    Integrated,
    integrating,
)
from transformer.analysis.attribution.hiding import Hiding, hiding
from transformer.analysis.progress import Progress
from ui.matters.credit_pictures import key_of
from ui.runs.measured import measured
from ui.runs.open_run import OpenRun
from words import say

HIDING: Final = "matters_hiding"
INTEGRATING: Final = "matters_integrating"

_PRODUCTS_A_SECOND: Final = 1.5e10  # multiplications of one thread, about
_POINTS: Final = 100  # of all lines together until the error is small, about


def hiding_of(run: OpenRun) -> Hiding | None:
    """What hiding each piece does to each step; None as long as nobody has asked for it, where it takes long."""
    checkpoint, trace = run.checkpoint, run.trace
    key = key_of(run, "hiding", trace.tgt_ids)

    def measuring() -> Generator[Progress, None, Hiding]:
        return (yield from hiding(ask_each(checkpoint, trace)))

    return measured(
        key,
        measuring,
        seconds=_seconds(run, trace.n_tokens("encoder") or len(trace.read_ids)),
        wish=key,
        widget=run.key(HIDING),
        label=say("Hide each piece in turn"),
    )


def integrated_of(run: OpenRun, baseline: Baseline) -> Integrated | None:
    """Integrated gradients of this step; None as long as nobody has asked for them, where they take long."""
    checkpoint, trace, step = run.checkpoint, run.trace, run.view.step

    def measuring() -> Generator[Progress, None, Integrated]:
        return (yield from integrating(ask(checkpoint, trace, step), baseline=baseline))

    return measured(
        key_of(run, "integrated", step, trace.tgt_ids[step], baseline),
        measuring,
        seconds=_seconds(run, _POINTS),
        wish=key_of(run, "integrated"),
        widget=run.key(INTEGRATING),
        label=say("Integrate gradients"),
    )


def _seconds(run: OpenRun, rows: int) -> float:
    """How long it takes to read the run so many times, about: one product for each parameter of a layer and token."""
    config = run.checkpoint.config
    tables = (config.src_vocab_size + (0 if config.shared_vocab else config.tgt_vocab_size)) * config.d_model
    n_tokens = run.trace.n_tokens("encoder") + len(run.trace.read_ids)
    return max(config.count_parameters() - tables, 0) * n_tokens * rows / _PRODUCTS_A_SECOND
