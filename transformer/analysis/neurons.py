"""Feed-forward neurons: silent shares, histogram, activation curve, most active ones, direct effect on the logits.

A feed-forward sub-layer computes down(f(up(x))) for each token alone. A neuron is one of the d_ff numbers in between:
it reads x with its row of up_proj, and writes its activation times its column of down_proj. These columns, each times
its activation, and the bias add up to the sub-layer's output. With a gate the sub-layer computes
down(f(gate(x)) * up(x)): a neuron reads x twice, and its activation is the product.

The direct effect on the logits goes from the column through the later norms and the output layer, without what later
sub-layers do with it and without a soft cap. A norm divides by a size that depends on the whole stream; it is held at
its value in the run (Elhage et al., section "Handling Layer Normalization").

Source: Vaswani et al. (2017), section 3.3; Geva et al., "Transformer Feed-Forward Layers Are Key-Value Memories"
(2021); Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021).

Shapes: L layers, T tokens, D d_model, F d_ff, V target vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from transformer.model.anatomy import StackName, anatomy
from transformer.model.config import ModelConfig
from transformer.model.feed_forward import ACTIVATIONS
from transformer.model.module import widened
from transformer.model.norms import Norm
from transformer.runs.running import replay
from transformer.runs.trace import Trace

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint
    from transformer.model.transformer import Transformer

NEAR_ZERO = 0.01
"""An activation nearer to 0 than this counts as silent, where the function is never quite 0."""
N_BINS = 60


def site(stack: StackName, layer: int, name: str) -> str:
    """The site of a feed-forward value: "pre_activation", "activation" or "output"."""
    return f"{stack}.{layer}.ffn.{name}"


# ------------------------------------------------------------------------------------------------ activations


def silent(activation: np.ndarray, kind: str) -> np.ndarray:
    """Which activations are silent: exactly 0 after a ReLU, within `NEAR_ZERO` of 0 after another function."""
    return activation == 0 if kind == "relu" else np.abs(activation) < NEAR_ZERO


def silent_shares(checkpoint: Checkpoint, trace: Trace, stack: StackName) -> np.ndarray:
    """The share of silent neurons of every layer at every token, 0 to 1, float64 [L, T]."""
    n_layers = anatomy(checkpoint.config).stack(stack).n_layers
    sites = [site(stack, layer, "activation") for layer in range(n_layers)]
    found = replay(checkpoint, trace, sites)
    return np.stack([silent(found[name], checkpoint.config.activation).mean(axis=1) for name in sites])


@dataclass(frozen=True, eq=False)
class ActivationHistogram:
    """The distribution of pre-activations."""

    edges: np.ndarray  # of the bins, ascending; 0 is one of them [bin + 1]
    everywhere: np.ndarray  # share of all pre-activations in each bin [bin]
    here: np.ndarray  # share of one token's [bin]


def histogram(pre_activation: np.ndarray, token: int) -> ActivationHistogram:
    """Count the finite pre-activations of all tokens [T, F], and of one token, in about `N_BINS` bins."""
    finite = pre_activation[np.isfinite(pre_activation)]
    low, high = float(finite.min(initial=0)), float(finite.max(initial=0))
    width = (high - low) / N_BINS or 1.0
    edges = width * np.arange(np.floor(low / width), np.floor(high / width) + 2)
    own = pre_activation[token]
    everywhere, here = (_shares(values, edges) for values in (finite, own[np.isfinite(own)]))
    return ActivationHistogram(edges, everywhere, here)


def _shares(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)  # an edge may have been rounded inwards
    return counts / max(1, values.size)


def curve(kind: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The model's activation function and its derivative at some points, float64."""
    points = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    with torch.enable_grad():
        values = ACTIVATIONS[kind](points)
        (slopes,) = torch.autograd.grad(values.sum(), points)
    return values.detach().numpy(), slopes.numpy()


def most_active(activation: np.ndarray, count: int) -> np.ndarray:
    """The neurons with the largest activation at one token [F], largest first; ties go by number."""
    return np.argsort(-activation, kind="stable")[:count]


