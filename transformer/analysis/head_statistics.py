"""Head statistics of one sentence: entropy, distance, where rows look, and each head's share of the output.

Every measure is taken row by row and then averaged over the rows that count. Rows of padding, rows without open keys,
and rows where a measure has no meaning do not count: the first token has no previous one.

The same weight may be in several shares (the first row's own token is the first token), so they do not add up to 1.
A large weight is not a cause: these numbers say where weights are, not what the output would be without the head.

Source: entropy and the shares on self, previous, next, first and end: Clark et al. (2019), "What Does BERT Look At?",
sections 3.1 to 3.3. Mean distance: Vig and Belinkov (2019), "Analyzing the Structure of Attention in a Transformer
Language Model". Mean of the largest weight (there "confidence", without the end piece; here with it): Voita et al.
(2019), "Analyzing Multi-Head Self-Attention", section 4. How much a head writes (`norm_share`): Kobayashi et al.
(2020), "Attention is Not Only a Weight", section 2.

Shapes: L layers, H heads, Q queries, K keys. `...` means any axes in front. A function of rows takes weights [..., Q,
K], 0 to 1, and masks of that shape, True = may attend, and returns float64 [..., Q].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from transformer.model.anatomy import EVERY_PART, Kind
from transformer.runs.query import Runnable
from transformer.runs.running import each_layer
from transformer.runs.trace import Trace

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer

Name = Literal[
    "entropy", "entropy_share", "largest", "distance", "self", "previous", "next", "first", "end", "diagonal",
    "norm_share",
]  # fmt: skip
NAMES: tuple[Name, ...] = get_args(Name)
_AT_ONCE = 2**16  # weights, 512 KB in float64
_OFFSETS: dict[Name, int] = {"self": 0, "previous": -1, "next": 1}


@dataclass(frozen=True, eq=False)
class Measure:
    """One measure of every head."""

    values: np.ndarray  # [L, H, Q]; NaN in rows that do not count
    rows: np.ndarray  # bool [Q], the rows that count

    def means(self) -> np.ndarray:
        """The mean over the rows that count, [L, H]; NaN if there is none."""
        if not self.rows.any():
            return np.full(self.values.shape[:-1], np.nan)
        return self.values[..., self.rows].mean(axis=-1)


# ---------------------------------------------------------------- one row


def entropy(weights: np.ndarray) -> np.ndarray:
    """The entropy of each row, in bits: -sum_k w_k log2 w_k, where a weight of 0 adds 0; 0 if all is on one key."""

    def of_rows(some: np.ndarray, _: slice) -> np.ndarray:
        precise = some.astype(np.float64)
        logs = np.log2(np.where(precise > 0, precise, 1.0))
        return np.abs((precise * logs).sum(axis=-1))  # -0.0 is 0

    return _by_rows(of_rows, weights)


def entropy_share(weights: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """The entropy divided by log2 of a row's number of open keys, 0 to 1; NaN if fewer than two are open."""
    return _share_of_most(entropy(weights), allowed)


