"""Computed lesson answers on heads: agreement, entropy, reach, share written, ablation, widths, W_O, a cut edge.

Picks: which attention a lesson about several heads looks at. Layers and heads count from 1.

Source: Vaswani et al. (2017), section 3.2.2, for how the heads of an attention are cut, joined and mixed.
"""

from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch

from glassformer.extensions.effects.attribution.attribution_graph import attribution_graph, cut
from glassformer.extensions.effects.attribution.held_run import HeldRun
from glassformer.extensions.effects.attribution.target import ask
from glassformer.extensions.lessons.library.lesson import (
    Answer,
    Case,
    Option,
    QuestionNotApplicable,
    Refusal,
    above,
    amount,
    between,
    clear,
    counted,
    first_difference,
    largest,
    largest_difference,
    numbered,
    only_rounding,
    refuse_if,
)
from glassformer.extensions.what_if.head_effects import EffectReading, Head
from glassformer.extensions.what_if.interventions import KeyBias, ZeroHead
from transformer.analysis import head_statistics
from transformer.analysis.head_statistics import distance, entropy
from transformer.analysis.one_weight import place
from transformer.i18n import say
from transformer.model.anatomy import Kind, anatomy
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from transformer.runs.running import replay

MOST_HEADS: Final = 16
"""Of a layer with more heads only the first are taken away one by one: each costs a row of a pass."""

MOST_TOKENS: Final = 512
"""Above this many tokens of source and output together a pass without a head takes too long for a question."""


def first_layer(case: Case) -> dict[str, Any]:
    """The first layer's self-attention: the encoder's, or that of a decoder-only model."""
    kind: Kind = "encoder" if "encoder" in case.trace.kinds else "decoder"
    weights = self_maps(case, kind)
    config = case.checkpoint.config
    widths = {"d_model": config.d_model, "d_head": config.d_head}
    return {"kind": kind, "layer": 1, "n_heads": weights.shape[1], "n": weights.shape[-1], **widths}


def last_writer(case: Case) -> dict[str, Any]:
    """The last layer of the attention that brings the source in: cross-attention, or a decoder's own."""
    case.written(least=2)
    attention = anatomy(case.checkpoint.config).attention("cross" if "cross" in case.trace.kinds else "decoder")
    n_heads = _at_least_two(case, attention.kind)
    return {"kind": attention.kind, "layer": attention.n_layers, "n_heads": n_heads}


def two_writers(case: Case) -> dict[str, Any]:
    """The heads of that layer that write most and least, and how much of all that is written they write."""
    picked = last_writer(case)
    shares = written_shares(case, picked["kind"], picked["layer"] - 1)
    found = {"most": largest(shares) + 1, "least": largest(-shares) + 1}
    return {**picked, **found, "share": float(shares.max()), "least_share": float(shares.min())}


def sharpest(case: Case) -> dict[str, Any]:
    """The head of that layer whose rows have most on one key in the mean, beside the one that writes most."""
    picked = two_writers(case)
    refuse_if(not case.trace.keeps_maps, Refusal.TOO_LONG)
    first = case.trace.first_row
    rows = case.trace.maps(picked["kind"])[picked["layer"] - 1, :, first : first + case.trace.n_steps]
    tops = rows.max(axis=-1).mean(axis=-1)  # [head]
    return {**picked, "sharp": largest(tops) + 1, "top": float(tops.max())}


def costliest_head(case: Case) -> dict[str, Any]:
    """The head of that layer without which the output loses most probability."""
    picked = last_writer(case)
    effects = without_heads(case, picked["kind"], picked["layer"] - 1, range(int(picked["n_heads"])))
    head = [*effects][largest(-np.array([*effects.values()]))]
    refuse_if(effects[head] >= 0, say("No head of this layer makes the output more probable; try another sentence."))
    return {**picked, "head": head + 1, "cost": -effects[head]}


