"""How one attention weight came to be: q . k -> / sqrt(d_head) -> + mask -> softmax -> . V -> W_O, in numbers.

A run recorded what the model computed in float32. Here the same row is computed again, in float64 and by plain
arithmetic, from the recorded queries, keys and values; how far both are apart is part of the result.

Source: Vaswani et al. (2017), section 3.2, equation 1, and section 3.2.2 for the heads and W_O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from transformer.errors import QueryError
from transformer.model.anatomy import EVERY_PART, Kind
from transformer.model.attention import MultiHeadAttention
from transformer.model.transformer import Transformer
from words import say

RECORDED = ("queries", "keys", "scores", "weights", "values", "heads", "output", "mask")


@dataclass(frozen=True)
class Differences:
    """The largest distance of each result from what the model recorded, in float32, over the row.

    Attributes:
        scores: Scores before the mask.
        weights: Weights.
        head: The head's output.
        output: All heads' shares plus the bias, against the sub-layer's output.
    """

    scores: float
    weights: float
    head: float
    output: float


@dataclass(frozen=True, eq=False)
class Walk:
    """One row of one head, step by step; arrays are float64. Scores are plain numbers, weights probabilities.

    Attributes:
        kind, layer, head, query, key: Which weight; layer, head, row and column from 0.
        q: The query's vector [d_head].
        keys: Every key's vector [key, d_head].
        values: Every key's value [key, d_head].
        products: q times the chosen key, number by number [d_head].
        dots: q . k of every key [key].
        scores: The same divided by sqrt(d_head) [key].
        allowed: Bool [key], True = may attend.
        masked: Scores after the mask, -inf where it closes a key [key].
        peak: The largest of them, which the softmax subtracts; None if no key may be seen.
        exps: exp(score - peak), 0 where the mask closes a key [key].
        total: Their sum; 0 if no key may be seen.
        weights: exps / total, all 0 if no key may be seen [key].
        weighted: Each value times its weight [key, d_head].
        head_out: Their sum, the head's output [d_head].
        w_o: The columns of W_O that belong to this head [d_model, d_head].
        shares: What each head adds to the sub-layer's output at this row [head, d_model].
        bias: What W_O adds by itself, 0 if it has none [d_model].
        output: All shares and the bias [d_model].
        differences: How far this is from what the model recorded.
    """

    kind: Kind
    layer: int
    head: int
    query: int
    key: int
    q: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    products: np.ndarray
    dots: np.ndarray
    scores: np.ndarray
    allowed: np.ndarray
    masked: np.ndarray
    peak: float | None
    exps: np.ndarray
    total: float
    weights: np.ndarray
    weighted: np.ndarray
    head_out: np.ndarray
    w_o: np.ndarray
    shares: np.ndarray
    bias: np.ndarray
    output: np.ndarray
    differences: Differences

    @property
    def d_head(self) -> int:
        """Numbers in a query."""
        return len(self.q)

    @property
    def norms(self) -> np.ndarray:
        """Length of each head's share, the bias apart [head]."""
        return np.asarray(np.linalg.norm(self.shares, axis=-1))


def place(kind: Kind, layer: int) -> str:
    """The name that all sites of an attention begin with, such as `decoder.0.cross_attn`.

    Args:
        kind: Which attention.
        layer: From 0.
    """
    return EVERY_PART.attention(kind).place(layer)


def sites(kind: Kind, layer: int) -> tuple[str, ...]:
    """The sites that `walk` needs, for `transformer.runs.replay.replay`.

    Args:
        kind: Which attention.
        layer: From 0.
    """
    return tuple(f"{place(kind, layer)}.{name}" for name in RECORDED)


