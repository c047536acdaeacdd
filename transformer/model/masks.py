"""Attention masks as booleans: padding, causal and window masks, and their combination.

A mask says which query may attend to which key. It is a boolean tensor that broadcasts to [batch, head, query, key];
`True` means "may attend". (torch's own multi-head attention uses the opposite sign.) Padding masks are [batch, 1, 1,
key], the causal mask is [1, 1, query, key]; their combination is the decoder's self-attention mask.

Source: Vaswani et al. (2017), section 3.2.3.
"""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, *, pad_id: int | None) -> Tensor:
    """No query attends to padding: ids [batch, key] -> bool [batch, 1, 1, key]; all True without a padding id."""
    real = torch.ones_like(ids, dtype=torch.bool) if pad_id is None else ids != pad_id
    return real[:, None, None, :]


def causal_mask(n_queries: int, *, offset: int = 0, device: torch.device | None = None) -> Tensor:
    """A query sees itself and what came before it: bool [1, 1, query, offset + query]; i sees keys 0 to offset + i.

    `offset` is the number of tokens before the first query, those in a KV cache.
    """
    query = torch.arange(n_queries, device=device)[:, None] + offset  # [query, 1]
    key = torch.arange(offset + n_queries, device=device)[None, :]  # [1, key]
    return (key <= query)[None, None]


def window_mask(window: int, n_queries: int, *, offset: int = 0, device: torch.device | None = None) -> Tensor:
    """A query sees the last `window` keys up to itself: i - window + 1 to i. It does not close later keys.

    Shape and offset as in `causal_mask`. Source: Beltagy et al., "Longformer" (2020), section 3.1; Jiang et al.,
    "Mistral 7B" (2023).
    """
    query = torch.arange(n_queries, device=device)[:, None] + offset  # [query, 1]
    key = torch.arange(offset + n_queries, device=device)[None, :]  # [1, key]
    return (key > query - window)[None, None]


def combine_masks(*masks: Tensor) -> Tensor:
    """A key is seen only if every mask allows it; the shapes broadcast."""
    combined = masks[0]
    for mask in masks[1:]:
        combined = combined & mask
    return combined


def within(
    mask: Tensor | None, window: int, n_queries: int, *, offset: int = 0, device: torch.device | None = None
) -> Tensor | None:
    """The mask of a layer with a window; 0 means no window, and one wider than the text closes nothing."""
    if not window or window >= offset + n_queries:
        return mask
    near = window_mask(window, n_queries, offset=offset, device=device)
    return near if mask is None else combine_masks(mask, near)
