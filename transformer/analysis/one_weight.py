"""One attention weight step by step, from W_Q to W_O; the cell to show first; attention by embeddings alone.

If a model computes its scores in another way (another scale, a position bias, a cap), so does this module. Queries
and keys are those that are multiplied, after a norm and a rotation if there are any.

A run recorded the model's float32 values. Here the same row is computed again in float64, by plain arithmetic, from
the recorded queries, keys and values; the difference is part of the result.

**The default cell** of the attention maps is the weight to show first. Its row is that of the step at which the model
was least sure (the highest entropy); in the encoder, which has no steps, it may be any row. The head is the one whose
largest weight in that row is nearest to `MIDDLE`, and the key has that weight. Equal runs have the same cell.

**Without parameters**, softmax(A·Aᵀ): A has one row for each token, its row of the embedding table, before anything is
added to it. Queries and keys are these rows themselves, so there are no W_Q and W_K, no heads, no positions and no
scale. A·Aᵀ is symmetric, and a row's product with itself is its squared length: what a token looks for cannot differ
from what it offers. Cross-attention has two tables, A of the target and B of the source; their products A·Bᵀ were never
trained to mean anything.

Source: Vaswani et al. (2017), section 3.2, equation 1, and section 3.2.2 for the heads and W_O; section 3.4 for
√d_model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from torch import Tensor

from transformer.errors import QueryError
from transformer.i18n import say
from transformer.model.anatomy import EVERY_PART, Kind, StackName, anatomy
from transformer.model.attention import MultiHeadAttention
from transformer.model.attention_scores import Scoring
from transformer.model.config import ModelConfig
from transformer.model.module import widened
from transformer.runs.trace import Trace

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer


RECORDED = ("queries", "keys", "scores", "weights", "values", "heads", "output", "mask")


@dataclass(frozen=True)
class Differences:
    """The largest difference of each result, over the row, from what was recorded in float32."""

    scores: float  # scores before the mask
    weights: float  # weights
    head: float  # the head's output
    output: float  # all heads' shares plus the bias, against the sub-layer's output


@dataclass(frozen=True, eq=False)
class Walk:
    """One row of one head, step by step; arrays are float64. Scores are plain numbers, weights are probabilities."""

    kind: Kind  # which weight; layer, head, row and column from 0
    layer: int  # which weight; layer, head, row and column from 0
    head: int  # which weight; layer, head, row and column from 0
    query: int  # which weight; layer, head, row and column from 0
    key: int  # which weight; layer, head, row and column from 0
    q: np.ndarray  # the query's vector [d_head]
    keys: np.ndarray  # every key's vector [key, d_head]
    values: np.ndarray  # every key's value [key, d_head]
    products: np.ndarray  # q times the chosen key, number by number [d_head]
    dots: np.ndarray  # q . k of every key [key].
    how: Scoring  # What is done to q . k.
    added: np.ndarray  # what positions add to each score, 0 if nothing [key]
    # q . k times the scale, 1 / sqrt(d_head) as a rule, plus what is added, capped if it is [key].
    scores: np.ndarray
    allowed: np.ndarray  # bool [key], True = may attend
    masked: np.ndarray  # scores after the mask, -inf (or the model's own fill) where it closes a key [key]
    peak: float | None  # the largest of them, which the softmax subtracts; None if all are -inf
    exps: np.ndarray  # exp(masked - peak) [key]
    total: float  # their sum; 0 if all are -inf
    weights: np.ndarray  # exps / total, all 0 if the total is [key]
    weighted: np.ndarray  # each value times its weight [key, d_head]
    head_out: np.ndarray  # their sum, the head's output [d_head]
    w_o: np.ndarray  # the columns of W_O that belong to this head [d_model, d_head]
    shares: np.ndarray  # what each head adds to the sub-layer's output at this row [head, d_model]
    bias: np.ndarray  # what W_O adds by itself, 0 if it has none [d_model]
    output: np.ndarray  # all shares and the bias [d_model]
    differences: Differences  # how far this is from what the model recorded

    @property
    def d_head(self) -> int:
        """Numbers in a query."""
        return len(self.q)

    @property
    def norms(self) -> np.ndarray:
        """Length of each head's share [head], without the bias."""
        return np.asarray(np.linalg.norm(self.shares, axis=-1))


