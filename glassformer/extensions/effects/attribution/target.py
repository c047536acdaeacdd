"""Attribution target (a step and its token); token credit by attention weights, lengths of added vectors, rollout.

Everything here explains one number, the log-probability of that piece in nats: adding one number to all logits changes
no probability. A step is read alone: the source and what the decoder had read by then. So the answer is right for any
change inside the model, even one that lets tokens see later ones.

A weight is a share of a value, whatever its size: a key with a large weight and a short value moves the stream less
than one with half the weight and a long value. Kobayashi et al. measure the length of the vector that a head takes from
a key, α (x W_V + b_V) W_O; a layer's heads are added before the length is taken, as in the model. The bias of W_O
belongs to no key and is left out. With several layers each number is their mean; it is only a summary, as lengths in
different layers' streams are not comparable.

Source: Kobayashi et al., "Attention is Not Only a Weight" (2020), section 2; Abnar and Zuidema (2020) for rollout
(`transformer.analysis.rollout`).

Shapes: R rows read at once, S source tokens, T tokens that the decoder had read, V target vocabulary, L layers,
H heads, P pieces, Q queries, K keys, d d_head, D d_model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np
import torch
from torch import Tensor

from transformer.analysis.rollout import cross_rollout, self_rollout
from transformer.errors import QueryError
from transformer.model.anatomy import Kind, StackName
from transformer.model.attention import share_heads
from transformer.model.module import widened
from transformer.model.taps import NO_TAP, Observer, Tap
from transformer.model.transformer import Transformer
from transformer.runs.apply_interventions import tap_of_run
from transformer.runs.array_records import ArrayRecord
from transformer.runs.query import Runnable
from transformer.runs.trace import Trace


@dataclass(frozen=True, eq=False)
class AttributionTarget:
    """One step and its piece."""

    model: Transformer  # the model
    src_ids: Tensor  # what the encoder reads [1, S]
    read_ids: Tensor  # what the decoder had read [1, T]
    piece: int  # the id that is explained
    n_source: int  # pieces of the source without padding
    tap: Tap = NO_TAP  # what the run was made with
    place: int | None = None  # of an encoder-only model: the token whose own piece its MLM head predicts

    @property
    def row(self) -> int:
        """The token of the last stack whose vector becomes the logits."""
        return self.read_ids.size(1) - 1 if self.place is None else self.place

    @property
    def stack(self) -> StackName:
        """The stack that reads the pieces: the encoder; without one, the decoder with all that it had read."""
        return "encoder" if self.model.anatomy.reads else "decoder"

    @property
    def n_pieces(self) -> int:
        """Number of pieces that get credit."""
        return self.n_source if self.stack == "encoder" else self.read_ids.size(1)

    @property
    def tokens(self) -> str:
        """The site where the pieces enter."""
        return f"{self.stack}.embedding.tokens"

    def logits(self, *, tap: Tap | None = None, rows: int = 1) -> Tensor:
        """The logits of the step [R, V], read R times, with the run's tap or another, which may make rows differ."""
        seen = self.tap if tap is None else tap
        memory, mask = None, None
        if self.model.anatomy.reads:
            source = self.src_ids.expand(rows, -1)
            memory, mask = self.model.encode(source, tap=seen), self.model.source_mask(source)
            if self.place is not None:
                return self.model.project(memory[:, self.place : self.place + 1], tap=seen)[:, 0]
        hidden = self.model.decode(self.read_ids.expand(rows, -1), memory, mask, tap=seen)  # [R, T, D]
        return self.model.project(hidden[:, -1:], tap=seen)[:, 0]

    def log_probs(self, *, tap: Tap | None = None, rows: int = 1) -> Tensor:
        """The log-probability of the piece, in nats [R]; the arguments are those of `logits`."""
        return self.logits(tap=tap, rows=rows).log_softmax(dim=-1)[:, self.piece]


def ask(
    checkpoint: Runnable, trace: Trace, step: int, *, piece: int | None = None, tap: Tap = NO_TAP
) -> AttributionTarget:
    """Explain why a step, from 0, wrote its piece, or another possible piece; `tap` is the run's besides the query.

    A QueryError if the trace is of another checkpoint, the model writes nothing, or the step or piece does not exist.
    """
    with torch.inference_mode(False):  # what the target holds is used where gradients are taken
        tap = tap_of_run(checkpoint, trace.query, tap)
        checkpoint.model.anatomy.stack("decoder")
        if not 0 <= step < trace.n_steps:
            raise QueryError(
                "step {index} does not exist; this run has steps 0 to {last}.", index=step, last=trace.n_steps - 1
            )
        size = checkpoint.config.tgt_vocab_size
        if piece is not None and not 0 <= piece < size:
            raise QueryError("token id {i} is outside the vocabulary; ids go from 0 to {last}.", i=piece, last=size - 1)
        return AttributionTarget(
            model=checkpoint.model,
            src_ids=torch.tensor([trace.src_ids], dtype=torch.long),
            read_ids=torch.tensor([trace.read_ids[: trace.row_of(step) + 1]], dtype=torch.long),
            piece=trace.tgt_ids[step] if piece is None else piece,
            n_source=trace.n_tokens("encoder"),
            tap=tap,
        )