def _share_of_most(bits: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    n_open = np.asarray(allowed, dtype=bool).sum(axis=-1)  # [..., Q]
    most = np.log2(np.maximum(n_open, 2))
    return np.where(n_open >= 2, bits / most, np.nan)


def largest(weights: np.ndarray) -> np.ndarray:
    """The largest weight of each row."""
    return np.asarray(weights).max(axis=-1).astype(np.float64)


def distance(weights: np.ndarray) -> np.ndarray:
    """How far each row of self-attention reaches, in tokens: sum_k w_k |query - key|; Q = K."""
    n_queries, n_keys = weights.shape[-2:]
    apart = np.abs(np.arange(n_queries)[:, None] - np.arange(n_keys)[None, :])  # [Q, K]
    return _by_rows(lambda some, rows: (some.astype(np.float64) * apart[rows]).sum(axis=-1), weights)


def relative_distance(weights: np.ndarray) -> np.ndarray:
    """How far each row of cross-attention looks from the same relative place of the source, 0 to 1.

    Query and key are places of different sequences, so places are relative: the first is 0, the last 1. It is sum_k
    w_k |q / (Q - 1) - k / (K - 1)|, over all rows of the output and all keys of the source, without padding.
    """
    n_queries, n_keys = weights.shape[-2:]
    places = [np.arange(n) / max(n - 1, 1) for n in (n_queries, n_keys)]
    apart = np.abs(places[0][:, None] - places[1][None, :])  # [Q, K]
    return _by_rows(lambda some, rows: (some.astype(np.float64) * apart[rows]).sum(axis=-1), weights)


def share_at(weights: np.ndarray, allowed: np.ndarray, *, offset: int) -> np.ndarray:
    """The weight on the token `offset` places ahead (0: itself, -1: the previous); NaN if it is missing or closed."""
    n_queries, n_keys = weights.shape[-2:]
    rows = np.arange(n_queries)
    keys = np.clip(rows + offset, 0, n_keys - 1)
    there = (rows + offset == keys) & np.asarray(allowed, dtype=bool)[..., rows, keys]
    return np.where(there, np.asarray(weights)[..., rows, keys].astype(np.float64), np.nan)


def share_on(weights: np.ndarray, allowed: np.ndarray, *, key: int) -> np.ndarray:
    """The weight of each row on one key, counted from 0; NaN where the key is closed."""
    is_open = np.asarray(allowed, dtype=bool)[..., key]
    return np.where(is_open, np.asarray(weights)[..., key].astype(np.float64), np.nan)


def diagonal_keys(n_queries: int, n_keys: int) -> np.ndarray:
    """The key whose relative place is nearest to each row's: q (K - 1) / (Q - 1), halves rounded up; int [Q]."""
    steps = max(n_queries - 1, 1)
    return (2 * np.arange(n_queries) * (n_keys - 1) + steps) // (2 * steps)


def share_on_diagonal(weights: np.ndarray) -> np.ndarray:
    """The weight of each cross-attention row on the key at its own relative place (`diagonal_keys`)."""
    n_queries, n_keys = weights.shape[-2:]
    on_it = np.asarray(weights)[..., np.arange(n_queries), diagonal_keys(n_queries, n_keys)]
    return on_it.astype(np.float64)


def _by_rows(of_rows: Callable[[np.ndarray, slice], np.ndarray], weights: np.ndarray) -> np.ndarray:
    """What a function computes from rows [..., n, K] and their places [..., n], a few rows at a time.

    A float64 copy of all maps is as large as a model; a few rows stay in the processor's cache. The sums are the same.
    """
    maps = np.asarray(weights)
    n_queries, n_keys = maps.shape[-2:]
    if maps.size <= _AT_ONCE:
        return of_rows(maps, slice(0, n_queries))
    found, step = np.empty(maps.shape[:-1]), max(1, _AT_ONCE // n_keys)
    for place in np.ndindex(maps.shape[:-2]):
        for start in range(0, n_queries, step):
            rows = slice(start, start + step)
            found[place][rows] = of_rows(maps[place][rows], rows)
    return found


# ---------------------------------------------------------------- a run


def measure_maps(
    weights: np.ndarray,
    allowed: np.ndarray,
    kind: Kind,
    *,
    end: int | None = None,
    shares: np.ndarray | None = None,
    n_rows: int | None = None,
) -> dict[Name, Measure]:
    """All measures of every head that need only weights; see `measure_by_layer`.

    Weights [L, H, Q, K] and masks, bool [Q, K] or [L, 1, Q, K], are without padding. If the keys are not the queries,
    self-attention has no distance, self, previous, next. `end` is the end piece among the keys.
    """
    attention = EVERY_PART.attention(kind)
    n_queries, n_keys = weights.shape[-2:]
    bits = entropy(weights)
    found: dict[Name, np.ndarray] = {
        "entropy": bits,
        "entropy_share": _share_of_most(bits, allowed),
        "largest": largest(weights),
    }
    if attention.stack == attention.keys_from:
        if n_queries == n_keys:
            found["distance"] = distance(weights)
            found |= {name: share_at(weights, allowed, offset=offset) for name, offset in _OFFSETS.items()}
    elif n_rows is None:  # places are shares of the length
        found |= {"distance": relative_distance(weights), "diagonal": share_on_diagonal(weights)}
    found["first"] = share_on(weights, allowed, key=0)
    if end is not None:
        found["end"] = share_on(weights, allowed, key=end)
    if shares is not None:
        found["norm_share"] = shares
    counted = allowed.reshape(-1, n_queries, n_keys).any(axis=(0, -1))
    rows = counted & (np.arange(n_queries) < (n_queries if n_rows is None else n_rows))
    measures = {name: _counted(values, rows) for name, values in found.items()}
    return {name: measures[name] for name in NAMES if name in measures and measures[name].rows.any()}


def _counted(values: np.ndarray, rows: np.ndarray) -> Measure:
    """Leave out the rows in which no head has the measure; a NaN of a single head stays and is seen."""
    counts = rows & ~np.isnan(values).all(axis=(0, 1))
    return Measure(np.where(counts, values, np.nan), counts)


def measure_by_layer(
    checkpoint: Runnable, trace: Trace, kind: Kind, *, shares: np.ndarray | None = None, n_rows: int | None = None
) -> dict[Name, Measure]:
    """All measures that exist for the heads of one kind; rows are the run's own, without a batch's padding.

    Encoder: all but the diagonal. Decoder: without the next token, which the mask closes, and the end piece, which is
    never read. Cross: "first" and "end" are the source's; there is no self, previous or next; distance and diagonal
    use relative places.

    `shares` is the result of `norm_share` for this kind and run. `n_rows` is the number of the decoder's first rows
    that may be shown, and then there is nothing that tells how long the output is; the source is always shown. Only
    one layer's maps are in memory at a time, even if the run keeps none.
    """
    attention = EVERY_PART.attention(kind)
    n_queries, n_keys = trace.n_tokens(attention.stack), trace.n_tokens(attention.keys_from)
    ends = attention.keys_from == "encoder" and trace.src_ids[n_keys - 1] == checkpoint.config.eos_id

    def of_layer(maps: np.ndarray, layer: int) -> dict[Name, Measure]:
        return measure_maps(
            maps[None, :, :n_queries, :n_keys],  # [1, head, query, key]
            trace.mask(kind, layer)[:n_queries, :n_keys],
            kind,
            end=n_keys - 1 if ends else None,
            shares=None if shares is None else shares[layer : layer + 1, :, :n_queries],
            n_rows=None if attention.stack == "encoder" else n_rows,
        )

    layers = each_layer(checkpoint, trace, kind, of_layer)
    n_heads = trace.maps(kind).shape[1]
    return {name: _joined(name, layers, n_heads) for name in NAMES if any(name in layer for layer in layers)}


def _joined(name: Name, layers: list[dict[Name, Measure]], n_heads: int) -> Measure:
    """One measure of all layers: NaN where a layer does not have it."""
    found = [layer.get(name) for layer in layers]
    there = next(one for one in found if one is not None)
    missing = np.full((1, n_heads, len(there.rows)), np.nan)
    values = np.concatenate([missing if one is None else one.values for one in found])  # [layer, head, query]
    rows = np.logical_or.reduce([one.rows for one in found if one is not None])
    return Measure(values, rows)


def outputs_site(kind: Kind, layer: int) -> str:
    """The site of the head outputs of a layer, from 0, as `transformer.model.sites.SITES` names it."""
    return EVERY_PART.attention(kind).site(layer, "heads")


def norm_share(heads: np.ndarray, projections: np.ndarray) -> np.ndarray:
    """Each head's share of what the layer's attention writes, by length: |head W_O| / sum over the layer's heads.

    The heads' vectors [L, H, Q, d] add up to the output (with its bias), but their lengths do not: vectors may
    cancel. A share [L, H, Q], 0 to 1, says how much a head writes, not how much of it remains; it is NaN if no head
    writes anything. The projections are those of `output_projections`.
    """
    norms = np.empty(heads.shape[:-1])  # [L, H, Q]
    for place in np.ndindex(heads.shape[:2]):  # what all heads write would be as large as a model
        written = np.asarray(heads[place], dtype=np.float64) @ np.asarray(projections[place], dtype=np.float64)
        norms[place] = np.linalg.norm(written, axis=-1)  # of [Q, D]
    total = norms.sum(axis=1, keepdims=True)
    return np.where(total == 0, np.nan, norms / np.where(total == 0, 1.0, total))


def output_projections(model: Transformer, kind: Kind, *, n_heads: int | None = None) -> np.ndarray:
    """The rows of every layer's W_O that belong to each head, float32 [L, H, d, D].

    The sum over heads of `head @ part`, plus the bias, is the attention's output. `n_heads` is the number of heads in
    a run that changed it.
    """
    attentions = model.attentions(kind)
    matrices = np.stack([attention.out_proj.weight.float().numpy(force=True) for attention in attentions])
    n_layers, d_model, joined = matrices.shape  # output = joined heads @ W^T
    n_heads = n_heads or attentions[0].n_heads
    return matrices.transpose(0, 2, 1).reshape(n_layers, n_heads, joined // n_heads, d_model)