def place(kind: Kind, layer: int) -> str:
    """The name that all sites of an attention begin with, such as `decoder.0.cross_attn`."""
    return EVERY_PART.attention(kind).place(layer)


def biased(config: ModelConfig, kind: Kind) -> bool:
    """Whether positions add something to the scores of an attention."""
    return kind != "cross" and config.placing.adds == "bias"


def sites(kind: Kind, layer: int, *, config: ModelConfig | None = None) -> tuple[str, ...]:
    """The sites that `walk` needs, for `transformer.runs.running.replay`; without a config, no position bias."""
    bias = ("bias",) if config is not None and biased(config, kind) else ()
    return tuple(f"{place(kind, layer)}.{name}" for name in (*RECORDED, *bias))


def strongest(weights: np.ndarray, allowed: np.ndarray) -> int:
    """The key with a row's largest weight, the first of equals; 0 if all are closed. Weights and mask are [key]."""
    return int(np.where(allowed, np.nan_to_num(weights, nan=-1.0), -2.0).argmax())


def walk(
    recorded: Mapping[str, np.ndarray],
    model: Transformer,
    *,
    kind: Kind,
    layer: int,
    head: int,
    query: int,
    key: int | None = None,
    n_keys: int | None = None,
    how: Scoring | None = None,
) -> Walk:
    """Compute one weight step by step; layer, head, row and column count from 0; without a column, the strongest.

    `recorded` has the values of `sites`, without a batch axis. With `n_keys` only the first keys are used; the mask
    must close the others. `how` is the scoring of a changed run, instead of the model's. A QueryError says that the
    run has no such head, row or column.
    """
    attention = model.attentions(kind)[layer]
    found, how = {name: recorded[f"{place(kind, layer)}.{name}"] for name in RECORDED}, how or attention.scoring
    (n_heads, n_queries), n_keys = found["queries"].shape[:2], found["keys"].shape[1] if n_keys is None else n_keys
    _check("head", head, n_heads)
    _check("row", query, n_queries)
    mask = _mask_of(found, n_keys, query)  # [head, key]
    q = found["queries"][:, query].astype(np.float64)  # [head, d_head]
    own = (found[name][:, :n_keys].astype(np.float64) for name in ("keys", "values"))  # [kv_head, key, d_head]
    k, v = (np.repeat(each, n_heads // len(each), axis=0) for each in own)  # [head, key, d_head]
    dots = np.einsum("hd,hkd->hk", q, k)  # [head, key]
    added = recorded[f"{place(kind, layer)}.bias"][:, query, :n_keys] if biased(model.config, kind) else 0 * dots
    scores, masked = _scores(dots, how, added, mask)
    exps, peaks, weights = _softmax(masked)
    outs = np.einsum("hk,hkd->hd", weights, v)  # [head, d_head]
    w_o, bias = _output_projection(attention, n_heads)
    shares = np.einsum("hmd,hd->hm", w_o, outs)  # [head, d_model]
    output = shares.sum(axis=0) + bias
    chosen = strongest(weights[head], mask[head]) if key is None else key
    _check("key", chosen, n_keys)
    return Walk(
        kind=kind,
        layer=layer,
        head=head,
        query=query,
        key=chosen,
        q=q[head],
        keys=k[head],
        values=v[head],
        products=q[head] * k[head, chosen],
        dots=dots[head],
        how=how,
        added=added[head].astype(np.float64),
        scores=scores[head],
        allowed=mask[head],
        masked=masked[head],
        peak=None if np.isneginf(peaks[head]) else float(peaks[head]),
        exps=exps[head],
        total=float(exps[head].sum()),
        weights=weights[head],
        weighted=weights[head][:, None] * v[head],
        head_out=outs[head],
        w_o=w_o[head],
        shares=shares,
        bias=bias,
        output=output,
        differences=_differences(found, (head, query), (scores[head], weights[head], outs[head], output)),
    )


def _check(name: Literal["head", "row", "key"], value: int, count: int) -> None:
    if 0 <= value < count:
        return
    number = value + 1
    missing = {
        "head": say("head {number} does not exist; the number of heads is {count}.", number=number, count=count),
        "row": say("row {number} does not exist; the number of rows is {count}.", number=number, count=count),
        "key": say("key {number} does not exist; the number of keys is {count}.", number=number, count=count),
    }
    raise QueryError(missing[name])


def _mask_of(found: Mapping[str, np.ndarray], n_keys: int, query: int) -> np.ndarray:
    """A row's mask of the first keys [head, key]; all others are closed."""
    mask = np.broadcast_to(found["mask"], found["scores"].shape)[:, query]
    if mask[:, n_keys:].any():
        raise QueryError(
            "row {row} sees keys after key {last}, so these keys cannot be left out.", row=query + 1, last=n_keys
        )
    return mask[:, :n_keys]


def _scores(dots: np.ndarray, how: Scoring, added: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores before and after the mask [head, key]."""
    scores = dots * how.scale + added
    scores = scores if how.cap is None else how.cap * np.tanh(scores / how.cap)
    return scores, np.where(mask, scores, -np.inf if how.fill is None else how.fill)


def _softmax(masked: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """exp(score - peak) [head, key], the peaks [head] and the weights; taking the peak off keeps exp small."""
    peaks = masked.max(axis=-1, initial=-np.inf)  # [head]
    exps = np.exp(masked - np.where(np.isneginf(peaks), 0.0, peaks)[:, None])
    totals = exps.sum(axis=-1, keepdims=True)  # [head, 1]
    return exps, peaks, np.divide(exps, totals, out=np.zeros_like(exps), where=totals != 0)


def _output_projection(attention: MultiHeadAttention, n_heads: int) -> tuple[np.ndarray, np.ndarray]:
    """W_O cut into the columns of each head [head, d_model, d_head], and its bias [d_model]."""
    weight = attention.out_proj.weight.double().numpy(force=True)  # [d_model, head * d_head]
    bias = attention.out_proj.bias
    by_head = weight.reshape(len(weight), n_heads, -1).transpose(1, 0, 2)
    return by_head, np.zeros(len(weight)) if bias is None else bias.double().numpy(force=True)


def _differences(found: Mapping[str, np.ndarray], at: tuple[int, int], rows: Sequence[np.ndarray]) -> Differences:
    """How far the rows of a head and query are from what was recorded, over the keys that are used."""
    there = (found["scores"][at], found["weights"][at], found["heads"][at], found["output"][at[1]])
    pairs = zip(rows, there, strict=True)
    return Differences(*(float(np.abs(here - kept[: len(here)]).max(initial=0.0)) for here, kept in pairs))


MIDDLE: Final = 0.6
"""A largest weight that leaves something for the other keys."""

EQUAL: Final = 1e-4
"""Weights, and bits, that are nearer to each other are equal: rounding, which differs by processor, decides none."""

LEAST_KEYS: Final = 3
"""A row with fewer open keys has nothing to share out."""


Tops = Callable[[np.ndarray, int], np.ndarray]
"""Makes of a layer's maps [head, query, key] the largest weight of each row and its key, [2, head, row]."""


@dataclass(frozen=True)
class Cell:
    """One weight: layer, head, row (query) and column (key), all from 0."""

    layer: int
    head: int
    query: int
    key: int


def worth_seeing(
    trace: Trace,
    kind: Kind,
    *,
    n_steps: int | None = None,
    layer: int | None = None,
    each: Callable[[Tops, tuple[int, ...]], Sequence[np.ndarray]] | None = None,
) -> Cell:
    """The cell to show first, among the steps that may be shown and all layers, or one layer, from 0.

    `each` supplies the maps of layers, one after the other, if the trace keeps none.
    """
    maps = trace.maps(kind)  # [layer, head, query, key]
    layers = tuple(range(len(maps))) if layer is None else (layer,)
    rows = _rows(trace, kind, trace.n_steps if n_steps is None else n_steps)

    def tops(of_layer: np.ndarray, _: int) -> np.ndarray:
        chosen = of_layer[:, rows]  # [head, row, key]
        highest = chosen.max(axis=-1)
        return np.stack([highest, (chosen >= highest[..., None] - EQUAL).argmax(axis=-1)])

    found = np.stack([tops(maps[one], one) for one in layers] if each is None else each(tops, layers))
    largest, keys = found[:, 0], found[:, 1]  # [layer, head, row]
    apart = np.abs(largest - MIDDLE)
    place = np.unravel_index((apart <= apart.min() + EQUAL).argmax(), largest.shape)
    return Cell(layers[place[0]], int(place[1]), rows[place[2]], int(keys[place]))


def hardest_step(entropies: np.ndarray, among: Sequence[int]) -> int:
    """The step at which the model was least sure, by entropies in bits of one or more steps; the first of equals."""
    highest = max(float(entropies[step]) for step in among)
    return next((step for step in among if entropies[step] >= highest - EQUAL), among[0])


def _rows(trace: Trace, kind: Kind, n_steps: int) -> list[int]:
    """The rows to choose from: one of the decoder, or every one of the encoder."""
    stack = EVERY_PART.attention(kind).stack
    if stack == "encoder" or not n_steps:
        return list(range(trace.n_tokens(stack)))
    open_keys = trace.mask(kind).sum(axis=-1)  # [query]
    steps = range(n_steps)
    full = [step for step in steps if open_keys[trace.row_of(step)] >= LEAST_KEYS]
    return [trace.row_of(hardest_step(trace.entropies(), full or steps))]


def plain_weights(queries: np.ndarray, keys: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """softmax(queries · keysᵀ) over the open keys, bool [query, key]; a row without any is all 0."""
    scores = np.where(allowed, queries @ keys.T, -np.inf)  # [query, key]
    exps = np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), np.finfo(np.float64).min))
    return np.asarray(exps / np.maximum(exps.sum(axis=-1, keepdims=True), np.finfo(np.float64).tiny))


def without_parameters(
    model: Transformer, kind: Kind, query_ids: Sequence[int], key_ids: Sequence[int], allowed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """An attention's weights by embeddings alone [query, key]: of rows of the table, and of rows times √d_model."""
    tables: dict[StackName, Tensor] = {"encoder": model.src_table, "decoder": model.target_table}
    asked = (EVERY_PART.attention(kind).stack, query_ids), (EVERY_PART.attention(kind).keys_from, key_ids)
    a, b = (widened(tables[stack][list(ids)]).double().numpy(force=True) for stack, ids in asked)  # [token, d_model]
    root = model.config.d_model**0.5
    return plain_weights(a, b, allowed), plain_weights(root * a, root * b, allowed)


@dataclass(frozen=True, eq=False)
class Projection:
    """How a query or a key begins: W · x + b, for one token and head; arrays are float64."""

    x: np.ndarray  # what the sub-layer read of the token, or the memory's vector [d_model]
    matrix: np.ndarray  # the head's rows of W_Q or W_K [d_head, d_model]
    bias: np.ndarray  # b, 0 if there is none [d_head]

    @property
    def made(self) -> np.ndarray:
        """W · x + b [d_head]: q or k, unless it is normed or turned."""
        return np.asarray(self.matrix @ self.x + self.bias)


def read_by(config: ModelConfig, kind: Kind, layer: int) -> tuple[str, str]:
    """The sites of what an attention makes queries of, and keys; for `projected`."""
    own, one = f"{place(kind, layer)}.norm", anatomy(config).attention(kind)
    if config.norm == "post":  # what is after the sub-layer before
        sublayers = anatomy(config).stack(one.stack).sublayers
        before = sublayers.index(one.sublayer) - 1
        own = f"{one.stack}.{layer - (before < 0)}.{sublayers[before]}.norm"
        own = own if before >= 0 or layer else f"{one.stack}.embedding.output"
    return own, "encoder.output" if kind == "cross" else own


def projected(recorded: Mapping[str, np.ndarray], model: Transformer, found: Walk) -> tuple[Projection, Projection]:
    """How the query and the key of a walk begin; `recorded` has the values of `read_by`."""
    attention, reads = model.attentions(found.kind)[found.layer], read_by(model.config, found.kind, found.layer)
    group = found.head * attention.n_kv_heads // attention.n_heads
    asked = (attention.q_proj, found.query, found.head), (attention.k_proj, found.key, group)
    both = []
    for read, (linear, token, head) in zip(reads, asked, strict=True):
        rows = slice(head * found.d_head, (head + 1) * found.d_head)
        bias = np.zeros(found.d_head) if linear.bias is None else linear.bias[rows].double().numpy(force=True)
        matrix = linear.weight[rows].double().numpy(force=True)  # [d_head, d_model]
        both.append(Projection(recorded[read][token].astype(np.float64), matrix, bias))
    return both[0], both[1]
