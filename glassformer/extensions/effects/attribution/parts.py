"""Parts of a logit, added directly by each head, layer, bias and embedding; parts of one attention score.

The stream at a token is a sum, and a logit is its product with the piece's row of the output table. So each part of the
sum has a share of the logit: the product with what has become of it on the way, past norms whose sizes are held
(`held_run`). In a pre-norm model there is only the final norm. In a post-norm model each norm rescales everything that
was added before it. In a model without residuals only the last sub-layer adds anything; everything else goes through
it.

All contributions add up to the logit. The remainder is rounding, and the effect of a cap of the logits, if any, which
is not linear. A value that a change replaced is a separate part.

Indirect paths are not shown. Later layers also read a part's output, so a part with a contribution of 0 may still
decide the output, and the encoder acts only through cross-attention. `attribution_graph` has them.

A score, q . k, is the sum over what wrote the query's stream times what wrote the key's. With the sizes of norms held,
a query is the sum of what each part of its token's stream becomes by W_Q, and a key by W_K. Rotations and the norms of
queries and keys, if there are any, are linear, too, once their sizes are held. What positions add to scores belongs to
no pair, and a cap comes after.

Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021), section "Transformer Overview" for
the stream as a sum, "Handling Layer Normalization", and the section on QK circuits; nostalgebraist (2020) for reading a
stream by the output table.

Shapes: C pieces whose logits are explained, P parts, S parts that have written, T tokens, d d_head.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from glassformer.extensions.effects.attribution.held_run import HeldRun, LogitPart, double, is_changed, reads
from glassformer.extensions.effects.attribution.target import AttributionTarget
from transformer.errors import QueryError
from transformer.model.attention_scores import capped
from transformer.model.rotary import rotate
from transformer.runs.array_records import ArrayRecord


@dataclass(frozen=True, eq=False)
class Contributions(ArrayRecord):
    """The parts of one step's logits."""

    pieces: tuple[int, ...]  # whose logits, ids [C]
    parts: tuple[LogitPart, ...]  # in the order of the computation [P]
    values: np.ndarray  # what each part adds [C, P]
    logits: np.ndarray  # as the model computed them [C]
    # The exact sum of the parts, from the model's own last vector [C]; the logits themselves without a cap.
    before_cap: np.ndarray

    @property
    def capped(self) -> np.ndarray:
        """The part of the remainder that the cap took off the logits [C]; 0 without a cap."""
        return np.asarray(self.logits - self.before_cap)


@torch.inference_mode()
def contributions(asked: AttributionTarget, pieces: Sequence[int] = ()) -> Contributions:
    """The parts of a step's logits, for its own piece and others; a difference has the differences of parts."""
    ids = (asked.piece, *pieces)
    held = HeldRun(asked, last=True)
    *_, (_, last, _) = reads(held)
    directions, bias = held.output(ids)
    parts, values = last.parts, directions @ last.rows[:, 0].T  # [C, P]
    before_cap = directions @ held.value("decoder.output")[0] + bias
    if held.model.output_bias is not None:
        parts, values = (*parts, LogitPart("output_bias")), torch.cat((values, bias[:, None]), dim=1)
    logits = held.logits[list(ids)]
    before_cap = logits if held.model.config.logit_cap is None else before_cap
    return Contributions(ids, parts, values.numpy(), logits.numpy(), before_cap.numpy())


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
