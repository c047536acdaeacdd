"""Questions about how the heads of an attention are built: cut, joined, mixed.

Source: Vaswani et al. (2017), section 3.2.2.
"""

from dataclasses import replace
from typing import Final

import numpy as np
import torch

from glassformer.extensions.lessons.library.case import (
    Answer,
    Case,
    QuestionNotApplicable,
    above,
    amount,
    numbered,
    only_rounding,
    worded,
)
from transformer.analysis import head_statistics
from transformer.analysis.one_weight import place
from transformer.i18n import say
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from transformer.runs.running import replay

TOUCHED: Final = 1e-6  # a number of a vector that changes by more than this share of the largest change has changed


def width_of_a_head(case: Case) -> Answer:
    """How many numbers the query of one head has."""
    n, width = _cut(case)
    numbers = {"share": width, "heads": n, "whole": n * width, "times": n * n * width}
    if len(set(numbers.values())) < len(numbers):
        raise QuestionNotApplicable(_NO_SHARES)
    return Answer(right="share", options=numbered(numbers), values={"width": width, "n": n})


def _cut(case: Case) -> tuple[int, int]:
    """How many heads the attention has, and how many numbers each of their queries."""
    site = place(case.picked["kind"], case.at("layer"))
    queries = replay(case.checkpoint, case.trace, [f"{site}.queries"])[f"{site}.queries"]  # [head, query, d_head]
    n, width = queries.shape[0], queries.shape[-1]
    if n * width != case.checkpoint.config.d_model:
        raise QuestionNotApplicable(_NO_SHARES)
    return n, width


def _two_or_more(n_heads: int) -> None:
    if n_heads < 2:
        raise QuestionNotApplicable("This model has one head per layer; choose a checkpoint with more heads.")


_NO_SHARES = say("In this model the widths of the heads do not add up to d_model; choose another checkpoint.")


def cost_of_heads(case: Case) -> Answer:
    """How many products one query and one key take in all heads, beside one head as wide as d_model."""
    n, width = _cut(case)
    _two_or_more(n)
    return Answer(right="same", options=worded("fewer", "same", "more"), values={"products": n * width})


def twice_the_heads(case: Case) -> Answer:
    """What becomes of the number of parameters if there are twice as many heads, each half as wide."""
    config = case.checkpoint.config
    shared = config.n_kv_heads != config.n_heads
    if config.d_model % (2 * config.n_heads) or shared or config.n_decoder_heads:
        raise QuestionNotApplicable("The vectors of this model cannot be cut into twice as many heads.")
    halved = replace(config, n_heads=2 * config.n_heads, n_kv_heads=0, d_head=0)
    own, other = _parameters(config), _parameters(halved)
    right = "same" if own == other else ("more" if other > own else "fewer")
    values = {"own": own, "other": other, "twice": 2 * config.n_heads, "half": config.d_head // 2}
    return Answer(right=right, options=worded("fewer", "same", "more"), values=values)


def _parameters(config: ModelConfig) -> int:
    """Learned numbers of all attentions; no memory is taken for them."""
    with torch.device("meta"):
        model = Transformer(config)
    return sum(one.numel() for name, one in model.named_parameters() if "_attn." in name)


def places_of_a_head(case: Case) -> Answer:
    """Which places of the joined vector a head fills: those whose rows of W_O make its share of the output."""
    heads, output, bias = _joined(case)
    n, width = heads.shape[0], heads.shape[-1]
    _two_or_more(n)
    joined = heads.transpose(1, 0, 2).reshape(heads.shape[1], -1)  # [query, d_model], one head after the other
    mixed = np.moveaxis(heads, 0, -1).reshape(heads.shape[1], -1)  # [query, d_model], number by number
    matrix = _matrix(case).reshape(n * width, -1)
    off = {word: _off(one @ matrix + bias, output) for word, one in (("block", joined), ("spread", mixed))}
    right = "block" if above(off["spread"] - off["block"]) else "spread"
    values = {"width": width, "first": width + 1, "last": 2 * width, "n": n, "error": amount(off[right])}
    return Answer(right=right, options=worded("block", "spread", "all"), values=values)


def joined_or_added(case: Case) -> Answer:
    """How far what W_O makes of the joined heads is from what each head's own slice makes, added up."""
    heads, output, bias = _joined(case)
    by_head = np.einsum("hqd,hdm->qm", heads, _matrix(case)) + bias
    apart = _off(by_head, output)
    right = "rounding" if only_rounding(apart) else "visible"
    return Answer(right=right, options=worded("rounding", "visible", "depends"), values={"apart": amount(apart)})


def reach_of_a_head(case: Case) -> Answer:
    """How many numbers of the sub-layer's output change when one head gives nothing but 0."""
    heads, _, _ = _joined(case)
    head = case.at("head")
    lost = np.abs(heads[head] @ _matrix(case)[head])  # [query, d_model]
    changed = int((lost.max(axis=0) > TOUCHED * lost.max()).sum())
    width, whole = heads.shape[-1], lost.shape[-1]
    _two_or_more(heads.shape[0])
    right = "all" if changed > whole // 2 else ("own" if changed else "none")
    values = {"changed": changed, "whole": whole, "width": width}
    return Answer(right=right, options=worded("none", "own", "all"), values=values)


def _joined(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What each head gives [head, query, d_head], what the sub-layer makes of it [query, d_model], and W_O's bias."""
    layer = case.at("layer")
    site = place(case.picked["kind"], layer)
    found = replay(case.checkpoint, case.trace, [f"{site}.heads", f"{site}.output"])
    heads, output = (found[f"{site}.{name}"].astype(np.float64) for name in ("heads", "output"))
    bias = case.checkpoint.model.attentions(case.picked["kind"])[layer].out_proj.bias
    return heads, output, np.zeros(output.shape[-1]) if bias is None else bias.double().numpy(force=True)


def _matrix(case: Case) -> np.ndarray:
    """The rows of W_O by head, float64 [head, d_head, d_model]."""
    parts = head_statistics.output_projections(case.checkpoint.model, case.picked["kind"])
    return np.asarray(parts[case.at("layer")], np.float64)


def _off(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max() / max(1.0, float(np.abs(other).max())))
