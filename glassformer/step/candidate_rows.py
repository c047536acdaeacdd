"""The most probable pieces of a step as parallel lists, for the chart.

Knows nothing of Streamlit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from glassformer.charts.candidates import Others
from glassformer.runs.step_rows import N_CANDIDATES, Looking, is_yours
from transformer.i18n import say
from transformer.runs.distribution import RuleChange
from transformer.runs.query import Sampling
from transformer.runs.trace import Candidate

_ROUNDING = 1e-6  # what float32 probabilities that sum to 1 may lack


@dataclass(frozen=True)
class CandidateList:
    """The candidates of a step as parallel lists, for the chart."""

    pieces: list[str]  # which, the likeliest first; the chosen one is always among them
    probabilities: list[float]  # under the model
    ids: list[int]  # which, the likeliest first; the chosen one is always among them
    ranks: list[int]  # from 1
    # Their probabilities in the distribution that was drawn from; None unless the query samples.
    drawn_from: list[float] | None
    others: Others | None  # all pieces that are not listed, where they could be drawn, too
    rules: list[RuleChange | None]  # what rules of the model make of each; None where they change nothing
    chosen: int | None  # place of the piece that the output has
    how_chosen: str  # how it came to be chosen


def candidate_list(looking: Looking) -> CandidateList:
    """The most probable pieces of the current step, the chosen one among them."""
    step = looking.trace.step(looking.view.step, top_k=N_CANDIDATES)
    listed = step.candidates
    ranks = list(range(1, len(listed) + 1))
    if len(listed) > N_CANDIDATES:
        ranks[-1] = step.rank
    sampled = isinstance(looking.trace.query.decoding, Sampling)
    yours = is_yours(looking.trace, looking.view.step)
    how = say("forced by you") if yours else say("drawn at random") if sampled else say("chosen")
    if step.forced and step.index >= len(looking.trace.query.forced):
        how = say("forced by the model's settings")
    drawn_from = [c.sampling_probability or 0.0 for c in listed] if sampled else None
    return CandidateList(
        pieces=[c.piece for c in listed],
        probabilities=[c.probability for c in listed],
        ids=[c.id for c in listed],
        ranks=ranks,
        drawn_from=drawn_from,
        others=None if drawn_from is None else _others(looking, listed, drawn_from),
        rules=[c.rule for c in listed],
        chosen=next(i for i, c in enumerate(listed) if c.chosen),
        how_chosen=how,
    )


def _others(looking: Looking, listed: Sequence[Candidate], drawn_from: Sequence[float]) -> Others:
    count = len(looking.trace.vocabulary) - len(listed)
    rest = 1 - sum(candidate.probability for candidate in listed), 1 - sum(drawn_from)
    probability, drawn = (max(share, 0.0) if share > _ROUNDING else 0.0 for share in rest)
    return Others(count, probability, drawn)
