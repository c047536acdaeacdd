"""Which attention a lesson about several heads looks at. Layers and heads count from 1."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from transformer.analysis import head_norms
from transformer.analysis.head_passes import Head, Reading
from transformer.lessons.case import Case, NotHere
from transformer.lessons.picks.steps import written
from transformer.model.anatomy import Kind, anatomy
from transformer.runs.replay import replay

MOST_HEADS: Final = 16
"""Of a layer with more heads only the first are taken away one by one: each costs a row of a pass."""

MOST_TOKENS: Final = 512
"""Above this many tokens of source and output together a pass without a head takes too long for a question."""


def first_layer(case: Case) -> dict[str, Any]:
    """The first layer's self-attention: the encoder's, or that of a decoder alone."""
    kind: Kind = "encoder" if "encoder" in case.trace.kinds else "decoder"
    weights = self_maps(case, kind)
    config = case.checkpoint.config
    widths = {"d_model": config.d_model, "d_head": config.d_head}
    return {"kind": kind, "layer": 1, "n_heads": weights.shape[1], "n": weights.shape[-1], **widths}


def last_writer(case: Case) -> dict[str, Any]:
    """The last layer of the attention that brings the source in: cross-attention, or a decoder's own."""
    written(case, least=2)
    attention = anatomy(case.checkpoint.config).attention("cross" if "cross" in case.trace.kinds else "decoder")
    n_heads = _at_least_two(case, attention.kind)
    return {"kind": attention.kind, "layer": attention.n_layers, "n_heads": n_heads}


def two_writers(case: Case) -> dict[str, Any]:
    """The heads of that layer that write most and least, and how much of all that is written they write."""
    picked = last_writer(case)
    shares = written_shares(case, picked["kind"], picked["layer"] - 1)
    most, least = int(shares.argmax()), int(shares.argmin())
    found = {"most": most + 1, "least": least + 1}
    return {**picked, **found, "share": float(shares[most]), "least_share": float(shares[least])}


def sharpest(case: Case) -> dict[str, Any]:
    """The head of that layer whose rows have most on one key in the mean, beside the one that writes most."""
    picked = two_writers(case)
    if not case.trace.keeps_maps:
        raise NotHere("The maps of this run are too large to be kept; try a shorter sentence.")
    first = case.trace.first_row
    rows = case.trace.maps(picked["kind"])[picked["layer"] - 1, :, first : first + case.trace.n_steps]
    tops = rows.max(axis=-1).mean(axis=-1)  # [head]
    return {**picked, "sharp": int(tops.argmax()) + 1, "top": float(tops.max())}


def costliest_head(case: Case) -> dict[str, Any]:
    """The head of that layer without which the output loses most probability."""
    picked = last_writer(case)
    effects = without_heads(case, picked["kind"], picked["layer"] - 1, range(int(picked["n_heads"])))
    head = min(effects, key=lambda one: effects[one])
    if effects[head] >= 0:
        raise NotHere("No head of this layer makes the output more probable; try another sentence.")
    return {**picked, "head": head + 1, "cost": -effects[head]}


def self_maps(case: Case, kind: Kind) -> np.ndarray:
    """The weights of a self-attention, [layer, head, query, key], without a batch's padding.

    Args:
        case: The run.
        kind: The encoder's or the decoder's.

    Raises:
        NotHere: There is one head only, too little was read, or the run keeps no maps.
    """
    _at_least_two(case, kind)
    if not case.trace.keeps_maps:
        raise NotHere("The maps of this run are too large to be kept; try a shorter sentence.")
    n = case.trace.n_tokens("encoder" if kind == "encoder" else "decoder")
    if n < 3:
        raise NotHere("This takes three tokens or more; try a longer sentence.")
    return case.trace.maps(kind)[:, :, :n, :n]


def written_shares(case: Case, kind: Kind, layer: int) -> np.ndarray:
    """How much each head of a layer writes, in the mean over the rows, as a share of all of them [head].

    Args:
        case: The run.
        kind: Which attention.
        layer: From 0.
    """
    site = head_norms.site(kind, layer)
    heads = replay(case.checkpoint, case.trace, [site])[site]  # [head, query, d_head]
    parts = head_norms.output_projections(case.checkpoint.model, kind)[layer]  # [head, d_head, d_model]
    shares = head_norms.norm_share(heads[None], parts[None])[0]  # [head, query]
    first = case.trace.first_row
    return np.asarray(shares[:, first : first + case.trace.n_steps].mean(axis=1))


def without_heads(case: Case, kind: Kind, layer: int, heads: range | tuple[int, ...]) -> dict[int, float]:
    """By how much the output's log-probability changes without each head, all others in place, in nats.

    Args:
        case: The run.
        kind: Which attention.
        layer: From 0.
        heads: Which of its heads, from 0; at most `MOST_HEADS` of them are measured.

    Raises:
        NotHere: The sentence is too long to do it at once.
    """
    if len(case.trace.src_ids) + len(case.trace.read_ids) > MOST_TOKENS:
        raise NotHere("This sentence is too long to take heads away at once; try a shorter one.")
    measured = list(heads)[:MOST_HEADS]
    reading = Reading.of(case.checkpoint, case.trace)
    rows = reading.without([Head(kind, layer, head) for head in measured], reading.control())
    return dict(zip(measured, rows.log_prob.double().sum(dim=1).tolist(), strict=True))


def _at_least_two(case: Case, kind: Kind) -> int:
    """How many heads a layer of an attention has."""
    config = case.checkpoint.config
    n_heads = config.of(anatomy(config).attention(kind).stack).n_heads
    if n_heads < 2:
        raise NotHere("This model has one head in each layer; choose a checkpoint with more of them.")
    return n_heads


PICKS: Final = (first_layer, last_writer, two_writers, sharpest, costliest_head)
