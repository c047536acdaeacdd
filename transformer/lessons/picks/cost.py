"""Which length a lesson about cost looks at, and which parts are taken away."""

from __future__ import annotations

from typing import Any, Final

from transformer.lessons.case import Case, NotHere
from transformer.lessons.picks.steps import written
from transformer.model.anatomy import anatomy
from transformer.model.features import TABLES

MOST_PIECES: Final = 8
"""Each part that is taken away is another run, and all of them shall not take longer than half a second."""


def sentence_lengths(case: Case) -> dict[str, Any]:
    """How many tokens each stack reads."""
    parts = anatomy(case.checkpoint.config)
    if not (parts.reads and parts.writes):
        raise NotHere("This model has one stack alone; the step compares parts of an encoder and a decoder.")
    return {"n_source": len(case.trace.src_ids), "n_target": len(case.trace.read_ids)}


def parts_to_take(case: Case) -> dict[str, Any]:
    """How many pieces of the output are looked at while parts are taken away."""
    parts, config = anatomy(case.checkpoint.config), case.checkpoint.config
    if not (parts.reads and parts.writes):
        raise NotHere("This model has one stack alone; the step takes parts of an encoder and a decoder away.")
    if config.positions not in TABLES:
        raise NotHere("This model adds no positions to its embeddings, which this step takes away.")
    return {"pieces": min(written(case, least=2), MOST_PIECES)}


PICKS: Final = (sentence_lengths, parts_to_take)
