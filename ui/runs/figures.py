"""Charts that a page and a handout draw of the same arrays, and what of a run they both compute, once for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

import charts
from charts.lens import Depth
from charts.theme import Spec
from transformer.analysis import costs, neurons
from transformer.analysis.stream import Place
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import StackName, anatomy
from transformer.model.config import ModelConfig
from transformer.runs.trace import Trace
from ui.runs import loading
from ui.runs.sides import AXES, STACK_NAMES
from ui.state.view import Side
from words import say

FURTHEST: Final = 4096  # tokens up to which lengths are counted, whatever the model reads
NEIGHBOURS: Final = 10  # pieces that are listed as nearest
MOST_MAPPED: Final = 32  # neurons of a map
_GROUPS: Final[Mapping[str, str]] = {
    "projections": say("Attention projections"),
    "ffn": say("Feed-forward"),
    "output": say("Output layer"),
}


# ------------------------------------------------------------------------------------------------ the stream


def depths(places: Sequence[Place]) -> list[Depth]:
    """What places of a stream are called."""
    return [Depth(place.short, place.name) for place in places]


# ------------------------------------------------------------------------------------------------ neurons


def silent_shares(checkpoint: Checkpoint, trace: Trace, stack: StackName) -> np.ndarray:
    """The share of silent neurons `[layer, token]`, made once; errors as of `lens_of`."""
    return loading.runner().compute(
        ("silent_neurons", trace.query, trace.src_ids, trace.read_ids, stack),
        lambda: neurons.silent_shares(checkpoint, trace, stack),
        nbytes=lambda values: values.nbytes,
    )


def share_name(*, exact: bool) -> str:
    """What a share of silent neurons counts: zeros, or what is near."""
    return say("share of zeros") if exact else say("share within {near:g} of 0", near=neurons.NEAR_ZERO)


def silent_map(shares: np.ndarray, pieces: list[str], *, marked: tuple[int, int], exact: bool, stack: StackName,
               side: Side) -> Spec:  # fmt: skip
    """The shares of silent neurons by layer and token.

    Args:
        shares: `[layer, token]`.
        pieces: The tokens.
        marked: Layer and token that are looked at.
        exact: Whether zeros are counted.
        stack: Whose layers.
        side: Its side.
    """
    title = say("Silent neurons of the {stack}", stack=STACK_NAMES[stack])
    return charts.silent_shares_spec(shares, pieces, marked=marked, title=title, token_axis=AXES[side],
                                     value_name=share_name(exact=exact), colour=side)  # fmt: skip


def neuron_tokens(before: np.ndarray, after: np.ndarray, pieces: list[str], *, neuron: int, layer: int, token: int,
                  side: Side) -> Spec:  # fmt: skip
    """A neuron at each token.

    Args:
        before, after: Pre-activations and activations of a layer `[token, neuron]`.
        pieces: The tokens.
        neuron, layer, token: What is looked at, from 0.
        side: Whose stack.
    """
    title = say("What drives neuron {neuron} of layer {layer}", neuron=neuron + 1, layer=layer + 1)
    return charts.neuron_tokens_spec(after[:, neuron], before[:, neuron], pieces, chosen=token, colour=side,
                                     title=title, token_axis=AXES[side])  # fmt: skip


def neuron_map(after: np.ndarray, listed: list[int], pieces: list[str], *, marked: tuple[int, int | None], layer: int,
               side: Side) -> Spec:  # fmt: skip
    """Neurons at each token; `listed` are their numbers, from 0, the others as of `neuron_tokens`."""
    title = say("The {n} neurons of layer {layer} that are most active anywhere in this sentence", n=len(listed),
                layer=layer + 1)  # fmt: skip
    return charts.neuron_map_spec(after[:, listed], listed, pieces, marked=marked, title=title, token_axis=AXES[side],
                                  colour=side)  # fmt: skip


# ------------------------------------------------------------------------------------------------ costs


def cost_curves(config: ModelConfig, n: int) -> Spec:
    """Multiply-adds from one token to as many as a model reads, or `FURTHEST`.

    Args:
        config: The features of the model.
        n: A length that is marked.
    """
    last = max(FURTHEST, config.max_len)
    lengths = sorted({round(2 ** (step / 4)) for step in range(61) if 2 ** (step / 4) < last} | {n, last})
    counts = [_at_length(config, one) for one in lengths]
    crossing = costs.overtakes(config)
    return charts.cost_curves_spec(
        lengths,
        {name: [count[group] for count in counts] for group, name in _GROUPS.items()},
        quadratic=[count["maps"] for count in counts],
        linear=[sum(count.values()) - count["maps"] for count in counts],
        crossing=crossing.linear / crossing.quadratic,
        max_len=config.max_len,
        chosen=n,
        title=say("Multiply-adds by length"),
        sides=len(anatomy(config).stacks),
    )


@lru_cache(maxsize=1024)
def _at_length(config: ModelConfig, n: int) -> Mapping[str, int]:
    return costs.grouped(costs.multiply_adds(config, n_source=n, n_target=n))
