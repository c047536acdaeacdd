"""One decoding step of a model with random numbers, as it is, in int8, and compiled, for `transformer.trying.gains`.

A cache that grows has another shape at every step, and a compiler would begin anew. So this one has all its places
from the beginning, and a mask closes those that are empty.

Shapes: B 1, T 1 new token, N places of the cache, S source tokens, D d_model, I inputs, O outputs.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

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


class _Int8(nn.Module):
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

    def __init__(self, config: ModelConfig, *, n_source: int, n_written: int) -> None:
        torch.set_num_threads(1)
        self.model, self.n = Transformer(config).eval(), n_written
        self.memory = torch.randn(1, n_source, config.d_model) if self.model.anatomy.reads else None  # [B, S, D]

    def eager(self) -> int:
        """Write them with the model as it is; returns how many."""
        return self._write(self.model, self.model.project)

    def int8(self) -> Callable[[], int] | None:
        """The same with the products of large matrices in int8; None where torch cannot do that."""
        shared = {id(one): one for one in (*self.model.parameters(), *self.model.buffers())}
        model = copy.deepcopy(self.model, shared)
        try:
            _round(model.decoder)
            output = _Int8(model.output_weight, model.output_bias)
        except RuntimeError:
            return None
        return lambda: self._write(model, output)

    def compiled(self) -> Callable[[], int]:
        """The same compiled, which happens here; errors are torch's."""
        # A compiler cannot follow a question about threads; there is one.
        vars(torch)["get_num_threads"] = lambda: 1
        step = torch.compile(_step)
        for _ in range(2):  # the second time finds out whether anything has to be compiled once more
            self._write(self.model, self.model.project, step)
        return lambda: self._write(self.model, self.model.project, step)

    @torch.inference_mode()
    def _write(
        self, model: Transformer, project: Callable[[Tensor], Tensor], step: "Callable[..., Tensor] | None" = None
    ) -> int:
        config, heads, places = model.config, model.config.of("decoder"), torch.arange(self.n)
        cache = KVCache(config.n_decoder_layers)
        shape = (1, heads.n_kv_heads, self.n, heads.d_head)
        cache.self_attn = [_Whole(False, torch.zeros(shape), torch.zeros(shape)) for _ in cache.self_attn]
        ids = torch.ones(1, 1, dtype=torch.long)
        for place in range(self.n):
            mask = (places <= place).view(1, 1, 1, -1)  # [1, 1, T, N]
            ids = (step or _step)(model, project, ids, self.memory, mask, cache)
        return self.n


def _step(
    model: Transformer,
    project: Callable[[Tensor], Tensor],
    ids: Tensor,
    memory: Tensor | None,
    mask: Tensor,
    cache: KVCache,
) -> Tensor:
    """Read one token, and choose the most probable piece after it [B, T]."""
    hidden = model.decoder(ids, model.target_table, memory, mask, None, cache=cache)
    return project(hidden).argmax(dim=-1)


def _round(module: nn.Module) -> None:
    """Put int8 in place of every large matrix inside."""
    for name, child in module.named_children():
        if isinstance(child, linear.Linear) and child.weight.numel() >= linear.SMALLEST:
            setattr(module, name, _Int8(child.weight, child.bias))
        else:
            _round(child)
