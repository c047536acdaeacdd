"""One decoding step of a model with random numbers, as it is, in int8, and compiled, for `transformer.trying.gains`.

A cache that grows has another shape at every step, and a compiler would begin anew. So what is compiled has a cache
with all its places from the beginning, and a mask closes those that are empty.

Shapes: B 1, T 1 new token, N places of the cache, S source tokens, D d_model, I inputs, O outputs.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer.checkpoint.memory import ready, vacant
from transformer.model import linear
from transformer.model.cache import AttentionCache, KVCache
from transformer.model.config import ModelConfig
from transformer.model.taps import NO_TAP, Tap
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


class Int8(nn.Module):
    """x W^T + b with W in int8, a scale for each of its rows; x is rounded, too, with one scale for all of it."""

    joined = None

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.out_features = len(weight)
        scales = weight.abs().amax(dim=1).clamp(min=1e-12) / 127  # [O]
        zeros = torch.zeros(len(weight), dtype=torch.long)
        rounded = torch.quantize_per_channel(weight.detach(), scales.double(), zeros, 0, torch.qint8)
        self.packed = torch.ops.quantized.linear_prepack(rounded, bias)

    def forward(self, x: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
        """[..., I] -> [..., O]."""
        product: Tensor = torch.ops.quantized.linear_dynamic(x, self.packed, False)
        return product


class Steps:
    """Writes `n_written` tokens after a source of `n_source`, in one of three ways."""

    @torch.inference_mode()
    def __init__(self, config: ModelConfig, *, n_source: int, n_written: int) -> None:
        torch.set_num_threads(1)
        made, places = vacant(config)
        for place in places.values():
            place.normal_(std=0.05)
        self.model, self.n = ready(made), n_written
        self.memory = torch.randn(1, n_source, config.d_model) if self.model.anatomy.reads else None  # [B, S, D]

    def eager(self) -> int:
        """Write them with the model as it is; returns how many."""
        return self._write(self.model, self.model.project)

    def int8(self) -> Callable[[], int] | None:
        """The same with the products of large matrices in int8; None where torch cannot do that."""
        below = [one for module in self.model.modules() for one in getattr(module, "joined", None) or ()]
        shared = {id(one): one for one in (*self.model.parameters(), *self.model.buffers(), *below)}
        model = copy.deepcopy(self.model, shared)
        try:
            _round(model.decoder)
            output = Int8(model.output_weight, model.output_bias)
        except (RuntimeError, AttributeError):  # no engine for it, or a torch that has these functions no more
            return None
        return lambda: self._write(model, output)

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
    def _write(self, model: Transformer, project: Callable[[Tensor], Tensor]) -> int:
        ids, cache = torch.ones(1, 1, dtype=torch.long), KVCache(model.config.n_decoder_layers)
        for _ in range(self.n):
            ids = project(model.decode(ids, self.memory, cache=cache)).argmax(dim=-1)  # [B, T]
        return self.n

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


def _round(module: nn.Module) -> None:
    """Put int8 in place of every large matrix inside."""
    for name, child in module.named_children():
        if isinstance(child, linear.Linear) and child.weight.numel() >= linear.SMALLEST:
            setattr(module, name, Int8(child.weight, child.bias))
        else:
            _round(child)
