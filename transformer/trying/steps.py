"""One decoding step of a model with random numbers, in the ways that `transformer.trying.gains` compares.

A cache that grows has another shape at every step, and a compiler would begin anew. So what is compiled has a cache
with all its places from the beginning, and a mask closes those that are empty.

Shapes: B 1, T 1 new token, N places of the cache, S source tokens, D d_model, V target vocabulary.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from transformer.checkpoint.memory import ready, vacant
from transformer.model import linear
from transformer.model.cache import AttentionCache, KVCache
from transformer.model.config import ModelConfig
from transformer.runs.drafting import drafters

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer


@dataclass
class _Whole(AttentionCache):
    """A cache that is always read whole."""

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        past, self.length = self.length, self.length + keys.size(2)
        assert self.keys is not None
        assert self.values is not None
        self.keys.narrow(2, past, 1).copy_(keys)
        self.values.narrow(2, past, 1).copy_(values)
        return self.keys, self.values


class Steps:
    """Writes `n_written` tokens after a source of `n_source`, in several ways."""

    @torch.inference_mode()
    def __init__(self, config: ModelConfig, *, n_source: int, n_written: int) -> None:
        torch.set_num_threads(1)
        made, places = vacant(config)
        for place in places.values():
            place.normal_(std=0.05)
        self.model, self.n = ready(made), n_written
        self.memory = torch.randn(1, n_source, config.d_model) if self.model.anatomy.reads else None  # [B, S, D]

    @torch.inference_mode()
    def eager(self) -> int:
        """Write them with the model as it is; returns how many."""
        ids, cache = torch.ones(1, 1, dtype=torch.long), KVCache(self.model.config.n_decoder_layers)
        for _ in range(self.n):
            ids = self.model.project(self.model.decode(ids, self.memory, cache=cache)).argmax(dim=-1)  # [B, T]
        return self.n

    def as_drafts(self, *, int8: bool) -> Callable[[], int] | None:
        """The same as drafts are written, with large matrices in int8 or not; None where nothing can do that."""
        ways = (one.steps(self.model, self.memory, self.n, int8=int8) for one in drafters())
        return next(filter(None, ways), None)

    def compiled(self) -> Callable[[], int]:
        """The same compiled, which happens here; errors are torch's."""
        # A compiler cannot follow questions about threads and about where a matrix lies in memory.
        vars(torch)["get_num_threads"] = lambda: 1
        model = copy.deepcopy(self.model)
        for module in model.modules():
            if isinstance(module, linear.Linear):
                module.joined = None
        compiled = torch.compile(step)
        for _ in range(2):  # the second time finds out whether anything has to be compiled once more
            self._write_whole(model, compiled)
        return lambda: self._write_whole(model, compiled)

    @torch.inference_mode()
    def _write_whole(self, model: Transformer, step: Callable[..., Tensor]) -> int:
        ids, cache, places = torch.ones(1, 1, dtype=torch.long), whole_cache(model, self.n), torch.arange(self.n)
        for place in range(self.n):
            mask = (places <= place).view(1, 1, 1, -1)  # [1, 1, T, N]
            ids = step(model, ids, self.memory, mask, cache).argmax(dim=-1)  # [B, T]
        return self.n


def whole_cache(model: Transformer, n: int) -> KVCache:
    """A cache with `n` places for tokens that are there from the beginning."""
    heads, cache = model.config.of("decoder"), KVCache(model.config.n_decoder_layers)
    shape, like = (1, heads.n_kv_heads, n, heads.d_head), model.src_table
    cache.self_attn = [_Whole(False, like.new_zeros(shape), like.new_zeros(shape)) for _ in cache.self_attn]
    return cache


def step(model: Transformer, ids: Tensor, memory: Tensor | None, mask: Tensor, cache: KVCache) -> Tensor:
    """Read one token [B, T], and compute the logits of the piece after it [B, T, V]."""
    return model.project(model.decoder(ids, model.target_table, memory, mask, None, cache=cache))
