"""Many sampled outputs of one sentence: a draw per seed, counts, log-probabilities, Wilson intervals.

Draws are decoded as a batch, and each is what a run with its seed writes (`transformer.runs.running`). An
output's probability is the product of its pieces' probabilities in the distributions they were drawn from, after
temperature, top-k and top-p. So it can be compared with how often the output came.

Source: Wilson, "Probable Inference, the Law of Succession, and Statistical Inference" (1927), for the intervals.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import torch

from transformer.errors import QueryError
from transformer.runs.distribution import drawn_from
from transformer.runs.drafting import verdict
from transformer.runs.query import MOST_TOGETHER, Query, Runnable, Sampling
from transformer.runs.reading import DecodedOutput, EncodedBatch, Pause, go_on, read
from transformer.runs.running import decode_together, finish_alone
from transformer.runs.trace import Trace

NORMAL_95 = 1.959964
"""Between minus and plus this lies 0.95 of a normal distribution."""


@dataclass(frozen=True)
class Draw:
    """One output that was drawn."""

    seed: int  # what decided it
    ids: tuple[int, ...]  # its pieces
    text: str  # what it says
    log_drawn: float  # log-probability of its drawn pieces in the distributions that they were drawn from, in nats
    log_prob: float  # the same under the model, before temperature, top-k, top-p and rules
    ended: bool  # whether it ended by itself; if not, the length limit cut it


@dataclass(frozen=True)
class Outcome:
    """An output, and how often it was drawn."""

    ids: tuple[int, ...]  # as in `Draw`
    text: str  # as in `Draw`
    ended: bool  # as in `Draw`
    seeds: tuple[int, ...]  # those that drew it, in order
    frequency: float  # its share of the draws
    drawn: float  # its probability in the distribution that was drawn from
    own: float  # its probability under the model
    low: float  # the 95 % interval of the probability, given how often it was drawn
    high: float  # the 95 % interval of the probability, given how often it was drawn

    @property
    def fits(self) -> bool:
        """Whether its probability is within the interval."""
        return self.low <= self.drawn <= self.high


@torch.inference_mode()
def draws(checkpoint: Runnable, query: Query, seeds: Sequence[int], *, pause: Pause = go_on) -> Iterator[Draw]:
    """What a sampling query draws with each of these seeds, in their order; its own seed does not matter.

    `pause` is called between two rounds of decoding. A QueryError says that the query does not sample, or does not
    fit the checkpoint.
    """
    how = query.decoding
    if not isinstance(how, Sampling):
        raise QueryError(
            "repeated draws need sampling, but the decoding is {found}. Set the decoding to Sampling.",
            found=type(how).__name__,
        )
    first = read(checkpoint, [query], most_map_bytes=0)  # the numbers of `run`, which keeps maps
    for start in range(0, len(seeds), MOST_TOGETHER):
        yield from _batch(checkpoint, first, query, how, seeds[start : start + MOST_TOGETHER], pause)


def _batch(
    checkpoint: Runnable, first: EncodedBatch, query: Query, how: Sampling, seeds: Sequence[int], pause: Pause
) -> Iterator[Draw]:
    readings = [replace(first, queries=[replace(query, decoding=replace(how, seed=seed))]) for seed in seeds]
    written = decode_together(checkpoint, readings, pause)
    groups: dict[tuple[int, ...], list[EncodedBatch]] = defaultdict(list)
    for reading in readings:
        if id(reading) in written:
            groups[written[id(reading)]].append(reading)
    found = {id(one): draw for ids, group in groups.items() for one, draw in _certain_ones(ids, group, pause)}
    for reading in readings:
        yield found.get(id(reading)) or _draw(finish_alone(reading, pause))


def _certain_ones(
    ids: tuple[int, ...], group: Sequence[EncodedBatch], pause: Pause
) -> Iterator[tuple[EncodedBatch, Draw]]:
    """The readings of those that wrote the same, alone as well: what they wrote is recorded once for all."""
    pause()
    with suppress(QueryError):  # each then finds out alone
        (trace,) = group[0].finish([DecodedOutput(ids)])
        scores, draw = trace.all_scores(), _draw(trace)
        for reading in group:
            own = replace(trace, query=reading.queries[0])
            if verdict(own.rules, own.query, scores, ids, n_forced=own.n_forced).kept == ids:
                yield reading, replace(draw, seed=_seed(own.query))


def _draw(trace: Trace) -> Draw:
    return Draw(
        seed=_seed(trace.query),
        ids=trace.tgt_ids,
        text=trace.output_text,
        log_drawn=log_drawn(trace),
        log_prob=float(sum(trace.log_probs[t, trace.tgt_ids[t]] for t in range(trace.n_forced, trace.n_steps))),
        ended=trace.stop_reason == "end of sentence",
    )


def _seed(query: Query) -> int:
    return query.decoding.seed if isinstance(query.decoding, Sampling) else 0


def log_drawn(trace: Trace) -> float:
    """Log-probability, in nats, of a sampled output under what it was drawn from; forced pieces add nothing."""
    total = 0.0
    for step in range(trace.n_forced, trace.n_steps):
        shares = drawn_from(trace.scores_at(step), trace.query.decoding)
        share = 0.0 if shares is None else float(shares[trace.tgt_ids[step]])
        total += math.log(share) if share > 0 else -math.inf
    return total


def outcomes(found: Iterable[Draw]) -> tuple[Outcome, ...]:
    """All draws of one query, grouped by output, the most frequent first, then the most probable."""
    groups: dict[tuple[int, ...], list[Draw]] = defaultdict(list)
    for draw in found:
        groups[draw.ids].append(draw)
    whole = sum(map(len, groups.values()))
    every = [_outcome(group, whole) for group in groups.values()]
    return tuple(sorted(every, key=lambda one: (-len(one.seeds), -one.drawn, one.ids)))


def _outcome(group: Sequence[Draw], whole: int) -> Outcome:
    first = group[0]
    low, high = interval(len(group), whole)
    return Outcome(
        ids=first.ids,
        text=first.text,
        ended=first.ended,
        seeds=tuple(draw.seed for draw in group),
        frequency=len(group) / whole,
        drawn=math.exp(first.log_drawn),
        own=math.exp(first.log_prob),
        low=low,
        high=high,
    )


def interval(count: int, whole: int) -> tuple[float, float]:
    """The 95 % score interval of a probability, from how often something came in how many draws (Wilson 1927)."""
    share, z2 = count / whole, NORMAL_95**2
    middle = (share + z2 / (2 * whole)) / (1 + z2 / whole)
    half = NORMAL_95 / (1 + z2 / whole) * math.sqrt(share * (1 - share) / whole + z2 / (4 * whole**2))
    low, high = np.clip((middle - half, middle + half), 0.0, 1.0)
    return float(low), float(high)
