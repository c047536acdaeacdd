"""What carries interventions out: visitors that know from which token on they see, and what a map's mask closes.

A visitor is made for one run, in which calls of the model follow each other, so that it may remember a mask until
the weights under it come by.

Shapes: B batch, H heads, Q queries, K keys.
"""

from collections.abc import Callable
from fnmatch import fnmatchcase

import torch
from torch import Tensor


class AtPlace:
    """Changes values at one site or pattern, by a function of the value and of the place of its first token, from 0.

    It is causal if a token's new value is made of its old one alone; see `transformer.model.tap.Tap.causal`.
    """

    def __init__(self, site: str, change: Callable[[Tensor, int], Tensor], *, causal: bool = True) -> None:
        self._site, self._change, self.causal = site, change, causal

    def wants(self, site: str) -> bool:
        """Whether it is the one."""
        return fnmatchcase(site, self._site)

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        """Change it."""
        return self._change(value, offset)


class UnderMask:
    """Changes values of an attention by a function of the value, of its mask and of the place of its first query.

    The attention is named by its place in the model or a pattern, such as `decoder.*.cross_attn`, and the site there:
    "scores", "weights" or "heads". The mask is as the attention uses it (bool, broadcasts to [B, H, Q, K]; None if
    every key may be seen).
    """

    def __init__(
        self,
        place: str,
        name: str,
        change: Callable[[Tensor, Tensor | None, int], Tensor],
        *,
        causal: bool = True,
    ) -> None:
        self._mask, self._site, self._change, self.causal = f"{place}.mask", f"{place}.{name}", change, causal
        self._masks: dict[str, Tensor] = {}

    def wants(self, site: str) -> bool:
        """Whether it is the site, or the mask."""
        return fnmatchcase(site, self._site) or fnmatchcase(site, self._mask)

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        """Remember the mask; change the value."""
        attention, _, name = site.rpartition(".")
        if name == "mask":
            self._masks[attention] = value
            return value
        return self._change(value, self._masks.pop(attention, None), offset)


def of_heads(head: int | None, old: Tensor, new: Tensor) -> Tensor:
    """`new` in one head [B, H, ...] and `old` in the others; `new` in all for None."""
    if head is None:
        return new
    changed = old.clone()
    changed[:, head] = new[:, head]
    return changed


def seen_keys(mask: Tensor | None, heads: Tensor) -> Tensor:
    """Which tokens of a self-attention any query may see, by its mask: bool [B, K]; `heads` is [B, H, K, d]."""
    if mask is None:
        return torch.ones(heads.size(0), heads.size(-2), dtype=torch.bool, device=heads.device)
    return mask.flatten(1, 2).any(1).expand(heads.size(0), heads.size(-2))
