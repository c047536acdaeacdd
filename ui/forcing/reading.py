"""The reference of the page Teacher forcing: where it comes from, what the model makes of it, and what is looked at.

A reference that the reader gave stands in the address. Without one the card's is taken, if it has one for this
sentence: what an example means in English is a right output of a model that writes English.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from transformer.checkpoint.card import Card
from transformer.model.anatomy import anatomy
from transformer.runs.interventions import Intervention
from transformer.runs.query import Greedy, Query
from transformer.runs.teacher_forcing import Score, judge
from ui.runs import loading
from ui.runs.open_run import OpenRun
from ui.state import session
from ui.state.view import Slot


def of_card(card: Card, source: str) -> str | None:
    """The right output that a card has for a sentence; None if it has none."""
    return card.reference_of(source)


def reference_of(run: OpenRun) -> str | None:
    """The reference that is asked for; None if there is none."""
    source = run.trace.query.source
    return run.link.reference or of_card(run.checkpoint.card, source)


def judges_itself(run: OpenRun) -> bool:
    """Whether a decoder alone judges the text itself, as nobody gave a reference."""
    return not anatomy(run.checkpoint.config).reads and reference_of(run) is None


def score_of(run: OpenRun) -> Score:
    """What the model, with what was changed in it, makes of the reference; beside what the run wrote.

    Raises:
        QueryError: The reference cannot be read, or there is none and the model needs one.
        BusyError: The model has too much to do.
    """
    found = _judged(run, run.trace.query.interventions)
    return found if judges_itself(run) else replace(found, written=run.trace.tgt_ids)


def control_of(run: OpenRun) -> Score:
    """The same of the unchanged model; errors as `score_of`."""
    return _judged(run, ())


def _judged(run: OpenRun, interventions: tuple[Intervention, ...]) -> Score:
    asked, checkpoint, reference = run.trace.query, run.checkpoint, reference_of(run)
    query = Query(checkpoint=asked.checkpoint, source=asked.source, decoding=Greedy(), interventions=interventions)
    with_end = run.view.ends or None  # None: as the model is
    return loading.runner().compute(
        ("teacher_forcing", query, reference, with_end),
        lambda: judge(checkpoint, query, reference, with_end=with_end),
        nbytes=lambda found: found.nbytes,
    )


def place_of(run: OpenRun, score: Score) -> int:
    """The piece that is looked at: the one that was clicked, until the reader steps on, else that of the step."""
    at, last = run.view.at, len(score) - 1
    if score.written is None:
        return min(at or 0, last)
    if at is not None and min(at, run.trace.n_steps - 1) == run.view.step:
        return min(at, last)
    return min(run.view.step, last)


def look_at(slot: Slot, n_steps: int, place: int) -> None:
    """Callback: look at another piece of the reference, and at the step of that number.

    Args:
        slot: Where.
        n_steps: Of the run; 0 if its steps are others.
        place: From 0.
    """
    session.replace(slot, at=place)
    if n_steps:
        session.move_to(slot, min(place, n_steps - 1))


def looking(run: OpenRun, score: Score) -> partial[None]:
    """`look_at` for the charts of a score; it does not hold the run."""
    return partial(look_at, run.slot, 0 if score.written is None else run.trace.n_steps)
