"""What ALiBi and relative positions add to scores by the distance of query and key, and how much that matters.

Source: as in `transformer.model.distance`, whose functions are used. Not known here: how a head uses it.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer.model.anatomy import StackName
from transformer.model.distance import BIASES
from transformer.model.transformer import Transformer


@dataclass(frozen=True, eq=False)
class DistanceBias:
    """What a stack's self-attentions add to scores, the same in all layers."""

    distances: np.ndarray  # the key's position minus the query's, ascending [distance]
    bias: np.ndarray  # what is added [head, distance]
    buckets: np.ndarray | None = None  # the bucket of each distance [distance]; None: there are none
    # How much each head's score falls with a token of distance [head]; None: that is learned.
    slopes: np.ndarray | None = None

    def edges(self) -> tuple[float, ...]:
        """The borders between buckets, each between two distances."""
        if self.buckets is None:
            return ()
        places = np.flatnonzero(np.diff(self.buckets))
        return tuple(float(self.distances[place]) + 0.5 for place in places)


@torch.inference_mode()
def distance_bias(model: Transformer, stack: StackName, *, most: int) -> DistanceBias:
    """The bias of a stack for distances up to `most` tokens; a decoder's keys never come after the query."""
    config, causal = model.config.of(stack), model.anatomy.attention(stack).causal
    steps = torch.arange(-most, 1 if causal else most + 1)  # [distance]
    if (kind := BIASES.get(config.positions)) is None:
        raise ValueError(f"Positions of the kind {config.positions} add nothing to scores.")
    apart, like = steps[None].to(model.device), torch.zeros(1, device=model.device)
    found = model.stack(stack).order.bias(apart, like)[0, :, 0]  # [H, distance]
    return DistanceBias(
        steps.numpy(),
        found.float().numpy(force=True),
        buckets=kind.buckets(config, steps, causal).numpy() if kind.buckets else None,
        slopes=np.array(kind.slopes(config.n_heads)) if kind.slopes else None,
    )


@dataclass(frozen=True, eq=False)
class Spreads:
    """How much the scores of one query vary from key to key, averaged over queries; each [layer, head]."""

    content: np.ndarray  # By what q . k alone gives.
    bias: np.ndarray  # by what the distance adds


def spreads(scores: np.ndarray, bias: np.ndarray, allowed: np.ndarray) -> Spreads:
    """Separate two reasons why a query's scores vary: the keys themselves, and their distance.

    The softmax depends only on differences between the scores of a row. So each part is measured by its standard
    deviation over the open keys, in rows with at least two of them. Scores [layer, head, query, key] include the
    bias, which broadcasts to them, but no mask and no cap; the mask is [query, key] or [layer, query, key].
    """
    there = np.broadcast_to(allowed if allowed.ndim == 3 else allowed[None], (len(scores), *scores.shape[2:]))[
        :, None
    ]
    content, added = scores - bias, np.broadcast_to(bias, scores.shape)
    return Spreads(_spread(content, there), _spread(added, there))


def _spread(values: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Standard deviation over the keys of each row, in the mean over rows; 0 if no row has two keys."""
    count = there.sum(axis=-1)  # [layer, 1, query]
    shown = np.where(there, values.astype(np.float64), 0.0)
    mean = shown.sum(axis=-1) / np.maximum(count, 1)  # [layer, head, query]
    square = np.where(there, (shown - mean[..., None]) ** 2, 0.0).sum(axis=-1) / np.maximum(count, 1)
    rows = count > 1
    deviation = np.where(rows, np.sqrt(square), 0.0)
    return np.asarray(deviation.sum(axis=-1) / np.maximum(rows.sum(axis=-1), 1))
