"""How unsure the model was at each step, by the measure that the reader chooses.

The entropy of all pieces is what is usually meant, but a tail of thousands of tiny probabilities drives it up where a
model is sure, and label smoothing teaches such a tail. So other measures stand beside it, and the caption says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

import charts
from charts.curves import HOW_TO_READ
from transformer.analysis.unsureness import N_BEST, entropy_of_best, entropy_of_smoothed, other_share
from transformer.runs.trace import Trace
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state import session
from ui.state.click import place_of
from ui.state.view import Unsureness
from words import joined, say

ENTROPY: Final = "entropy"
PART: Final = "entropy_part"
_BITS: Final = say("bits")


@dataclass(frozen=True)
class _Measure:
    """A measure of how unsure a step was: its name, and what its numbers mean."""

    label: str
    axis: str
    unit: str
    alt: str


_MEASURES: Final[dict[Unsureness, _Measure]] = {
    "entropy": _Measure(
        say("All pieces"),
        say("Entropy"),
        _BITS,
        say("Entropy of the next-piece distribution at each step, in bits."),
    ),
    "ten": _Measure(
        say("{n} likeliest", n=N_BEST),
        say("Entropy, {n} likeliest", n=N_BEST),
        _BITS,
        say("Entropy among the {n} likeliest pieces at each step, in bits.", n=N_BEST),
    ),
    "rest": _Measure(
        say("1 − p"),
        say("1 − p of the likeliest"),
        "",
        say("Probability of all pieces but the likeliest at each step."),
    ),
}


def draw(run: OpenRun) -> None:
    """Draw how unsure the model was at each step, with the choice of a measure."""
    with st.container(key=run.key(PART), gap="small"):
        _chart(run, choices.choose(
            choices.field(run.slot, "unsure"),
            say("Measured over"),
            {name: measure.label for name, measure in _MEASURES.items()},
            bare=True,
        ))  # fmt: skip


def _chart(run: OpenRun, name: Unsureness) -> None:
    n_steps = run.looking.n_steps - int(run.looking.covered)
    key, measure = run.key(ENTROPY), _MEASURES[name]
    figure = charts.entropy_spec(
        _values(run.trace, name)[:n_steps].tolist(),
        run.looking.row_labels()[run.trace.first_row :][:n_steps],
        step=run.view.step if run.view.step < n_steps else None,
        unit=measure.unit,
        measure=measure.axis,
    )
    drawing.chart(
        figure,
        key=key,
        alt=measure.alt,
        how_to_read=joined(" ", [HOW_TO_READ, *_meaning(run, name)]),
        on_click=on_click(key, place_of, partial(session.move_to, run.slot)),
    )


def _values(trace: Trace, name: Unsureness) -> np.ndarray:
    if name == "entropy":
        return trace.entropies()
    return entropy_of_best(trace.log_probs) if name == "ten" else other_share(trace.log_probs)


def _meaning(run: OpenRun, name: Unsureness) -> list[str]:
    """What the numbers mean, and what label smoothing does to them where the card says that there was some."""
    smoothing, n_pieces = run.checkpoint.card.label_smoothing(), len(run.trace.vocabulary)
    if name == "entropy":
        said = say(
            "Entropy is −Σ p·log₂ p over all {n:,} pieces: 0 bits is certain, and a coin tossed between two pieces "
            "is 1 bit. Many tiny probabilities can add up to as much.",
            n=n_pieces,
        )
        return [said, *([_smoothed(smoothing, n_pieces)] if smoothing else [])]
    if name == "ten":
        return [
            say(
                "Entropy among the {n} likeliest pieces alone, their probabilities scaled to sum to 1: 0 bits is "
                "certain, and a coin tossed between two pieces is 1 bit.",
                n=min(N_BEST, n_pieces),
            )
        ]
    said = say("1 − p is the probability of all pieces but the likeliest: 0 is certain.")
    wanted = say("Trained with label smoothing {share:g}, this model was never asked to come below {least:.2g}.",
                 share=smoothing or 0, least=(smoothing or 0) * (1 - 1 / n_pieces))  # fmt: skip
    return [said, *([wanted] if smoothing else [])]


def _smoothed(smoothing: float, n_pieces: int) -> str:
    return say(
        "This model was trained with label smoothing {share:g}: where one piece was right it was still to leave that "
        "share to all pieces alike, which alone is {bits:.1f} bits.",
        share=smoothing,
        bits=entropy_of_smoothed(smoothing, n_pieces),
    )
