"""Which attention weight a lesson looks at. Layers, heads, rows and columns count from 1."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from transformer.analysis.one_weight import Walk, sites, walk
from transformer.analysis.worth_seeing import LEAST_KEYS, worth_seeing
from transformer.lessons.case import Case, NotHere
from transformer.model.anatomy import EVERY_PART, Kind
from transformer.model.scores import plain_scores
from transformer.runs.replay import replay

LISTED: Final = 6
"""Keys of which a question lists the number; what is left of the row is one sum."""


def one_weight(case: Case) -> dict[str, Any]:
    """A weight of the cross-attention that is neither flat nor all of its row, at the least sure step.

    A model without cross-attention gives one of its self-attention.
    """
    kinds = case.trace.kinds
    kind: Kind = "cross" if "cross" in kinds else ("decoder" if "decoder" in kinds else "encoder")
    return _weight(case, kind)


def built_head(case: Case) -> dict[str, Any]:
    """A weight as `one_weight` has it, with what its attention is cut into."""
    found = one_weight(case)
    config = case.checkpoint.config.of(EVERY_PART.attention(found["kind"]).stack)
    return found | {"d_model": config.d_model, "n_heads": config.n_heads}


def own_row(case: Case) -> dict[str, Any]:
    """A head of the first layer of self-attention over the source: the one whose largest weight is nearest to 0.6."""
    if "encoder" not in case.trace.kinds:
        raise NotHere("This step looks at an encoder, and this model has none.")
    return _weight(case, "encoder", layer=0)


def row_of_shares(case: Case) -> dict[str, Any]:
    """A weight as `one_weight` has it, with what its row's softmax divides: e to the power of each score."""
    picked = one_weight(case)
    found = walk_of(case, picked)
    order = [int(key) for key in np.argsort(-found.exps, kind="stable") if found.allowed[key]]
    pieces = keys_of(case, found.kind)
    parts = [f"“{pieces[key]}” {found.exps[key]:.2f}" for key in order[:LISTED]]
    rest = float(found.exps[order[LISTED:]].sum())
    return {
        **picked,
        "second": pieces[order[1]],
        "second_key": order[1] + 1,
        "listed": " · ".join(parts + ([f"… {rest:.2f}"] if order[LISTED:] else [])),
    }


def _weight(case: Case, kind: Kind, *, layer: int | None = None) -> dict[str, Any]:
    trace = case.trace
    if not trace.keeps_maps:
        raise NotHere("This sentence is too long for its maps to be kept; try a shorter one.")
    if not plain_scores(case.checkpoint.config):
        raise NotHere("This model makes its scores in another way than q · k / √d_head, which this step is about.")
    cell = worth_seeing(trace, kind, layer=layer)
    if int(trace.mask(kind)[cell.query].sum()) < LEAST_KEYS:
        raise NotHere("The row sees fewer than three keys, so there is little to share out; try a longer sentence.")
    own = case.checkpoint.config.of(EVERY_PART.attention(kind).stack)
    read, stack = queries_of(case, kind)[cell.query], EVERY_PART.attention(kind).stack
    return {
        "kind": kind,
        "layer": cell.layer + 1,
        "head": cell.head + 1,
        "query": cell.query + 1,
        "step": 1 if stack == "encoder" else max(1, cell.query - trace.first_row + 1),
        "read": read,
        "d_head": own.d_head,
        "root": math.sqrt(own.d_head),
        "n": len(keys_of(case, kind)),
    }


def keys_of(case: Case, kind: Kind) -> tuple[str, ...]:
    """The pieces that an attention's keys are made of.

    Args:
        case: The run.
        kind: Which attention.
    """
    stack = EVERY_PART.attention(kind).keys_from
    return case.trace.read_pieces if stack == "decoder" else case.trace.src_pieces


def queries_of(case: Case, kind: Kind) -> tuple[str, ...]:
    """The pieces that an attention's queries are made of.

    Args:
        case: The run.
        kind: Which attention.
    """
    stack = EVERY_PART.attention(kind).stack
    return case.trace.read_pieces if stack == "decoder" else case.trace.src_pieces


def walk_of(case: Case, picked: dict[str, Any] | None = None) -> Walk:
    """The way of the row's strongest weight, from q · k to the output.

    Args:
        case: The run.
        picked: What a pick of this module found; None for the case's own.
    """
    place = case.picked if picked is None else picked
    kind, layer = place["kind"], place["layer"] - 1
    recorded = replay(case.checkpoint, case.trace, sites(kind, layer, config=case.checkpoint.config))
    model, head, query = case.checkpoint.model, place["head"] - 1, place["query"] - 1
    return walk(recorded, model, kind=kind, layer=layer, head=head, query=query)


PICKS: Final = (one_weight, built_head, own_row, row_of_shares)
