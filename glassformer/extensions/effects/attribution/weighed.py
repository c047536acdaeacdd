"""Attention of one step, by its weights α and by the vectors that it adds: ‖α v W_O‖ instead of α.

A weight says how much of a value is taken, not how large the value is: a key with a large weight and a short value
moves the stream less than one with half the weight and a long value. Kobayashi et al. measure the length of the
vector that a head takes from a key, α (x W_V + b_V) W_O; the vectors of all heads of a layer are added before they
are measured, as in the model. The bias of W_O belongs to no key and is left out.

With several layers each number is the mean over them. Lengths in different layers' streams are not comparable, so the
mean is only a summary; one layer alone is the real measure.

Source: Kobayashi et al., "Attention is Not Only a Weight" (2020), section 2; Abnar and Zuidema
(2020) for rollout (`transformer.analysis.rollout`).

Shapes: L layers, H heads, P pieces, Q queries, K keys, d d_head, D d_model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
import torch
from torch import Tensor

from glassformer.extensions.effects.attribution.asked import Asked
from transformer.analysis.rollout import cross_rollout, self_rollout
from transformer.model.anatomy import Kind
from transformer.model.attention import MultiHeadAttention, share_heads
from transformer.model.linear import widened
from transformer.model.taps import Onlooker
from transformer.runs.results import Arrays


@dataclass(frozen=True, eq=False)
class Weighed(Arrays):
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
def weigh(asked: Asked) -> Weighed:
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

    asked.logits(tap=asked.tap.also(Onlooker(["*_attn.weights", attention.site("*", "values")], keep)))
    n, weights, lengths, together = asked.n_pieces, [], [], []
    for layer, module in enumerate(asked.model.attentions(attention.kind)):
        alpha = seen[attention.site(layer, "weights")][:, :n]  # [H, P]
        weight = _weight(asked, module, attention.place(layer))
        values = seen[attention.site(layer, "values")][:, :n]  # [G, P, d]
        written = _written(weight, values, n_heads=len(alpha))  # [H, P, D]
        weights.append(alpha.double().numpy())
        lengths.append((alpha * written.norm(dim=-1)).double().numpy())
        together.append(torch.einsum("hp,hpd->pd", alpha, written).norm(dim=-1).double().numpy())
    return Weighed(attention.kind, np.stack(weights), np.stack(lengths), np.stack(together), _rolled(asked, maps))


def _weight(asked: Asked, module: MultiHeadAttention, place: str) -> Tensor:
    """W_O as the run went by it [D, H * d]."""
    return asked.tap.child(*place.split("."), "out_proj").setting("weight", module.out_proj.weight).cpu()


def _written(weight: Tensor, values: Tensor, *, n_heads: int) -> Tensor:
    """v W_O of every head and key, [G, K, d] -> [H, K, D]."""
    shared = share_heads(values[None], n_heads)[0]  # [H, K, d]
    columns = widened(weight).unflatten(1, (n_heads, -1))  # [D, H, d]
    return torch.einsum("hkd,mhd->hkm", shared, columns)


def _rolled(asked: Asked, maps: Mapping[str, np.ndarray]) -> np.ndarray:
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
