"""The visitors that apply interventions: they know the place of the first token, and what a map's mask closes.

A visitor is made for one run, with one call of the model after another, so it may remember a mask until it sees the
weights under it.

Shapes: B batch, H heads, Q queries, K keys.
"""

from collections.abc import Callable
from fnmatch import fnmatchcase

import torch
from torch import Tensor


class AtPlace:
    """Changes values at one site or pattern, by a function of the value and the place of its first token, from 0.

    It is causal if a token's new value depends only on its old one; see `transformer.model.taps.Tap.causal`. If a
    head is named, only that head of a value [B, H, ...] changes.
    """

    def __init__(
        self, site: str, change: Callable[[Tensor, int], Tensor], *, head: int | None = None, causal: bool = True
    ) -> None:
        self._site, self._change, self._head, self.causal = site, change, head, causal

    def wants(self, site: str) -> bool:
        """Whether it is this site."""
        return fnmatchcase(site, self._site)

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        """Change it."""
        return of_heads(self._head, value, self._change(value, offset))


class UnderMask:
    """Changes values of an attention by a function of the value, its mask and the place of its first query.

    The attention is named by its place in the model or a pattern, such as `decoder.*.cross_attn`, and by a site:
    "scores", "weights" or "heads". The mask is the attention's own (bool, broadcasts to [B, H, Q, K]; None if every
    key may be seen).
    """

    causal = True

    def __init__(
        self,
        place: str,
        name: str,
        change: Callable[[Tensor, Tensor | None, int], Tensor],
        *,
        head: int | None = None,
    ) -> None:
        self._mask, self._site, self._change, self._head = f"{place}.mask", f"{place}.{name}", change, head
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
        return of_heads(self._head, value, self._change(value, self._masks.pop(attention, None), offset))


def of_heads(head: int | None, old: Tensor, new: Tensor) -> Tensor:
    """`new` in one head [B, H, ...] and `old` in the others; `new` in all for None."""
    if head is None:
        return new
    changed = old.clone()
    changed[:, head] = new[:, head]
    return changed


def open_cells(mask: Tensor | None, weights: Tensor) -> Tensor:
    """The mask in the shape of the weights, bool [B, H, Q, K]."""
    return torch.ones_like(weights, dtype=torch.bool) if mask is None else mask.expand_as(weights)


def seen_keys(mask: Tensor | None, heads: Tensor) -> Tensor:
    """Which tokens some query of a self-attention may see, by its mask: bool [B, K]; `heads` is [B, H, K, d]."""
    if mask is None:
        return torch.ones(heads.size(0), heads.size(-2), dtype=torch.bool, device=heads.device)
    return mask.flatten(1, 2).any(1).expand(heads.size(0), heads.size(-2))
