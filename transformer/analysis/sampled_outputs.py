"""Sampling: what its settings make of one step's distribution, and many outputs that it draws for one sentence.

Temperature divides all scores by one number, which keeps their order: the most probable piece stays first. Top-k and
top-p then cut off the least probable pieces, and the rest is scaled to sum to 1 again. The entropy of the whole
distribution (`Trace.entropies`) counts every piece of the vocabulary: a model trained with label smoothing leaves a
share to all pieces at every step, so the entropy stays high even where the model is sure.

Draws are decoded as a batch, and each is what a run with its seed writes (`transformer.runs.running`). An
output's probability is the product of its pieces' probabilities in the distributions they were drawn from, after
temperature, top-k and top-p. So it can be compared with how often the output came.

Source: Wilson, "Probable Inference, the Law of Succession, and Statistical Inference" (1927), for the intervals;
Szegedy et al., "Rethinking the Inception Architecture for Computer Vision" (2016), section 7: the smoothing.

Shapes: V target vocabulary.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import torch

from transformer.errors import QueryError
from transformer.runs.distribution import drawn_from, sampling_distribution
from transformer.runs.drafting import verdict
from transformer.runs.query import MOST_TOGETHER, Query, Runnable, Sampling
from transformer.runs.reading import DecodedOutput, EncodedBatch, Pause, go_on, read
from transformer.runs.running import decode_together, finish_alone
from transformer.runs.trace import Trace


@dataclass(frozen=True, eq=False)
class Reshaped:
    """The distributions of one step, each [V], float32."""

    raw: np.ndarray  # the model's own
    tempered: np.ndarray  # after the rules of the model's config and the temperature
    by_k: np.ndarray  # after top-k, too
    cut: np.ndarray  # after top-p, too: what is drawn from
    how: Sampling  # the settings


@dataclass(frozen=True)
class Spread:
    """How spread out a distribution is."""

    entropy: float  # in bits
    left: int  # pieces with a probability above 0
    best: int  # the most probable piece
    top: float  # its probability


def reshaped(log_probs: np.ndarray, scores: np.ndarray, how: Sampling) -> Reshaped:
    """What sampling makes of one step, from the model's log-probabilities [V] and the scores of the choice [V].

    The scores are the log-probabilities after the rules of the model's config (`Trace.scores_at`); the seed does not
    matter.
    """

    def made(settings: Sampling) -> np.ndarray:
        return sampling_distribution(torch.tensor(scores), settings).numpy()

    return Reshaped(
        raw=np.exp(log_probs),
        tempered=made(replace(how, top_k=0, top_p=1.0)),
        by_k=made(replace(how, top_p=1.0)),
        cut=made(how),
        how=how,
    )


def spread(probs: np.ndarray) -> Spread:
    """How spread out a distribution [V] is."""
    there = probs[probs > 0].astype(np.float64)
    best = int(probs.argmax())
    return Spread(abs(float(-(there * np.log2(there)).sum())), len(there), best, float(probs[best]))


N_BEST = 10
"""Pieces that `entropy_of_best` looks at."""


def other_share(log_probs: np.ndarray) -> np.ndarray:
    """1 - p of the most probable piece: the share of all others [step], from log-probabilities [step, vocab]."""
    return np.asarray(1 - np.exp(np.minimum(log_probs.max(axis=-1).astype(np.float64), 0.0)))


def entropy_of_best(log_probs: np.ndarray, *, count: int = N_BEST) -> np.ndarray:
    """Entropy among the most probable pieces, as if there were no others [step], in bits, from log-probabilities."""
    best = min(count, log_probs.shape[-1])
    probs = np.exp(-np.partition(-log_probs, best - 1, axis=-1)[..., :best].astype(np.float64))  # [step, best]
    shares = probs / probs.sum(axis=-1, keepdims=True)
    return np.asarray(-(shares * np.log2(np.where(shares > 0, shares, 1.0))).sum(axis=-1) + 0.0)  # + 0: no -0


def entropy_of_smoothed(smoothing: float, n_pieces: int) -> float:
    """Entropy, in bits, of a training target with this share spread evenly over all pieces and the rest on one."""
    each = smoothing / n_pieces
    probs = np.full(n_pieces, each)
    probs[0] += 1 - smoothing
    return float(-(probs * np.log2(np.where(probs > 0, probs, 1.0))).sum() + 0.0)


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
