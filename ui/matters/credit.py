"""What the parts Pieces and Logit measure of a run, each made once and kept as runs are."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from typing import Final

import numpy as np

from transformer.analysis.attribution.asked import ask, ask_each
from transformer.analysis.attribution.gradients import (
    Baseline,
    Integrated,
    input_times_gradient,
    integrating,
)
from transformer.analysis.attribution.hiding import Hiding, hiding
from transformer.analysis.attribution.logit import contributions
from transformer.analysis.attribution.parts import Contributions
from transformer.analysis.attribution.progress import Progress
from transformer.analysis.attribution.weighed import Weighed, weigh
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.measured import measured
from ui.runs.open_run import OpenRun
from words import say

HIDING: Final = "matters_hiding"
INTEGRATING: Final = "matters_integrating"

_PRODUCTS_A_SECOND: Final = 1.5e10  # multiplications of one thread, about
_POINTS: Final = 100  # of all lines together until the error is small, about


def pieces_of(run: OpenRun) -> list[str]:
    """The pieces that get credit: those of the source, or all that a decoder which is alone had read by this step."""
    trace = run.trace
    if "encoder" in trace.kinds:
        return list(trace.src_pieces[: trace.n_tokens("encoder")])
    return list(trace.read_pieces[: trace.row_of(run.view.step) + 1])


def _key(run: OpenRun, name: str, *more: Hashable) -> Hashable:
    trace = run.trace
    return ("credit", name, trace.query, trace.src_ids, trace.read_ids, *more)


def weighed_of(run: OpenRun) -> Weighed | None:
    """What the step's row takes from each piece; None if that cannot be done, and a sentence says why."""
    checkpoint, trace, step = run.checkpoint, run.trace, run.view.step
    return attempt(
        lambda: loading.runner().compute(
            _key(run, "weighed", step), lambda: weigh(ask(checkpoint, trace, step)), nbytes=lambda one: one.nbytes
        )
    )


def gradient_of(run: OpenRun) -> np.ndarray | None:
    """Input x gradient of each piece."""
    checkpoint, trace, step = run.checkpoint, run.trace, run.view.step
    return attempt(
        lambda: loading.runner().compute(
            _key(run, "gradient", step),
            lambda: input_times_gradient(ask(checkpoint, trace, step)),
            nbytes=lambda credit: credit.nbytes,
        )
    )


def contributions_of(run: OpenRun, rival: int | None) -> Contributions | None:
    """The parts of the logit of the piece that was written, and of another."""
    checkpoint, trace, step = run.checkpoint, run.trace, run.view.step
    others = () if rival is None else (rival,)
    return attempt(
        lambda: loading.runner().compute(
            _key(run, "contributions", step, trace.tgt_ids[step], others),
            lambda: contributions(ask(checkpoint, trace, step), others),
            nbytes=lambda found: found.nbytes,
        )
    )


def hiding_of(run: OpenRun) -> Hiding | None:
    """What hiding each piece does to each step; None as long as nobody has asked for it, where it takes long."""
    checkpoint, trace = run.checkpoint, run.trace
    key = _key(run, "hiding", trace.tgt_ids)

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
        _key(run, "integrated", step, trace.tgt_ids[step], baseline),
        measuring,
        seconds=_seconds(run, _POINTS),
        wish=_key(run, "integrated"),
        widget=run.key(INTEGRATING),
        label=say("Integrate gradients"),
    )


def _seconds(run: OpenRun, rows: int) -> float:
    """How long it takes to read the run so many times, about: one product for each parameter of a layer and token."""
    config = run.checkpoint.config
    tables = (config.src_vocab_size + (0 if config.shared_vocab else config.tgt_vocab_size)) * config.d_model
    n_tokens = run.trace.n_tokens("encoder") + len(run.trace.read_ids)
    return max(config.count_parameters() - tables, 0) * n_tokens * rows / _PRODUCTS_A_SECOND
