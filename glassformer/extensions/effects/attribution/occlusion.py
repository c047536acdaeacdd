"""Occlusion: the change of a step's probability when one input token is masked.

To hide a piece is to close its key, in every mask, for every query but its own:

    encoder-decoder   no other token of the encoder reads it, nor does cross-attention; its position stays
    decoder-only      no later token reads it

So nothing of it reaches the output, while everything else keeps its place. (Its own row still reads itself, because a
row without open keys has no weights.) In a decoder-only model the step's row begins with the piece that the step read
last: that piece cannot be hidden, and has no number. All pieces are hidden in one pass, one per row of a batch, and a
causal decoder computes all steps of each row at once.

Pieces that can replace each other are not shown: hidden alone, neither may matter; together, both would. And a model
was not trained on sentences with holes.

Source: Zeiler and Fergus, "Visualizing and Understanding Convolutional Networks" (2014), section 4.2, for covering a
part of the input; Li et al., "Understanding Neural Networks through Representation Erasure" (2016), for texts. Here
masks cover it.

Shapes: R rows read at once, N steps, P pieces, S source tokens, T target tokens, D d_model.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from glassformer.extensions.effects.attribution.target import AttributionTarget
from transformer.runs.array_records import ArrayRecord, Progress
from transformer.runs.interventions.targets import AtPlace

MOST_TOKENS = 1024  # that are read at once, all rows together
MOST_LOGITS = 2**22  # that are made at once, 16 MB


@dataclass(frozen=True, eq=False)
class OcclusionEffects(ArrayRecord):
    """Log-probabilities of each step's piece, in nats."""

    plain: np.ndarray  # with all pieces in sight [N]
    # With one piece hidden [N, P]; NaN where the step had not read it yet, or read it last.
    hidden: np.ndarray

    def probability_change(self, step: int) -> np.ndarray:
        """The change of the probability by hiding [P], -1 to 1."""
        return np.asarray(np.exp(self.hidden[step]) - np.exp(self.plain[step]))


def hider(places: Tensor, stack: str) -> tuple[AtPlace, ...]:
    """Hides one piece per row [R] in every mask of an attention whose keys are a stack's tokens; -1 hides nothing."""

    def closed(n_keys: int, device: torch.device) -> Tensor:
        return torch.arange(n_keys, device=device) == places.to(device)[:, None, None, None]  # [R, 1, 1, K]

    def of_others(mask: Tensor, offset: int) -> Tensor:  # [1, ., Q, K] -> [R, ., Q, K]
        n_keys = mask.size(-1)
        n_queries = mask.size(-2) if mask.size(-2) > 1 else n_keys - offset
        queries = torch.arange(offset, offset + n_queries, device=mask.device)
        own = queries[:, None] == torch.arange(n_keys, device=mask.device)  # [Q, K]
        return mask & ~(closed(n_keys, mask.device) & ~own)

    def of_source(mask: Tensor, offset: int) -> Tensor:
        return mask & ~closed(mask.size(-1), mask.device)

    crossing = AtPlace("decoder.*.cross_attn.mask", of_source)
    return (AtPlace(f"{stack}.*.self_attn.mask", of_others), *([crossing] if stack == "encoder" else []))


def hiding(asked: Sequence[AttributionTarget]) -> Generator[Progress, None, OcclusionEffects]:
    """Hide each piece from each of a run's steps, one at a time, in order; yields its progress before each part."""
    rows = [one.read_ids.size(1) - 1 for one in asked]  # of the decoder, one a step
    pieces = torch.tensor([one.piece for one in asked])
    last, n_pieces = asked[-1], asked[-1].n_pieces
    at_once = max(1, MOST_TOKENS // max(last.read_ids.size(1), last.src_ids.size(1)))
    parts = []
    for first in range(-1, n_pieces, at_once):  # the first row hides nothing
        yield Progress(max(first, 0), n_pieces)
        places = torch.arange(first, min(first + at_once, n_pieces))
        parts.append(_log_probs(last, places, rows, pieces))
    plain, *hidden_rows = torch.cat(parts).double().numpy()
    hidden = np.stack(hidden_rows, axis=1)  # [N, P]
    if last.stack == "decoder":
        hidden[np.arange(n_pieces) >= np.array(rows)[:, None]] = np.nan
    return OcclusionEffects(plain.copy(), hidden)


@torch.inference_mode()
def _log_probs(asked: AttributionTarget, places: Tensor, rows: list[int], pieces: Tensor) -> Tensor:
    """Of the pieces, in the rows of the steps, with a piece hidden in each row of the batch [n, N]."""
    model, tap, n = asked.model, asked.tap.also(*hider(places, asked.stack)), len(places)
    memory, mask = None, None
    if model.anatomy.reads:
        source = asked.src_ids.expand(n, -1)
        memory, mask = model.encode(source, tap=tap), model.source_mask(source)
    read = asked.read_ids.expand(n, -1)
    if tap.causal:
        states = model.decode(read, memory, mask, tap=tap)[:, rows]  # [n, N, D]
    else:  # a change mixes tokens: each prefix is another text
        states = torch.stack([model.decode(read[:, : row + 1], memory, mask, tap=tap)[:, -1] for row in rows], 1)
    step = max(1, MOST_LOGITS // (model.config.tgt_vocab_size * len(rows)))
    return torch.cat([_of(model.project(some, tap=tap), pieces) for some in states.split(step)])


def _of(logits: Tensor, pieces: Tensor) -> Tensor:
    """The log-probability of one piece a step, of logits [n, N, V] -> [n, N]."""
    own = logits.gather(-1, pieces.to(logits.device).expand(len(logits), -1)[..., None])[..., 0]
    return (own - logits.logsumexp(dim=-1)).cpu()