def strongest(weights: np.ndarray, allowed: np.ndarray) -> int:
    """The key that a row gives most to, the first of equals; 0 if it may see none.

    Args:
        weights: `[key]`.
        allowed: Bool `[key]`, True = may attend.
    """
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
) -> Walk:
    """Go the way of one weight.

    Args:
        recorded: The values of `sites(kind, layer)`, without a batch axis.
        model: Whose W_O it is.
        kind: Which attention.
        layer: From 0.
        head: From 0.
        query: Row from 0.
        key: Column from 0; None takes the strongest of the row.
        n_keys: Look at the first keys only; the mask must close the others. None: all.

    Raises:
        QueryError: The run has no such head, row or column.
    """
    found = {name: recorded[f"{place(kind, layer)}.{name}"] for name in RECORDED}
    n_heads, n_queries = found["queries"].shape[:2]
    n_keys = found["keys"].shape[1] if n_keys is None else n_keys
    _check("head", head, n_heads)
    _check("row", query, n_queries)
    mask = np.broadcast_to(found["mask"], found["scores"].shape)[:, query]  # [head, key]
    _check_closed(mask, n_keys, query)
    mask = mask[:, :n_keys]
    q = found["queries"][:, query].astype(np.float64)  # [head, d_head]
    k, v = (_for_every_head(found[name][:, :n_keys], n_heads) for name in ("keys", "values"))  # [head, key, d_head]
    dots = np.einsum("hd,hkd->hk", q, k)  # [head, key]
    scores = dots / np.sqrt(q.shape[-1])
    exps, peaks = _exponentials(scores, mask)
    weights = _shared_out(exps)
    outs = np.einsum("hk,hkd->hd", weights, v)  # [head, d_head]
    w_o, bias = _output_projection(model.attentions(kind)[layer])
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
        scores=scores[head],
        allowed=mask[head],
        masked=np.where(mask[head], scores[head], -np.inf),
        peak=float(peaks[head]) if mask[head].any() else None,
        exps=exps[head],
        total=float(exps[head].sum()),
        weights=weights[head],
        weighted=weights[head][:, None] * v[head],
        head_out=outs[head],
        w_o=w_o[head],
        shares=shares,
        bias=bias,
        output=output,
        differences=_differences(
            found, (head, query), scores=scores[head], weights=weights[head], head_out=outs[head], output=output
        ),
    )


def _check(name: Literal["head", "row", "key"], value: int, count: int) -> None:
    if 0 <= value < count:
        return
    number = value + 1
    missing = {
        "head": say("head {number} does not exist; there are {count}.", number=number, count=count),
        "row": say("row {number} does not exist; there are {count}.", number=number, count=count),
        "key": say("key {number} does not exist; there are {count}.", number=number, count=count),
    }
    raise QueryError(missing[name])


def _check_closed(mask: np.ndarray, n_keys: int, query: int) -> None:
    if mask[:, n_keys:].any():
        raise QueryError("row {row} sees keys after key {last}; they cannot be left out.", row=query + 1, last=n_keys)


def _for_every_head(x: np.ndarray, n_heads: int) -> np.ndarray:
    """Keys or values [kv_head, key, d_head], each as often as heads of queries share it, in float64."""
    return np.repeat(x.astype(np.float64), n_heads // len(x), axis=0)


def _exponentials(scores: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """exp(score - peak) [head, key], 0 where closed, and the peaks [head]; taking the peak off keeps exp small."""
    peaks = np.where(mask, scores, -np.inf).max(axis=-1, initial=-np.inf)  # [head]
    shifted = np.where(mask, scores - np.where(mask.any(axis=-1), peaks, 0.0)[:, None], -np.inf)
    return np.exp(shifted), peaks


def _shared_out(exps: np.ndarray) -> np.ndarray:
    totals = exps.sum(axis=-1, keepdims=True)  # [head, 1]
    return np.divide(exps, totals, out=np.zeros_like(exps), where=totals != 0)


def _output_projection(attention: MultiHeadAttention) -> tuple[np.ndarray, np.ndarray]:
    """W_O cut into the columns of each head [head, d_model, d_head], and its bias [d_model]."""
    weight = attention.out_proj.weight.detach().double().numpy()  # [d_model, head * d_head]
    bias = attention.out_proj.bias
    by_head = weight.reshape(len(weight), attention.n_heads, -1).transpose(1, 0, 2)
    return by_head, np.zeros(len(weight)) if bias is None else bias.detach().double().numpy()


def _differences(
    found: Mapping[str, np.ndarray],
    row: tuple[int, int],
    *,
    scores: np.ndarray,
    weights: np.ndarray,
    head_out: np.ndarray,
    output: np.ndarray,
) -> Differences:
    """Compare a row (head, query) with what was recorded, over the keys that are looked at."""
    return Differences(
        scores=_apart(scores, found["scores"][row][: len(scores)]),
        weights=_apart(weights, found["weights"][row][: len(weights)]),
        head=_apart(head_out, found["heads"][row]),
        output=_apart(output, found["output"][row[1]]),
    )


def _apart(here: np.ndarray, there: np.ndarray) -> float:
    return float(np.abs(here - there).max(initial=0.0))