def self_maps(case: Case, kind: Kind) -> np.ndarray:
    """The weights of a self-attention, [layer, head, query, key], without a batch's padding."""
    _at_least_two(case, kind)
    refuse_if(not case.trace.keeps_maps, Refusal.TOO_LONG)
    n = case.trace.n_tokens("encoder" if kind == "encoder" else "decoder")
    refuse_if(n < 3, Refusal.TOO_SHORT)
    return case.trace.maps(kind)[:, :, :n, :n]


def written_shares(case: Case, kind: Kind, layer: int) -> np.ndarray:
    """How much each head of a layer (from 0) writes, in the mean over the rows, as a share of all of them [head]."""
    site = head_statistics.outputs_site(kind, layer)
    heads = replay(case.checkpoint, case.trace, [site])[site]  # [head, query, d_head]
    parts = head_statistics.output_projections(case.checkpoint.model, kind)[layer]  # [head, d_head, d_model]
    shares = head_statistics.norm_share(heads[None], parts[None])[0]  # [head, query]
    first = case.trace.first_row
    return np.asarray(shares[:, first : first + case.trace.n_steps].mean(axis=1))


def without_heads(case: Case, kind: Kind, layer: int, heads: range | tuple[int, ...]) -> dict[int, float]:
    """By how much the output's log-probability changes without each head, all others in place, in nats.

    Layer and heads count from 0; at most `MOST_HEADS` heads are measured.
    """
    refuse_if(len(case.trace.src_ids) + len(case.trace.read_ids) > MOST_TOKENS, Refusal.TOO_LONG)
    measured = list(heads)[:MOST_HEADS]
    reading = EffectReading.of(case.checkpoint, case.trace)
    rows = reading.without([Head(kind, layer, head) for head in measured], reading.control())
    return dict(zip(measured, rows["log_prob"].double().sum(dim=1).tolist(), strict=True))


def _at_least_two(case: Case, kind: Kind) -> int:
    """How many heads a layer of an attention has."""
    config = case.checkpoint.config
    n_heads = config.of(anatomy(config).attention(kind).stack).n_heads
    refuse_if(n_heads < 2, Refusal.ONE_HEAD)
    return n_heads


MOST_CHOICES: Final = 4
CLEAR_TOKENS: Final = 0.05  # that a head looks further than the next
CLEAR_SHARE: Final = 0.01  # that it writes more
CLEAR_BITS: Final = 0.005  # that a mean is flatter
SAME_NATS: Final = 0.2
"""Log-probabilities of a whole output that are nearer than this tell no head from another.

One output is then less than 1.25 times as probable as the other; label smoothing of 0.1 alone takes −ln 0.9 = 0.1
nats from each sure piece.
"""


def two_heads_agree(case: Case) -> Answer:
    """In how many rows the layer's first two heads have their largest weight on the same key."""
    maps = _layer(case)
    rows = slice(1, None) if case.picked["kind"] == "decoder" else slice(None)  # a first row sees one key only
    same = maps[0, rows].argmax(axis=-1) == maps[1, rows].argmax(axis=-1)
    count, n_rows = int(same.sum()), len(same)
    right = counted(same, clear(maps[0, rows]) & clear(maps[1, rows]), lambda k: _agree(k, n_rows))
    return Answer(right, {"count": count, "rows": n_rows})


def _agree(count: int, n_rows: int) -> str:
    return "all" if count == n_rows else ("half" if 2 * count >= n_rows else "few")


def entropy_of_mean(case: Case) -> Answer:
    """Whether the mean of all heads' maps is flatter than the heads are in the mean.

    Entropy is concave, so that it can only be; Cover and Thomas, "Elements of Information Theory" (2006), theorem
    2.7.3.
    """
    maps = _layer(case).astype(np.float64)
    own, mixed = float(entropy(maps).mean()), float(entropy(maps.mean(axis=0)).mean())
    refuse_if(mixed - own < CLEAR_BITS, Refusal.NO_WINNER)
    return Answer("above", {"own": own, "mixed": mixed, "more": mixed - own})