def most_active_anywhere(activation: np.ndarray, count: int) -> np.ndarray:
    """The neurons with the largest activation at any token [T, F], in the order of that token."""
    chosen = most_active(activation.max(axis=0), count)
    where = activation[:, chosen].argmax(axis=0)
    return chosen[np.lexsort((-activation[where, chosen], where))]


# ------------------------------------------------------------------------------------------------ what is written


def columns(model: Transformer, stack: StackName, layer: int) -> np.ndarray:
    """What each neuron of a layer writes at an activation of 1, its column of down_proj: read-only [D, F]."""
    layers: Any = model.stack(stack).layers
    return widened(layers[layer].ffn.down_proj.weight).numpy(force=True)


def effect_sites(config: ModelConfig, layer: int) -> list[str]:
    """The sites whose deviations the norms between a decoder layer's feed-forward and the output divide by."""
    decoder = anatomy(config).stack("decoder")
    last, sites = decoder.n_layers - 1, []
    if config.norm == "both":
        sites = [f"decoder.{layer}.ffn.output"]  # a norm of its own reads the sub-layer's output
    if config.norm == "post":
        sites = [f"decoder.{layer}.ffn.residual"]
        later = range(layer + 1, last + 1)
        sites += [f"decoder.{after}.{part}.residual" for after in later for part in decoder.sublayers]
    return [*sites, f"decoder.{last}.output"] if config.final_norm else sites


@dataclass(frozen=True, eq=False)
class Effect:
    """The direct effect of a neuron's activation of 1 on the logits, largest first."""

    raised: np.ndarray  # ids of pieces [count]
    raised_by: np.ndarray  # the change of their logits, less the mean change over the vocabulary [count]
    lowered: np.ndarray  # ids of pieces [count]
    lowered_by: np.ndarray  # the change of their logits, less the mean change over the vocabulary [count]


def direct_effect(
    model: Transformer, layer: int, neuron: int, inputs: Mapping[str, np.ndarray], *, token: int
) -> np.ndarray:
    """What an activation of 1 of one decoder neuron adds to the logits [V] at one token, directly.

    The mean change is subtracted, because it changes no probability. `inputs` are the sites of `effect_sites`, each
    [T, D]; the norms keep the deviations of row `token`.
    """
    written = columns(model, "decoder", layer)[:, neuron].astype(np.float64)
    for name in effect_sites(model.config, layer):
        written = through_norm(_norm(model, name), written, inputs[name][token])
    table = widened(model.output_weight).numpy(force=True)
    effect: np.ndarray = table @ (written * model.config.output_scale).astype(table.dtype)
    return effect - effect.mean()


def through_norm(norm: Norm, part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """One part [D] of a sum after a norm that divides by the deviation of the whole sum [D].

    It is γ (part - its centre) / (size of the whole); for all parts together, plus β, it is the norm's output.
    """
    gamma = norm.weight.numpy(force=True).astype(np.float64)
    own, all_of_it = (torch.tensor(vector, dtype=torch.float64) for vector in (part, whole))
    return np.asarray(gamma * (part - norm.centre(own).numpy()) / norm.size(all_of_it).numpy())


def strongest(effect: np.ndarray, count: int) -> Effect:
    """The pieces that an effect [V] raises and lowers most; no piece is in both lists."""
    order = np.argsort(-effect, kind="stable")
    n_raised, n_lowered = min(count, (len(order) + 1) // 2), min(count, len(order) // 2)
    raised, lowered = order[:n_raised], order[::-1][:n_lowered]
    return Effect(raised, effect[raised], lowered, effect[lowered])


def _norm(model: Transformer, name: str) -> Norm:
    """The norm that reads a site of `effect_sites`."""
    _, layer, *part = name.split(".")
    decoder: Any = model.decoder
    if len(part) < 2:
        return decoder.final_norm
    residual = getattr(decoder.layers[int(layer)], f"{part[0]}_residual")
    return residual.output_norm if part[1] == "output" else residual.norm
