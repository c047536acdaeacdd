"""Parts of one attention score: q . k as the sum over what wrote the query's stream times what wrote the key's.

With the sizes of norms held, a query is the sum of what each part of its token's stream becomes by W_Q, and a key by
W_K. Rotations and the norms of queries and keys, if there are any, are linear, too, once their sizes are held. So the
score is the sum of the products of all pairs. What positions add to scores belongs to no pair, and a cap comes after.

Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021), section on QK circuits.

Shapes: S parts that have written, T tokens, d d_head.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from glassformer.extensions.effects.attribution.held_run import HeldRun, LogitPart, double, is_changed, reads
from transformer.errors import QueryError
from transformer.model.attention_scores import capped
from transformer.model.rotary import rotate
from transformer.runs.array_records import ArrayRecord


@dataclass(frozen=True, eq=False)
class ScoreParts(ArrayRecord):
    """One score of one head."""

    queries: tuple[LogitPart, ...]  # what wrote the query's stream, the biases first
    keys: tuple[LogitPart, ...]  # the key's
    values: np.ndarray  # what each pair adds [query part, key part]
    bias: float  # what positions add
    score: float  # as the model computed it, after a cap, if there is one
    weight: float  # what the softmax made of it


@torch.inference_mode()
def score_parts(held: HeldRun, head: LogitPart, query: int, key: int) -> ScoreParts:
    """The score of a head for a query and a key, both tokens from 0; a QueryError if a change made it another."""
    own, context = next((own.merged, keys.merged) for one, own, keys in reads(held) if one and head in one.writers)
    assert head.stack is not None
    stack, number = held.model.stack(head.stack), head.head or 0
    module: Any = getattr(stack.layers[head.layer or 0], str(head.sublayer))
    tap = held.asked.tap.child(*head.place.split("."))
    how = tap.setting("scoring", module.scoring)
    order = held.asked.tap.child(head.stack, "order")
    turns = stack.order(own.rows.size(1), offset=0, like=context.rows, tap=order)[head.layer or 0].rotation
    sides = []
    for name, read, token, norm, index in (
        ("q_proj", own, query, module.q_norm, number),
        ("k_proj", context, key, module.k_norm, number * module.n_kv_heads // module.n_heads),
    ):
        weight, bias = held.weight(getattr(module, name), head.place, name)
        rows = read.rows[:, token] @ weight.T  # [S, G * d]
        rows[0] += 0.0 if bias is None else bias
        rows = rows.unflatten(1, (-1, module.d_head))[:, index]  # [S, d]
        if norm is not None:
            rows = rows / (rows.sum(dim=0).square().mean() + norm.eps).sqrt() * double(norm.weight)
        if turns is not None and head.sublayer == "self_attn":
            rows = rotate(rows, (turns[0][token], turns[1][token]))
        sides.append(rows)
    values = (sides[0] @ sides[1].T * how.scale).numpy()
    added = held.seen.get(f"{head.place}.bias")
    placed = 0.0 if added is None else float(added[0, number, query, key])
    score, share = (float(held.value(f"{head.place}.{name}")[number, query, key]) for name in ("scores", "weights"))
    if is_changed(torch.tensor(score), capped(torch.tensor(values.sum() + placed), how.cap)):
        raise QueryError(
            "this run is changed where queries and keys are made; remove the change to see a score's parts."
        )
    return ScoreParts(own.parts, context.parts, values, placed, score, share)