def furthest_head(case: Case) -> Answer:
    """Which head of the layer looks furthest in the mean over its rows."""
    far = distance(_layer(case)).mean(axis=-1)  # [head]
    order = [int(head) for head in np.argsort(-far, kind="stable")]
    refuse_if(far[order[0]] - far[order[1]] < CLEAR_TOKENS, Refusal.NO_WINNER)
    chosen = sorted([order[0], *[head for head in range(len(far)) if head != order[0]][: MOST_CHOICES - 1]])
    options = tuple(Option(f"head-{head + 1}", say("Head {n}", n=head + 1)) for head in chosen)
    values = {"far": float(far.max()), "near": float(far.min()), "head": order[0] + 1, "least": order[-1] + 1}
    return Answer(f"head-{order[0] + 1}", values, options=options)


def sharpest_writes_most(case: Case) -> Answer:
    """Whether the head with the sharpest map is the one that writes most."""
    sharp, most = case.at("sharp"), case.at("most")
    shares = written_shares(case, case.picked["kind"], case.at("layer"))
    refuse_if(sharp != most and shares[most] - shares[sharp] < CLEAR_SHARE, Refusal.NO_WINNER)
    right = "yes" if sharp == most else "no"
    return Answer(right, {"own": float(shares[sharp]), "even": 1 / len(shares)})


def worth_of_size(case: Case) -> Answer:
    """Whether the head that writes most is worth more to the output than the one that writes least."""
    most, least = case.at("most"), case.at("least")
    effects = without_heads(case, case.picked["kind"], case.at("layer"), (most, least))
    apart = effects[least] - effects[most]  # the more is lost, the lower
    right = between((-SAME_NATS, SAME_NATS), apart, ("least", "same", "most"))
    worth = (most if right != "least" else least) + 1
    return Answer(right, {"by_most": effects[most], "by_least": effects[least], "worth": worth})


def without_costliest(case: Case) -> Answer:
    """What the output becomes without the head that it loses most probability by."""
    zero = ZeroHead(case.picked["kind"], case.at("layer"), case.at("head"))
    other, before = case.changed(zero), case.trace.tgt_ids
    right = "same" if other.tgt_ids == before else ("other" if other.tgt_ids[:1] != before[:1] else "later")
    at, shown = first_difference(case.trace, other)
    return Answer(right, {**case.outputs(other), "do": str(zero), "at": at, "shown": shown})


def random_key_bias(case: Case) -> Answer:
    """How far the logits move when a random vector is added to all keys of every head."""
    case.written(least=1)
    config, bias = case.checkpoint.config, KeyBias()
    if config.placing.adds == "turn" or config.qk_norm:
        raise QuestionNotApplicable(
            "This model rotates or normalises its keys after W_K, so a bias added to them does not cancel out."
        )
    moved = largest_difference(case.trace, case.changed(bias))  # the page shows the same run afterwards
    return Answer(moved.verdict, {"do": str(bias), "size": bias.size, "moved": moved.by})


def _layer(case: Case) -> np.ndarray:
    """The maps of the layer that was picked, [head, query, key]."""
    return self_maps(case, case.picked["kind"])[case.at("layer")]


TOUCHED: Final = 1e-6  # a number of a vector that changes by more than this share of the largest change has changed


def width_of_a_head(case: Case) -> Answer:
    """How many numbers the query of one head has."""
    n, width = _cut(case)
    numbers = {"share": width, "heads": n, "whole": n * width, "times": n * n * width}
    refuse_if(len(set(numbers.values())) < len(numbers), _NO_SHARES)
    return Answer("share", {"width": width, "n": n}, options=numbered(numbers))


def _cut(case: Case) -> tuple[int, int]:
    """How many heads the attention has, and how many numbers each of their queries."""
    site = place(case.picked["kind"], case.at("layer"))
    queries = replay(case.checkpoint, case.trace, [f"{site}.queries"])[f"{site}.queries"]  # [head, query, d_head]
    n, width = queries.shape[0], queries.shape[-1]
    refuse_if(n * width != case.checkpoint.config.d_model, _NO_SHARES)
    return n, width


_NO_SHARES = say("In this model the widths of the heads do not add up to d_model; choose another checkpoint.")


