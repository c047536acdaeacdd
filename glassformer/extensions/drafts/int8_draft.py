"""Int8 draft for speculative decoding: quantised products, and a quick decoder, layer, attention and KV cache.

A decoding step reads every matrix of the decoder once; in 8 bits that is a quarter. torch's product also rounds the
vector at each call, which takes as long as a small matrix does, so small ones stay as they are. Half of the remaining
time is Python, so lookups are done once.

No tap reaches it: what is shown comes from the model itself, which reads the draft once (`transformer.runs.drafting`).
To learn how a Transformer works, read `transformer.model` instead.

Source: Dettmers et al., "LLM.int8()" (2022), section 2, for a scale for each row of a matrix and for each vector.

Shapes: B rows, S source tokens, T tokens, D d_model, H heads, G key-value heads, d d_head, V target vocabulary.
"""

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention, share_heads, split_heads
from transformer.model.attention_positions import NO_ORDER, AttentionPositions
from transformer.model.attention_scores import capped
from transformer.model.cache import KVCache
from transformer.model.feed_forward import FeedForward
from transformer.model.layers import DecoderLayer, Residual
from transformer.model.module import Linear, rows_of, widened
from transformer.model.rotary import rotate
from transformer.model.taps import NO_TAP
from transformer.model.transformer import Transformer
from transformer.runs.decoding import DecodedRow, write_rows
from transformer.runs.drafting import Ids, Pause
from transformer.runs.query import Greedy, Sampling
from transformer.runs.reading import EncodedBatch

SMALLEST = 2**17  # numbers of a matrix that is worth rounding
Product = Callable[[Tensor], Tensor]  # [..., I] -> [..., O]


class Int8:
    """The draft; raises RuntimeError if torch has no 8-bit products on this machine."""

    name = "int8"

    def __init__(self, model: Transformer) -> None:
        self._decoder = QuickDecoder(model)

    @staticmethod
    def suits(reading: EncodedBatch) -> bool:
        """Whether such a draft can write for a reading: greedily or by sampling, without changes."""
        return reading.tap is NO_TAP and all(isinstance(one.decoding, Greedy | Sampling) for one in reading.queries)

    def write(self, reading: EncodedBatch, rows: Sequence[int], begun: Sequence[Ids], pause: Pause) -> list[Ids]:
        """Guesses of outputs; see `Draft`. Rows that have read equally much are written together."""
        config, groups = reading.checkpoint.config, defaultdict[int, list[int]](list)
        texts = [reading.sources[row].prompt_ids + start for row, start in zip(rows, begun, strict=True)]
        for place, text in enumerate(texts):
            groups[len(text)].append(place)
        found: dict[int, Ids] = {}
        for places in groups.values():
            here = [rows[place] for place in places]
            written = [
                DecodedRow(config, reading.queries[rows[place]], reading.sources[rows[place]], begun[place])
                for place in places
            ]
            prefix = QuickPrefix(
                self._decoder,
                reading.checkpoint.model,
                torch.tensor([texts[place] for place in places]),
                None if reading.memory is None else reading.memory[here],
                None if reading.memory is None else reading.checkpoint.model.source_mask(reading.src_ids[here]),
                room=len(texts[places[0]]) + max(row.most - len(row.ids) for row in written),
            )
            found |= zip(places, write_rows(prefix, config, written, pause), strict=True)
        return [found[place] for place in range(len(rows))]


class QuickDecoder:
    """The decoder, ready for steps of one token; many threads may share it. It does not hold the model."""

    def __init__(self, model: Transformer) -> None:
        decoder = model.decoder
        embedding, self.table, self.order = decoder.embedding, model.target_table, decoder.order.forward
        self.scale = embedding.scale
        self.positions = None if embedding.positions is None else embedding.positions.table
        self.embedding_norm = None if embedding.norm is None else quick_norm(embedding.norm)
        layers: Iterable[Any] = decoder.layers
        self.layers = [QuickLayer(layer, decoder.config.window(i)) for i, layer in enumerate(layers)]
        self.final_norm = quick_norm(decoder.final_norm)
        self.output = product(model.output_weight, model.output_bias)
        self.output_scale, self.cap = model.config.output_scale, model.config.logit_cap

    def embed(self, ids: Tensor, place: int) -> Tensor:
        """The stream of the tokens [B] at a position -> [B, D]."""
        x = rows_of(self.table, ids) * self.scale
        x = x if self.positions is None else x + self.positions[place]
        return x if self.embedding_norm is None else self.embedding_norm(x)

    def logits(self, x: Tensor) -> Tensor:
        """The last layer's vectors [B, D] -> [B, V]."""
        hidden = self.final_norm(x)
        return capped(self.output(hidden if self.output_scale == 1.0 else hidden * self.output_scale), self.cap)


