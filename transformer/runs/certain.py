"""Whether an output decoded in a batch is what a run alone would have written, whatever the rounding.

A batch sums in another order than a single sentence, so log-probabilities differ in their last digits. That changes a
choice only where two pieces were nearly equal. The recording pass, which every run makes alone, knows how near they
were: if each choice of the output is the best piece by more than rounding can move, decoding alone, step by step,
writes the same output.

For sampling, the seed fixes the numbers that are drawn. A piece with probability p arrives after an exponential time
of rate p, and the first to arrive is drawn (see `distribution.race`). So these scores must pass the same
test, and the last piece that top-k and top-p keep must be far enough from the first that they leave out.

Shapes: T steps, V target vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer.runs.distribution import race, sampling_distribution
from transformer.runs.query import Decoding, Sampling

CLOSE = 1e-4
"""How near, in nats, two pieces may come; rounding moves a log-probability by about 6e-6."""

_ORDINARY = 32.0  # nats from the best piece to the worst; rounding grows with the logits


def choices(
    log_probs: Tensor, ids: Sequence[int], how: Decoding, *, n_forced: int = 0, growth: float = 1.0
) -> list[int | None]:
    """What decoding alone, greedily or by sampling, surely chooses after each beginning of these ids.

    `log_probs` are the scores of the choices [T, V], from a pass that read these ids; the first of them may be
    forced. `growth` is the factor by which rules of decoding multiply rounding. None: two pieces come so near that
    rounding could decide.
    """
    lowest = log_probs.nan_to_num(nan=torch.nan, neginf=0.0).min()
    limit = CLOSE * growth * max(1.0, float(-lowest) / _ORDINARY)  # NaN never passes below
    found = _drawn(log_probs, len(ids), how, limit) if isinstance(how, Sampling) else _best(log_probs, limit)
    return [*ids[:n_forced], *found[n_forced:]]


def _best(scores: Tensor, limit: float) -> list[int | None]:
    """The best piece of each row [T, V]; None where another comes nearer than the limit."""
    best = torch.from_numpy(scores.numpy().argmax(axis=-1))[:, None]  # [T, 1]; torch takes ten times as long
    ahead = scores.gather(1, best)[:, 0] - scores.scatter(1, best, -torch.inf).amax(dim=-1)  # [T]
    return [i if lead >= limit else None for i, lead in zip(best[:, 0].tolist(), ahead.tolist(), strict=True)]


def _drawn(log_probs: Tensor, n_steps: int, how: Sampling, limit: float) -> list[int | None]:
    probs = sampling_distribution(log_probs, temperature=how.temperature, top_k=how.top_k, top_p=how.top_p)
    limit = limit * max(1.0, 1 / how.temperature)  # the temperature divides differences, too
    generator = torch.Generator().manual_seed(how.seed)
    races = torch.stack([race(row, generator) for row in probs[:n_steps]])  # drawn at a forced step as well
    return [
        i if i is not None and _border_is_clear(log_probs[step], probs[step], how, limit) else None
        for step, i in enumerate(_best(races.log(), limit))
    ]


def _border_is_clear(log_probs: Tensor, probs: Tensor, how: Sampling, limit: float) -> bool:
    """Whether rounding cannot move a piece [V] over the border of top-k or top-p."""
    kept = probs > 0
    if not (how.top_k or how.top_p < 1.0) or bool(kept.all()):
        return True
    if not float(log_probs[kept].min() - log_probs[~kept].max()) >= limit:
        return False
    if how.top_p == 1.0:
        return True
    shares = (log_probs / how.temperature).softmax(dim=-1)
    whole = shares.topk(how.top_k).values.sum() if 0 < how.top_k < len(shares) else shares.sum()
    together = shares[kept].sum() / whole
    last = shares[kept].min() / whole  # the pieces before it were not enough to reach p; with it they are
    return abs(float(together) - how.top_p) >= limit and abs(float(together - last) - how.top_p) >= limit