def cost_of_heads(case: Case) -> Answer:
    """How many products one query and one key take in all heads, beside one head as wide as d_model."""
    n, width = _cut(case)
    _at_least_two(case, case.picked["kind"])
    return Answer("same", {"products": n * width})


def twice_the_heads(case: Case) -> Answer:
    """What becomes of the number of parameters if there are twice as many heads, each half as wide."""
    config = case.checkpoint.config
    shared = config.n_kv_heads != config.n_heads
    refuse_if(config.d_model % (2 * config.n_heads) or shared or config.n_decoder_heads, Refusal.OTHER_HEADS)
    halved = replace(config, n_heads=2 * config.n_heads, n_kv_heads=0, d_head=0)
    own, other = _parameters(config), _parameters(halved)
    right = "same" if own == other else ("more" if other > own else "fewer")
    return Answer(right, {"own": own, "other": other, "twice": 2 * config.n_heads, "half": config.d_head // 2})


def _parameters(config: ModelConfig) -> int:
    """Learned numbers of all attentions; no memory is taken for them."""
    with torch.device("meta"):
        model = Transformer(config)
    return sum(one.numel() for name, one in model.named_parameters() if "_attn." in name)


def places_of_a_head(case: Case) -> Answer:
    """Which places of the joined vector a head fills: those whose rows of W_O make its share of the output."""
    heads, output, bias = _joined(case)
    n, width = heads.shape[0], heads.shape[-1]
    _at_least_two(case, case.picked["kind"])
    joined = heads.transpose(1, 0, 2).reshape(heads.shape[1], -1)  # [query, d_model], one head after the other
    mixed = np.moveaxis(heads, 0, -1).reshape(heads.shape[1], -1)  # [query, d_model], number by number
    matrix = _matrix(case).reshape(n * width, -1)
    off = {word: _off(one @ matrix + bias, output) for word, one in (("block", joined), ("spread", mixed))}
    right = "block" if above(off["spread"] - off["block"]) else "spread"
    return Answer(right, {"width": width, "first": width + 1, "last": 2 * width, "n": n, "error": amount(off[right])})


def joined_or_added(case: Case) -> Answer:
    """How far what W_O makes of the joined heads is from what each head's own slice makes, added up."""
    heads, output, bias = _joined(case)
    by_head = np.einsum("hqd,hdm->qm", heads, _matrix(case)) + bias
    apart = _off(by_head, output)
    right = "rounding" if only_rounding(apart) else "visible"
    return Answer(right, {"apart": amount(apart)})


def reach_of_a_head(case: Case) -> Answer:
    """How many numbers of the sub-layer's output change when one head gives nothing but 0."""
    heads, _, _ = _joined(case)
    head = case.at("head")
    lost = np.abs(heads[head] @ _matrix(case)[head])  # [query, d_model]
    changed = int((lost.max(axis=0) > TOUCHED * lost.max()).sum())
    width, whole = heads.shape[-1], lost.shape[-1]
    _at_least_two(case, case.picked["kind"])
    right = "all" if changed > whole // 2 else ("own" if changed else "none")
    return Answer(right, {"changed": changed, "whole": whole, "width": width})


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


def cut_edge(case: Case) -> Answer:
    """How the true effect of cutting the strongest edge of the step's graph compares with the predicted one."""
    asked = ask(case.checkpoint, case.trace, case.at("step"))
    graph = attribution_graph(asked)
    influence = np.where(graph.source > 0, graph.influence, 0.0)  # an edge from the biases cannot be cut
    refuse_if(not clear(influence), Refusal.NO_WINNER)
    edge = int(influence.argmax())
    found, predicted = cut(HeldRun(asked), *graph.ends_of(edge)), -float(graph.value[edge])
    true, (before, after) = found.change(asked.piece), found.probabilities(asked.piece)
    right = between((0.5, 1.5), true / predicted, ("less", "near", "more"))
    ends = (graph.source[edge], graph.target[edge])
    place = ".".join(str(number) for end in ends for number in (graph.part[end], graph.token[end]))
    return Answer(right, {"predicted": predicted, "true": true, "before": before, "after": after, "cut": place})