class QuickPrefix:
    """Outputs so far; as `transformer.runs.decoding.Prefix`, but it returns logits, and `log_sums` are 0.

    `ids` [B, T] is what each row has read: the start piece or the prompt, and the output. `memory` [B, S, D] and
    `src_mask` [B, 1, 1, S] are the encoder's. It has room for a fixed number of tokens.
    """

    def __init__(
        self,
        decoder: QuickDecoder,
        model: Transformer,
        ids: Tensor,
        memory: Tensor | None,
        src_mask: Tensor | None,
        *,
        room: int,
    ) -> None:
        self.decoder, self.ids, self.log_sums = decoder, ids, torch.zeros(len(ids))
        self._last, self._length = ids[:, -1], ids.size(1) - 1
        self._mask = None if src_mask is None or bool(src_mask.all()) else src_mask
        self._own = [layer.own.room(len(ids), room) for layer in decoder.layers]
        if self._length:  # all but the last token in one pass of the model itself
            cache = KVCache(len(decoder.layers))
            model.decode(ids[:, :-1], memory, self._mask, cache=cache)
            for kept, one in zip(self._own, cache.self_attn, strict=True):
                kept[:, :, :, : self._length] = torch.stack(one.read())
        self._cross = [] if memory is None else [layer.read_memory(memory) for layer in decoder.layers]

    def next_log_probs(self) -> Tensor:
        """Logits of the next piece [B, V]."""
        decoder, place = self.decoder, self._length
        x = decoder.embed(self._last, place)  # [B, D]
        orders = decoder.order(1, offset=place, like=x)
        for i, layer in enumerate(decoder.layers):
            x = layer.step(x, self._own[i], place, orders[i], self._cross[i] if self._cross else None, self._mask)
        self._length = place + 1
        return decoder.logits(x)

    def append(self, ids: Tensor) -> None:
        """Add one piece to every row; ids [B]."""
        self._last, self.ids = ids, torch.cat((self.ids, ids[:, None]), dim=1)

    def select(self, rows: Tensor) -> None:
        """Keep the given rows (int [rows]), in the given order."""
        self.ids, self.log_sums, self._last = self.ids[rows], self.log_sums[rows], self._last[rows]
        self._mask = None if self._mask is None else self._mask[rows]
        self._own = [kept[:, rows] for kept in self._own]
        self._cross = [(keys[rows], values[rows]) for keys, values in self._cross]