def ask_each(checkpoint: Runnable, trace: Trace) -> tuple[AttributionTarget, ...]:
    """Ask why each step wrote its piece; see `ask`."""
    last = ask(checkpoint, trace, trace.n_steps - 1)
    read = [last.read_ids[:, : trace.row_of(step) + 1] for step in range(trace.n_steps)]
    return tuple(replace(last, read_ids=ids, piece=piece) for ids, piece in zip(read, trace.tgt_ids, strict=True))


@dataclass(frozen=True, eq=False)
class AttentionCredit(ArrayRecord):
    """What a step's row takes from each piece."""

    kind: Kind  # by which attention: cross-attention, or the self-attention of a decoder that is alone
    weights: np.ndarray  # α, 0 to 1 [L, H, P]
    lengths: np.ndarray  # ‖α v W_O‖ of each head [L, H, P]
    together: np.ndarray  # the length of all heads' vectors added [L, P]
    rollout: np.ndarray  # rollout through all layers, 0 to 1 [P]; NaN where a change leaves rows without weights

    def attention(self, layer: int | None, head: int | None) -> np.ndarray:
        """The weights [P]: of one head or the mean over heads, of one layer or the mean over layers."""
        return _mean(self.weights, layer, head)

    def moved(self, layer: int | None, head: int | None) -> np.ndarray:
        """The lengths [P]: of one head or of all heads together, of one layer or the mean over layers."""
        if head is not None:
            return _mean(self.lengths, layer, head)
        return np.asarray(self.together.mean(axis=0) if layer is None else self.together[layer])


def _mean(values: np.ndarray, layer: int | None, head: int | None) -> np.ndarray:
    """Of [L, H, P] -> [P]."""
    kept = values if layer is None else values[layer : layer + 1]
    kept = kept if head is None else kept[:, head : head + 1]
    return np.asarray(kept.mean(axis=(0, 1)))


@torch.inference_mode()
def weigh(asked: AttributionTarget) -> AttentionCredit:
    """Weigh what a step's row takes from each piece."""
    parts = asked.model.anatomy
    attention = parts.attention("cross" if parts.reads else "decoder")
    # Of every attention its mean map [Q, K]; of this one the last row's weights [H, K] and values [G, K, d].
    maps, seen = dict[str, np.ndarray](), dict[str, Tensor]()

    def keep(site: str, value: Tensor) -> None:
        value = value.cpu()
        if site.endswith("weights"):
            maps[site] = value[0].double().mean(dim=0).numpy()
        if fnmatchcase(site, attention.site("*", "*")):
            seen[site] = value[0, :, -1] if site.endswith("weights") else value[0]

    asked.logits(tap=asked.tap.also(Observer(["*_attn.weights", attention.site("*", "values")], keep)))
    n, weights, lengths, together = asked.n_pieces, [], [], []
    for layer, module in enumerate(asked.model.attentions(attention.kind)):
        alpha = seen[attention.site(layer, "weights")][:, :n]  # [H, P]
        out_proj = asked.tap.child(*attention.place(layer).split("."), "out_proj")
        weight = out_proj.setting("weight", module.out_proj.weight).cpu()  # W_O as the run went by it [D, H * d]
        values = seen[attention.site(layer, "values")][:, :n]  # [G, P, d]
        written = _written(weight, values, n_heads=len(alpha))  # [H, P, D]
        weights.append(alpha.double().numpy())
        lengths.append((alpha * written.norm(dim=-1)).double().numpy())
        together.append(torch.einsum("hp,hpd->pd", alpha, written).norm(dim=-1).double().numpy())
    return AttentionCredit(
        attention.kind, np.stack(weights), np.stack(lengths), np.stack(together), _rolled(asked, maps)
    )


def _written(weight: Tensor, values: Tensor, *, n_heads: int) -> Tensor:
    """v W_O of every head and key, [G, K, d] -> [H, K, D]."""
    shared = share_heads(values[None], n_heads)[0]  # [H, K, d]
    columns = widened(weight).unflatten(1, (n_heads, -1))  # [D, H, d]
    return torch.einsum("hkd,mhd->hkm", shared, columns)


def _rolled(asked: AttributionTarget, maps: Mapping[str, np.ndarray]) -> np.ndarray:
    """Rollout of the last row [P]."""

    def of(kind: Kind) -> np.ndarray:
        one = asked.model.anatomy.attention(kind)
        return np.stack([maps[one.site(layer, "weights")][None] for layer in range(one.n_layers)])

    with np.errstate(invalid="ignore", divide="ignore"):
        if asked.model.anatomy.reads:
            rolled = cross_rollout(of("encoder"), of("decoder"), of("cross"))
        else:
            rolled = self_rollout(of("decoder"))
    return np.array(rolled[-1, : asked.n_pieces])
