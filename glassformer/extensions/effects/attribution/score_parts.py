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

from glassformer.extensions.effects.attribution.held_run import HeldRun, Writer, reads
from transformer.errors import QueryError
from transformer.model.module import widened
from transformer.model.rotary import rotate
from transformer.runs.array_records import ArrayRecord


@dataclass(frozen=True, eq=False)
class ScoreParts(ArrayRecord):
    """One score of one head."""

    queries: tuple[Writer, ...]  # what wrote the query's stream, the biases first
    keys: tuple[Writer, ...]  # the key's
    values: np.ndarray  # what each pair adds [query part, key part]
    bias: float  # what positions add
    score: float  # as the model computed it, after a cap, if there is one
    weight: float  # what the softmax made of it


@torch.inference_mode()
def score_parts(held: HeldRun, head: Writer, query: int, key: int) -> ScoreParts:
    """The score of a head for a query and a key, both tokens from 0; a QueryError if it is no scaled product."""
    own, context = next((own, keys) for one, own, keys in reads(held) if one and head in one.writers)
    assert head.stack is not None
    stack, number = held.model.stack(head.stack), head.head or 0
    module: Any = getattr(stack.layers[head.layer or 0], str(head.sublayer))
    tap = held.asked.tap.child(*head.place.split("."))
    how = tap.setting("scoring", module.scoring)
    if how.similarity is not None:
        raise QueryError("this run compares queries and keys by a changed measure, which has no parts; remove it.")
    order = held.asked.tap.child(head.stack, "order")
    turns = stack.order(held.n_tokens[head.stack], offset=0, like=context.rows, tap=order)[head.layer or 0].rotation
    sides = []
    for name, read, token, norm, index in (
        ("q_proj", own, query, module.q_norm, number),
        ("k_proj", context, key, module.k_norm, number * module.n_kv_heads // module.n_heads),
    ):
        weight, bias = held.weight(getattr(module, name), head.place, name)
        rows = read.rows[:, token] @ weight.T  # [S, G * d]
        rows[0] += bias
        rows = rows.unflatten(1, (-1, module.d_head))[:, index]  # [S, d]
        if norm is not None:
            rows = rows / (rows.sum(dim=0).square().mean() + norm.eps).sqrt() * widened(norm.weight).cpu().double()
        if turns is not None and head.sublayer == "self_attn":
            rows = rotate(rows, (turns[0][token], turns[1][token]))
        sides.append(rows)
    values = (sides[0] @ sides[1].T * how.scale).numpy()
    added = held.seen.get(f"{head.place}.bias")
    placed = 0.0 if added is None else float(added[0, number, query, key])
    score, weight = (float(held.value(f"{head.place}.{name}")[number, query, key]) for name in ("scores", "weights"))
    return ScoreParts(own.parts, context.parts, values, placed, score, weight)