class QuickLayer:
    """One layer's step for one token of each row."""

    def __init__(self, layer: DecoderLayer, window: int) -> None:
        attention = layer.self_attn
        self.own = QuickAttention(attention, side_by_side(attention.q_proj, attention.k_proj, attention.v_proj))
        self.window, self.parallel = window, layer.parallel
        self.widths = [one.out_features for one in (attention.q_proj, attention.k_proj, attention.v_proj)]
        self.around_own, self.around_ffn = around(layer.self_attn_residual), around(layer.ffn_residual)
        if layer.reads_memory:
            self.cross_attn = layer.cross_attn
            self.cross = QuickAttention(layer.cross_attn, product_of(layer.cross_attn.q_proj))
            self.around_cross = around(layer.cross_attn_residual)
        self.feed_forward = quick_feed_forward(layer.ffn)

    def read_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the source [B, S, D] -> each [B, G, S, d]."""
        attention = self.cross_attn
        keys, values = (split_heads(one(memory), attention.d_head) for one in (attention.k_proj, attention.v_proj))
        return (keys if attention.k_norm is None else attention.k_norm(keys)), values

    def step(
        self,
        x: Tensor,
        kept: Tensor,
        place: int,
        order: AttentionPositions,
        source: tuple[Tensor, Tensor] | None,
        mask: Tensor | None,
    ) -> Tensor:
        """The stream [B, D] at a position -> [B, D].

        It adds the token's keys and values to `kept` [2, B, G, room, d]; `source` has those of the source [B, G, S, d],
        with a mask [B, 1, 1, S].
        """

        def attend(h: Tensor) -> Tensor:
            q, k, v = self.own.read(h).split(self.widths, dim=-1)
            kept[0, :, :, place] = self.own.ready(k, self.own.k_norm, order)[:, :, 0]
            kept[1, :, :, place] = self.own.ready(v, None, NO_ORDER)[:, :, 0]
            first = max(0, place + 1 - self.window) if self.window else 0
            keys, values = kept[:, :, :, first : place + 1]
            bias = order.bias if order.bias is None else order.bias[..., first:]
            return self.own.write(self.own.ready(q, self.own.q_norm, order), keys, values, None, bias)

        after = self.around_own(x, x, attend)
        if source is not None:
            query = self.cross.read
            after = self.around_cross(
                after,
                after,
                lambda h: self.cross.write(
                    self.cross.ready(query(h), self.cross.q_norm, NO_ORDER), *source, mask, None
                ),
            )
        return self.around_ffn(x if self.parallel else after, after, self.feed_forward)


class QuickAttention:
    """What an attention needs for a step."""

    def __init__(self, attention: MultiHeadAttention, read: Product) -> None:
        self.read = read  # from the stream to queries, or to queries, keys and values
        self.out = product_of(attention.out_proj)
        self.n_heads, self.d_head, self.n_kv_heads = attention.n_heads, attention.d_head, attention.n_kv_heads
        self.scoring, self.q_norm, self.k_norm = attention.scoring, attention.q_norm, attention.k_norm

    def room(self, n_rows: int, n_tokens: int) -> Tensor:
        """Memory for keys and values [2, B, G, room, d]."""
        return torch.empty(2, n_rows, self.n_kv_heads, n_tokens, self.d_head)

    def ready(self, x: Tensor, norm: nn.RMSNorm | None, order: AttentionPositions) -> Tensor:
        """Queries or keys [B, H * d] as they are multiplied [B, H, 1, d]; see `MultiHeadAttention`."""
        x = x.view(len(x), -1, 1, self.d_head)
        x = x if norm is None else norm(x)
        return x if order.rotation is None else rotate(x, order.rotation)

    def write(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None) -> Tensor:
        """What goes back to the stream [B, D]."""
        k, v = share_heads(k, self.n_heads), share_heads(v, self.n_heads)
        return self.out(scaled_dot_product_attention(q, k, v, mask, how=self.scoring, bias=bias).flatten(1))


def around(residual: Residual) -> Callable[[Tensor, Tensor, Product], Tensor]:
    """The norm and the residual connection of a sub-layer, as a function of what it reads, the stream, and itself."""
    how, norm = residual.around, quick_norm(residual.norm)
    if how.post and how.adds:
        return lambda x, stream, sublayer: norm(stream + sublayer(x))
    if how.post:
        return lambda x, stream, sublayer: norm(sublayer(x))
    after = quick_norm(residual.output_norm) if residual.output_norm is not None else lambda made: made
    if how.adds:
        return lambda x, stream, sublayer: stream + after(sublayer(norm(x)))
    return lambda x, stream, sublayer: after(sublayer(norm(x)))


def quick_norm(norm: nn.Module) -> Product:
    """A norm without the detour through its module."""
    if isinstance(norm, nn.LayerNorm):
        shape, weight, bias, eps = norm.normalized_shape, norm.weight, norm.bias, norm.eps
        return lambda x: torch.layer_norm(x, shape, weight, bias, eps)
    found: Product = norm.forward
    return found


def quick_feed_forward(ffn: FeedForward) -> Product:
    """The feed-forward network with quick products."""
    up, down, activation = product_of(ffn.up_proj), product_of(ffn.down_proj), ffn.activation
    if not ffn.gated:
        return lambda x: down(activation(up(x)))
    gate = product_of(ffn.gate_proj)
    return lambda x: down(activation(gate(x)) * up(x))


def product_of(one: Linear) -> Product:
    """A linear map as a quick product."""
    return product(one.weight, one.bias)


def side_by_side(*maps: Linear) -> Product:
    """Several linear maps of the same vector, their outputs side by side."""
    biases = tuple(one.bias for one in maps if one.bias is not None)
    return product(torch.cat(tuple(widened(one.weight) for one in maps)), torch.cat(biases) if biases else None)


def product(weight: Tensor, bias: Tensor | None) -> Product:
    """x W^T + b with W [O, I] and b [O], in 8 bits if the matrix is large."""
    weight = widened(weight)
    if weight.numel() < SMALLEST:
        return partial(F.linear, weight=weight, bias=bias)
    quick: Any = torch.ops.quantized.linear_dynamic.default
    packed, narrow = _packed(weight, bias), overflows()
    return lambda x: quick(x, packed, narrow)


@cache
def overflows() -> bool:
    """Whether the sum of two products of 8 bits has no room, as on processors without VNNI: vectors then have 7."""
    ones = torch.ones(1, 4)
    return float(torch.ops.quantized.linear_dynamic.default(ones, _packed(ones, None), False)) < 3.9


def _packed(weight: Tensor, bias: Tensor | None) -> Any:
    most = weight.abs().amax(dim=1).double()  # [O]
    zeros = torch.zeros(len(weight), dtype=torch.long)
    with warnings.catch_warnings():
        # torch will remove this tensor type, and then there is no such draft (`extensions.drafts.drafter`); until then
        # nothing else in torch is as fast for one vector.
        warnings.simplefilter("ignore", UserWarning)
        rows = torch.quantize_per_channel(weight, most.clamp(min=1e-12) / 127, zeros, 0, torch.qint8)
    return torch.ops.quantized.linear_prepack(rows, bias)
