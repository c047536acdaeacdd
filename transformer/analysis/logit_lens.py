"""Logit lens: candidates, rank, entropy, divergence at every depth of every step; the depth that decides a step.

The logit lens is the decoder's prediction if it stopped early. The stream after each part of the decoder is read like
the last one: through the final norm, if the model has one, and the output layer. (Before it, the stream of a pre-norm
model is not normalised; that of a post-norm model is.) After the last layer this is the model's own prediction.

Its limit: norm and output layer were trained for the last layer only. An earlier stream may hold a piece in directions
that they do not read, so a low rank early on does not mean that the piece was not there.

Source: nostalgebraist, "interpreting GPT: the logit lens" (2020). For the direction of the divergence: Belrose et
al., "Eliciting Latent Predictions from Transformers with the Tuned Lens" (2023).

Shapes: P places, N steps, K candidates listed, D d_model, V target vocabulary.
"""

import math
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from transformer.analysis.stream import StreamPlace, places
from transformer.model.transformer import Transformer
from transformer.runs.array_records import ArrayRecord
from transformer.runs.distribution import ranks_of
from transformer.runs.query import Runnable
from transformer.runs.running import replay
from transformer.runs.trace import Trace

TOP = 5
_ROWS_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Lens(ArrayRecord):
    """The prediction of every depth at every step."""

    places: tuple[StreamPlace, ...]  # the depths, the last of which is the model's own prediction [P]
    top_ids: np.ndarray  # the most probable pieces, best first [P, N, K]
    top_probs: np.ndarray  # their probabilities [P, N, K]
    rank: np.ndarray  # place of the piece that the output has, 1 for the most probable; ties go by id [P, N]
    log_prob: np.ndarray  # of that piece, in nats [P, N]
    entropy: np.ndarray  # of the distribution, in bits [P, N]
    divergence: np.ndarray  # KL(last || here) = sum p_last log2(p_last / p_here), in bits, 0 at the last place [P, N]

    @property
    def prob(self) -> np.ndarray:
        """Probability of the piece that the output has [P, N]."""
        return np.exp(self.log_prob)

    def by_layer(self) -> "Lens":
        """Only the places that end a layer, and the embedding."""
        kept = [index for index, place in enumerate(self.places) if place.ends_layer]
        arrays = {field.name: getattr(self, field.name)[kept] for field in fields(self) if field.name != "places"}
        return replace(self, places=tuple(self.places[index] for index in kept), **arrays)


@torch.inference_mode()
def read(model: Transformer, stream: Tensor) -> Tensor:
    """The prediction of a decoder stream [..., D]: log-probabilities in nats [..., V]."""
    return model.project(model.decoder.final_norm(stream.to(model.device))).cpu().log_softmax(dim=-1)


@torch.inference_mode()
def logit_lens(checkpoint: Runnable, trace: Trace, *, top: int = TOP) -> Lens:
    """Read every depth of every step of a run, and list the `top` candidates of each; it needs a decoder."""
    where = tuple(place for place in places(checkpoint.config, "decoder") if place.part != "final")  # [P]
    n = trace.n_steps
    recorded = replay(checkpoint, trace, [place.site for place in where])
    rows = slice(trace.row_of(0), trace.row_of(n))
    streams = torch.stack([torch.tensor(recorded[place.site][rows]) for place in where])  # [P, N, D]
    parts = [
        _read_rows(checkpoint.model, streams[:, first : first + _ROWS_AT_ONCE], trace.tgt_ids[first:], top)
        for first in range(0, n, _ROWS_AT_ONCE)
    ]
    arrays = {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}
    return Lens(places=where, **arrays)


def _read_rows(model: Transformer, streams: Tensor, tgt_ids: tuple[int, ...], top: int) -> dict[str, np.ndarray]:
    """Some steps at all places: a few rows at once keep one place's [rows, V] small."""
    chosen = torch.tensor(tgt_ids[: streams.size(1)])
    last = read(model, streams[-1])  # [n, V]
    found = [_describe(read(model, stream), last, chosen, top) for stream in streams]
    return {name: np.stack([place[name] for place in found]) for name in found[0]}


def _describe(log_probs: Tensor, last: Tensor, chosen: Tensor, top: int) -> dict[str, np.ndarray]:
    """One place: log-probabilities here and at the last place [n, V], ids of the output's pieces [n]."""
    own = log_probs.gather(1, chosen[:, None])  # [n, 1]
    best = log_probs.topk(min(top, log_probs.size(1)), dim=1)
    return {
        "top_ids": best.indices.numpy(),
        "top_probs": best.values.exp().numpy(),
        "rank": ranks_of(log_probs, chosen).numpy(),
        "log_prob": own[:, 0].numpy(),
        "entropy": _in_bits(log_probs, log_probs).neg().clamp(min=0).numpy(),
        "divergence": _in_bits(last, last - log_probs).clamp(min=0).numpy(),
    }


def _in_bits(log_probs: Tensor, values: Tensor) -> Tensor:
    """The mean of values [n, V] under a distribution [n, V], from nats to bits [n]; probability 0 adds nothing."""
    probs = log_probs.double().exp()
    return torch.where(probs > 0, probs * values, 0.0).sum(dim=1) / math.log(2)


@dataclass(frozen=True, eq=False)
class Paths:
    """When the output's piece was decided; places are indices, -1 means never."""

    first: np.ndarray  # the first place where it is the top candidate [N]
    stays: np.ndarray  # the first place from which it is the top candidate up to the last place [N]


def paths(rank: np.ndarray) -> Paths:
    """When each step was decided, by the rank of its piece among the candidates, from 1 [P, N]."""
    on_top = rank == 1
    first = np.where(on_top.any(axis=0), on_top.argmax(axis=0), -1)
    run = np.logical_and.accumulate(on_top[::-1], axis=0).sum(axis=0)  # places on top without a break, from the end
    return Paths(first, np.where(run > 0, len(rank) - run, -1))
