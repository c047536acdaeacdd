"""Input × gradient and integrated gradients of a step's log-probability by input token; gradient norms by depth.

    input x gradient        sum over dimensions of x_i df/dx_i, at the input itself
    integrated gradients    sum of (x_i - b_i) times the mean of df/dx_i on the straight line from a baseline b to x

f is the log-probability of the piece in nats, x the token embeddings as they enter their stack, scaled if the model
scales them; positions are added as usual. The baseline is "zero", an embedding of 0 for every piece, or "mean", the
mean row of the table. Integrated gradients add up to f(x) - f(b), up to the error of the integral, which is part of the
result. The integral uses Gauss and Legendre's rule, doubling the points until the error is small. Near an embedding of
0 a norm without positions before it changes fast: there "zero" needs many points, and may not converge.

Gradients are taken with respect to a tensor that a visitor puts in place of the embeddings. Parameters get no
gradients, as other threads use the model.

Source: Denil et al., "Extraction of Salient Sentences from Labelled Documents" (2014), for input x gradient of texts;
Sundararajan et al., "Axiomatic Attribution for Deep Networks" (2017), section 3, equation 1 and proposition 1, and
section 5 for the baseline and the points.

Shapes: R rows, P pieces, D d_model, n points.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from glassformer.extensions.effects.attribution.target import AttributionTarget
from transformer.errors import QueryError
from transformer.model.anatomy import anatomy
from transformer.model.module import widened
from transformer.model.taps import Recorder, Replacer
from transformer.model.transformer import Transformer
from transformer.runs.array_records import ArrayRecord, Progress

Baseline = Literal["zero", "mean"]

FEWEST_POINTS, MOST_POINTS = 16, 256
TOLERANCE = 0.01
"""An error of the sum below this share of it is small."""
FLOOR = 0.001
"""So is one below this, in nats: credits are written with three digits."""
_MOST_VALUES = 2**26  # that are kept for the way back, 256 MB, about


@dataclass(frozen=True, eq=False)
class Integrated(ArrayRecord):
    """Integrated gradients of one step."""

    credit: np.ndarray  # of each piece, in nats [P]
    value: float  # f of the input, a log-probability in nats
    baseline: float  # f of the baseline
    n_points: int  # points on the line

    @property
    def error(self) -> float:
        """The difference between the sum of the credits and f(x) - f(b), in nats."""
        return float(self.credit.sum() - (self.value - self.baseline))

    @property
    def is_complete(self) -> bool:
        """Whether the error is small, by itself or compared with f(x) - f(b)."""
        return abs(self.error) <= max(FLOOR, TOLERANCE * abs(self.value - self.baseline))


def _ordinary(value: Tensor) -> Tensor:
    """A copy of what a change took from another run: autograd keeps no tensor that was made in inference mode."""
    return value.clone() if value.is_inference() else value


@contextmanager
def _with_gradients(model: Transformer) -> Iterator[None]:
    """A place where gradients can be taken, also inside of `torch.inference_mode`."""
    if any(parameter.is_inference() for parameter in model.parameters()):
        raise QueryError(
            "this model was loaded inside torch.inference_mode, so gradients cannot be computed; load it outside "
            "that mode."
        )
    with torch.inference_mode(False), torch.enable_grad():
        try:
            yield
        except RuntimeError as error:
            if "Inference tensors" not in str(error):
                raise
            raise QueryError(
                "gradients cannot be computed: this run takes values from another run, and gradients cannot flow "
                "back through them."
            ) from error


def embeddings(asked: AttributionTarget) -> Tensor:
    """The pieces' embeddings as they enter, after the run's changes [1, tokens, D]."""
    recorder = Recorder([asked.tokens])
    with torch.inference_mode(False), torch.no_grad():
        asked.logits(tap=asked.tap.also(recorder))
    return recorder.values[asked.tokens].clone()


def baseline_of(asked: AttributionTarget, kind: Baseline) -> Tensor:
    """The embedding of no particular piece, as it would enter [D]."""
    model, stack = asked.model, asked.model.stack(asked.stack)
    table = model.src_table if asked.stack == "encoder" else model.target_table
    if kind == "zero":
        return torch.zeros_like(widened(table[0])).cpu()
    total = torch.stack([widened(rows).sum(dim=0) for rows in table.split(4096)]).sum(dim=0)
    return (total / len(table) * stack.embedding.scale).cpu()


def gradient(asked: AttributionTarget, x: Tensor) -> tuple[Tensor, Tensor]:
    """The log-probability of the piece [R] and its gradient [R, tokens, D], at embeddings of one text per row."""
    with _with_gradients(asked.model):
        leaf = x.detach().clone().requires_grad_(True)
        # Record every site, weights too: the backward pass of torch's fused attention gives NaN for a query without
        # open keys.
        given = Replacer({asked.tokens: lambda before: leaf.to(before.device), "*": _ordinary}, causal=True)
        values = asked.log_probs(tap=asked.tap.also(given), rows=len(x))
        (slopes,) = torch.autograd.grad(values.sum(), leaf)
    return values.detach().cpu(), slopes


def by_depth(asked: AttributionTarget, sites: Sequence[str]) -> np.ndarray:
    """The norm of the gradient of the log-probability by the stream at some sites, over all tokens, float64 [site]."""
    kept: dict[str, Tensor] = {}

    def keep(value: Tensor, *, site: str) -> Tensor:
        begins = site.endswith("embedding.output")
        kept[site] = value.detach().clone().requires_grad_(True) if begins else _ordinary(value)
        return kept[site]

    with _with_gradients(asked.model):
        given = Replacer({site: partial(keep, site=site) for site in sites} | {"*": _ordinary}, causal=True)
        value = asked.log_probs(tap=asked.tap.also(given)).sum()
        slopes = torch.autograd.grad(value, [kept[site] for site in sites])
    return np.array([float(one.double().norm()) for one in slopes])


def input_times_gradient(asked: AttributionTarget) -> np.ndarray:
    """Input x gradient of each piece, in nats, float64 [P]."""
    x = embeddings(asked)
    _, slopes = gradient(asked, x)
    return _by_piece(asked, (x * slopes)[0])


def integrating(
    asked: AttributionTarget, *, baseline: Baseline = "zero", n_points: int | None = None
) -> Generator[Progress, None, Integrated]:
    """Integrated gradients of each piece, in parts: yields before each how many points on the line are done.

    By default as many points as make the error small, at most `MOST_POINTS`. A QueryError if the model was loaded in a
    mode without gradients.
    """
    x = embeddings(asked)
    start = baseline_of(asked, baseline).expand_as(x)
    ends, _ = gradient(asked, torch.cat([start, x]))
    n = FEWEST_POINTS if n_points is None else n_points
    while True:
        mean = yield from _mean_gradient(asked, start, x, n)
        credit = _by_piece(asked, ((x - start) * mean)[0])
        found = Integrated(credit, float(ends[1]), float(ends[0]), n)
        if n_points is not None or found.is_complete or 2 * n > MOST_POINTS:
            return found
        n *= 2


def _mean_gradient(asked: AttributionTarget, start: Tensor, x: Tensor, n: int) -> Generator[Progress, None, Tensor]:
    """The mean of the gradient on the line from `start` to x [1, tokens, D]."""
    nodes, weights = np.polynomial.legendre.leggauss(n)  # on -1 to 1
    places = torch.tensor((nodes + 1) / 2, dtype=x.dtype)[:, None, None]  # [n, 1, 1]
    shares = torch.tensor(weights / 2, dtype=torch.float64)[:, None, None]
    total, at_once = torch.zeros_like(x, dtype=torch.float64), _rows(asked)
    parts = zip(places.split(at_once), shares.split(at_once), strict=True)
    for done, (place, share) in enumerate(parts):
        yield Progress(done * at_once, n)
        _, slopes = gradient(asked, start + place * (x - start))
        total += (share * slopes.double()).sum(dim=0)
    return total


def _rows(asked: AttributionTarget) -> int:
    """How many rows fit into memory, with all that the way back needs of them."""
    config, n_tokens = asked.model.config, asked.read_ids.size(1) + asked.src_ids.size(1)
    heads, d_ff = (
        max(getattr(config.of(one.name), of) for one in anatomy(config).stacks) for of in ("n_heads", "d_ff")
    )
    of_a_token = 16 * config.d_model + 4 * d_ff + 4 * heads * n_tokens
    n_layers = config.n_encoder_layers + config.n_decoder_layers
    return max(1, _MOST_VALUES // (n_layers * of_a_token * n_tokens + 4 * config.tgt_vocab_size))


def _by_piece(asked: AttributionTarget, credit: Tensor) -> np.ndarray:
    """Summed over dimensions [tokens, D] -> [P], in float64, without padding."""
    return credit.double().sum(dim=-1)[: asked.n_pieces].numpy()
