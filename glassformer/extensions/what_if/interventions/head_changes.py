"""Changes of whole heads: no output, the same output at every token, or sharper or softer attention.

    softmax(scores / T): T below 1 sharpens, above 1 softens; T = 0 takes the best key; infinite T is uniform

Source: Michel et al., "Are Sixteen Heads Really Better than One?" (2019), section 2.3, for heads set to 0; Wang et
al., "Interpretability in the Wild" (2022), section 2, for a mean instead of an output; Guo et al., "On Calibration of
Modern Neural Networks" (2017), section 4.2, for a temperature in a softmax; Graves et al., "Neural Turing Machines"
(2014), section 3.3.1, for one that sharpens attention; Vaswani et al. (2017), section 3.2, which calls attention a
weighted look-up.

Shapes: B batch, H heads, Q queries, K keys, d d_head.
"""

from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.errors import QueryError
from transformer.i18n import say
from transformer.model.config import MAX_LAYERS, MAX_WIDTH
from transformer.model.taps import Hook
from transformer.runs.interventions.base import InterventionContext
from transformer.runs.interventions.fields import number, place
from transformer.runs.interventions.targets import AtPlace, HeadChange, UnderMask, open_cells, seen_keys

LEAST: Final = 0.05
MOST: Final = 20.0


class ZeroHead(HeadChange):
    """One head writes nothing: its part of the joined heads is 0 before W_O."""

    layer: int = place(say("Layer"), MAX_LAYERS, what="layer")  # which one, from 0
    head: int = place(say("Head"), MAX_WIDTH, what="head")  # which one, from 0

    word = "zero"
    title = say("A head writes nothing")
    about = say("This head's part of the concatenated heads is set to 0 before W_O. Michel et al. (2019), section 2.3.")

    def told(self) -> str:
        return say("{head}: writes nothing", head=self.name)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        nothing = AtPlace(
            f"{self.where(ground.config)}.heads", lambda heads, _: torch.zeros_like(heads), head=self.head
        )
        return (nothing,)


class MeanHead(HeadChange):
    """A head writes the mean of its outputs at every token.

    In the encoder the mean is over all tokens except padding. In a decoder it is over the tokens read so far: later
    ones do not count.
    """

    word = "mean"
    title = say("A head writes its mean output")
    about = say(
        "At every token, the head writes the mean of its output: over the source, or over the tokens that the "
        "decoder has read so far. Wang et al. (2022), section 2."
    )

    def told(self) -> str:
        if self.kind == "encoder":
            return say("{head}: writes its mean output over the source", head=self.name)
        return say("{head}: writes its mean output over the tokens so far", head=self.name)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        where = self.where(ground.config)
        if self.attention(ground.config).stack == "encoder":
            return (UnderMask(where, "heads", _mean_of_all, head=self.head),)
        # Of a cache only the last token's output would be there, and not those before it.
        return (AtPlace(f"{where}.heads", _mean_so_far, head=self.head, causal=False),)


def _mean_of_all(heads: Tensor, mask: Tensor | None, offset: int) -> Tensor:
    """Outputs [B, H, Q, d] of a self-attention -> the mean over all tokens that are seen."""
    seen = seen_keys(mask, heads)[:, None, :, None].to(heads.dtype)  # [B, 1, Q, 1]
    mean = (heads * seen).sum(-2, keepdim=True) / seen.sum(-2, keepdim=True)  # [B, H, 1, d]
    return mean.expand_as(heads)


def _mean_so_far(heads: Tensor, offset: int) -> Tensor:
    """Outputs [B, H, Q, d] -> the mean over each token and those before it."""
    count = torch.arange(1, heads.size(-2) + 1, dtype=heads.dtype, device=heads.device)[:, None]  # [Q, 1]
    return heads.cumsum(-2) / count


class Uniform(HeadChange):
    word = "uniform"
    title = say("A head attends to all keys equally")
    about = say(
        "Every key that the query may see has the same weight, so the head writes the mean of these keys' values."
    )

    def told(self) -> str:
        return say("{head}: attends to all keys equally", head=self.name)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return (UnderMask(self.where(ground.config), "weights", _alike, head=self.head),)


def _alike(weights: Tensor, mask: Tensor | None, offset: int) -> Tensor:
    """Weights [B, H, Q, K] -> equal ones; a row without any open key stays as it is."""
    seen = open_cells(mask, weights)
    count = seen.sum(-1, keepdim=True)  # [B, H, Q, 1]
    return torch.where(count > 0, seen.to(weights.dtype) / count.clamp(min=1), weights)


class Temper(HeadChange, kw_only=True):
    # What its scores are divided by, 0.05 to 20; 0: all weight is on the best key.
    temperature: float = number(say("Temperature"), 0.0, MOST, 0.5)

    word = "temper"
    title = say("A head's attention is sharpened or softened")
    about = say(
        "The head's scores are divided by a temperature before the softmax. A temperature of 0 puts all weight on "
        "the best-matching key, like a look-up. Graves et al. (2014), section 3.3.1."
    )

    def agree(self) -> None:
        """A number between 0 and the least one would only overflow."""
        if 0.0 < self.temperature < LEAST:
            raise QueryError(
                "temperature: found {found:g}, expected 0, or a number from {least:g} to {most:g}.",
                found=self.temperature,
                least=LEAST,
                most=MOST,
            )

    def told(self) -> str:
        if self.temperature == 0.0:
            return say("{head}: all weight is on the best-matching key", head=self.name)
        return say("{head}: scores are divided by {temperature:g}", head=self.name, temperature=self.temperature)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        where = self.where(ground.config)
        if self.temperature == 0.0:
            return (UnderMask(where, "weights", _looked_up, head=self.head),)
        # Before the mask, so that what it fills in stays.
        return (AtPlace(f"{where}.scores", lambda scores, offset: scores / self.temperature, head=self.head),)


def _looked_up(weights: Tensor, mask: Tensor | None, offset: int) -> Tensor:
    """Weights [B, H, Q, K] -> 1 at the open key that has most, the first of equals; a closed row stays as it is."""
    seen = open_cells(mask, weights)
    best = weights.masked_fill(~seen, -torch.inf).argmax(-1)  # [B, H, Q]
    found = F.one_hot(best, weights.size(-1)).to(weights.dtype)
    return torch.where(seen.any(-1, keepdim=True), found, weights)
