"""Which choice of a piece a lesson looks at, and how wide it could be."""

from __future__ import annotations

import math
from typing import Any, Final

from transformer.analysis.worth_seeing import hardest_step as least_sure
from transformer.lessons.case import Case, NotHere
from transformer.lessons.picks.steps import written

NINE_TENTHS: Final = 0.9


def open_choice(case: Case) -> dict[str, Any]:
    """The step at which the model was least sure, of those that were chosen and not forced."""
    trace, n_steps = case.trace, written(case, least=1)
    if trace.n_forced >= n_steps:
        raise NotHere("Every piece of this output was forced; try another sentence.")
    at, n_pieces = least_sure(trace.entropies(), range(trace.n_forced, n_steps)), len(trace.vocabulary)
    return {
        "step": at + 1,
        "h": float(trace.entropies()[at]),
        "most": math.log2(n_pieces),
        "pieces": n_pieces,
        "nine": math.ceil(NINE_TENTHS * n_pieces),
    }


PICKS: Final = (open_choice,)
