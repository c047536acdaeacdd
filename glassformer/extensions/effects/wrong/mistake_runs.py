"""Runs both sides of a card: what is written, and what each makes of the right output when it reads it at once."""

from dataclasses import replace
from typing import Final

import numpy as np

from glassformer.extensions.effects.wrong.card import LEAK, Card, Found, Outcome, Side, Sides
from glassformer.extensions.effects.wrong.deck import CARDS
from glassformer.runs import loading
from glassformer.server.jobs import Job
from transformer.analysis.at_once import AtOnce, read_at_once
from transformer.errors import NotFiniteError, QueryError
from transformer.i18n import Sentence, say
from transformer.i18n.sentence import Template
from transformer.model.anatomy import anatomy
from transformer.runs.query import Beam, Query
from transformer.runs.running import write
from transformer.runs.trace import Trace

ENDED: Final = "end of sentence"


def look(card: Card, side: Side) -> Found:
    """Run a card on a model and a sentence.

    Raises:
        QueryError: The right side cannot be run, or what the card needs besides is not there.
        BusyError: The model has too much to do.
    """
    sides = _sides(card, side)
    right = _trace(sides.right)
    try:
        wrong = _trace(sides.wrong)
    except QueryError as error:
        found = Found(sides, right, None, "refused", problem=error.sentence)
        if isinstance(error, NotFiniteError):
            found = replace(found, outcome="not_finite", site=site_of(error))
    else:
        found = Found(sides, right, wrong, outcome_of(right, wrong))
    readings = [_read(card, one, right) for one in (sides.read_right, sides.read_wrong)]
    return replace(found, read_right=readings[0], read_wrong=readings[1])


def _sides(card: Card, side: Side) -> Sides:
    if card.sides is not None:
        return card.sides(side)
    wrong_side = side.changed(card.change(side.checkpoint.config))
    return Sides(side, wrong_side, side, wrong_side)


def changes(card: Card, side: Side) -> bool:
    """Whether a mistake changes the output, which takes no more steps than that has; errors as of `look`."""
    sides = _sides(card, side)
    right, model, query = _trace(sides.right), sides.wrong.checkpoint, sides.wrong.query
    if not isinstance(query.decoding, Beam):  # a beam of which less may be written is another search
        query = replace(query, max_new=min(query.max_new, max(right.n_steps, 1)))
    key = ("changes", query, right.tgt_ids)
    try:
        return loading.compute(key, lambda: write(model, [query])[0] != right.tgt_ids, nbytes=lambda _: 100)
    except QueryError:
        return True  # there is no output any more


def effects(side: Side, job: Job) -> np.ndarray:
    """Whether each mistake changes the output, bool [card]: the work of a job; True where it cannot be made."""
    found = []
    for card in CARDS:
        job.pause()
        found.append(why_not(card, side) is not None or changes(card, side))
    return np.array(found)


def opening(side: Side) -> Card:
    """The first mistake that changes the output; if none does, the first that can be made; errors as of `look`."""
    there = [card for card in CARDS if why_not(card, side) is None]
    return next((card for card in there if changes(card, side)), (*there, CARDS[0])[0])


def outcome_of(right: Trace, wrong: Trace) -> Outcome:
    """What became of an output: compared with the right one."""
    if wrong.tgt_ids == right.tgt_ids:
        return "same"
    if right.output_text.strip() and not wrong.output_text.strip() and wrong.stop_reason == ENDED:
        return "nothing"
    if right.stop_reason == ENDED != wrong.stop_reason:
        return "endless"
    return "changed"


def site_of(error: NotFiniteError) -> str:
    """The site that an error names."""
    said = error.sentence
    return str(said.values.get("site", "")) if isinstance(said, Template) else ""


def meaning(card: Card, found: Found) -> Sentence | None:
    """What the outcome means on this card; None where there is no other side."""
    outcomes = card.said.outcomes
    if found.outcome in outcomes:
        return outcomes[found.outcome]
    if found.outcome == "not_finite":
        return say("NaN spreads to everything computed from it, so no probability is left.")
    return None if found.outcome == "refused" else outcomes["changed"]


def why_not(card: Card, side: Side) -> Sentence | None:
    """Why a card cannot be shown on a model, in a sentence; None if it can."""
    if not anatomy(side.checkpoint.config).writes:
        return say("This encoder-only model generates no output, so no output can go wrong.")
    if card.mistake != "leak" and side.checkpoint.name == LEAK:
        return say(
            "This model was trained with a leak. Its output is already wrong, so adding another mistake would show "
            "nothing new."
        )
    if (unfit := card.unfit(side.checkpoint)) is not None:
        return unfit
    for one in card.change(side.checkpoint.config):
        if (unfit := one.unfit(side.checkpoint.config)) is not None:
            return unfit
    return None


def _trace(side: Side) -> Trace:
    return loading.runner().trace(side.checkpoint, side.query)


def _read(card: Card, side: Side, right: Trace) -> AtOnce | None:
    """What one side makes of the right output; None where something is not finite, or it cannot be read."""
    # How pieces are chosen is of no matter for reading.
    query = Query(checkpoint=side.query.checkpoint, source=side.query.source, interventions=side.query.interventions)
    sites = tuple(card.sites(side.checkpoint.config))
    try:
        return loading.runner().compute(
            ("at_once", query, right.tgt_ids, sites, card.measure.finite),
            lambda: read_at_once(side.checkpoint, query, right.tgt_ids, sites, finite=card.measure.finite),
            nbytes=lambda found: found.nbytes,
        )
    except QueryError:
        return None
