"""The parts whose sum is a logit, and what each adds to it.

Knows no model; `extensions.effects.attribution.logit` says how they are found.

Shapes: C pieces whose logits are looked at, P parts.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from transformer.model.anatomy import Kind as Attention
from transformer.model.anatomy import Sublayer
from transformer.runs.results import Arrays

Kind = Literal[
    "tokens", "positions", "embedding_norm", "head", "attention", "attention_bias", "ffn", "ffn_bias", "norm",
    "changed", "final_norm", "output_bias",
]  # fmt: skip
"""What a part is. "norm", "embedding_norm" and "final_norm" stand for what a norm adds, its β; "attention" for all
heads together, where a change put something else in the place of what they write; "changed" for what a change put
into the stream."""


@dataclass(frozen=True)
class Part:
    """One part of a logit's sum."""

    kind: Kind  # what it is
    layer: int | None = None  # of which decoder layer, from 0; None for what belongs to none
    sublayer: Sublayer | None = None  # of which sub-layer
    head: int | None = None  # which head, from 0

    @property
    def stack_attention(self) -> Attention | None:
        """The attention of a head; None if it is not a head."""
        if self.kind != "head":
            return None
        return "cross" if self.sublayer == "cross_attn" else "decoder"


@dataclass(frozen=True, eq=False)
class Contributions(Arrays):
    """The parts of one step's logits."""

    pieces: tuple[int, ...]  # whose logits, ids [C]
    parts: tuple[Part, ...]  # in the order of the computation [P]
    values: np.ndarray  # what each part adds [C, P]
    logits: np.ndarray  # as the model computed them [C]
    # What the parts would add up to if nothing were rounded, by the model's own last vector [C]; the logits
    # themselves where there is no cap.
    before_cap: np.ndarray

    @property
    def remainder(self) -> np.ndarray:
        """The logits minus the sums of their parts [C]."""
        return np.asarray(self.logits - self.values.sum(axis=1))

    @property
    def capped(self) -> np.ndarray:
        """The part of the remainder that the cap took off the logits [C]; 0 without a cap."""
        return np.asarray(self.logits - self.before_cap)
