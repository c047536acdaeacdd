"""Computed lesson answers on a model's inside: residual stream, norms, logit lens, neurons, nearest embeddings.

Picks: which vector, which neuron and which piece a lesson looks at inside the model. All count from 1.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

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
    largest,
    only_rounding,
    refuse_if,
    worded,
)
from glassformer.extensions.lessons.library.subjects.looking_questions import own_pieces
from glassformer.extensions.what_if.interventions import Replace
from glassformer.extensions.what_if.interventions.layer_changes import NoFeedForward, NoResidual, Skip
from transformer.analysis import neighbours, neurons, stream
from transformer.analysis.logit_lens import logit_lens, paths
from transformer.analysis.one_weight import hardest_step as least_sure
from transformer.analysis.stream import places
from transformer.i18n import say
from transformer.model.anatomy import StackName, anatomy
from transformer.model.taps import Replacer, tap_of
from transformer.runs.interventions import write
from transformer.runs.running import replay

SMALL_VOCABULARY: Final = 500  # a vocabulary with fewer pieces has letters and marks, but hardly a word


@dataclass(frozen=True)
class TokenRow:
    """A token of the stack that writes, or of an encoder-only model; `row` counts from 0."""

    stack: StackName
    n_layers: int
    row: int


def stream_row(case: Case) -> dict[str, Any]:
    """The step at which the model was least sure; of an encoder-only model, a token in the middle."""
    trace = case.trace
    if anatomy(case.checkpoint.config).writes:
        at = least_sure(trace.entropies(), range(case.written(least=2)))
        reads = trace.row_label(trace.row_of(at)).reads
        return {"side": "target", "step": at + 1, "key": 1, "token": reads, "piece": trace.tgt_tokens[at]}
    key = _middle(case)
    return {"side": "source", "step": 1, "key": key + 1, "token": trace.src_tokens[key], "piece": ""}


def first_norm(case: Case) -> dict[str, Any]:
    """The first norm of the same stack."""
    return stream_row(case) | {"norm": 1, "d_model": case.checkpoint.config.d_model}


def lens_step(case: Case) -> dict[str, Any]:
    """The step at which the model was least sure."""
    refuse_if(not anatomy(case.checkpoint.config).writes, Refusal.WRITES_NOTHING)
    return stream_row(case)


def source_token(case: Case) -> dict[str, Any]:
    """A piece of text in the middle of what the encoder reads."""
    refuse_if(not anatomy(case.checkpoint.config).reads, Refusal.NO_ENCODER)
    key = _middle(case)
    return {"key": key + 1, "token": case.trace.src_tokens[key]}


def longest_piece(case: Case) -> dict[str, Any]:
    """The piece of the source with the longest text, the first of those: most likely a word with a meaning."""
    trace, size = case.trace, case.checkpoint.config.src_vocab_size
    if size < SMALL_VOCABULARY:
        raise QuestionNotApplicable(
            "The {n:,} tokens of this vocabulary are letters and marks; choose a model whose vocabulary has words.",
            n=size,
        )
    key = max(own_pieces(case), key=lambda place: (len(trace.src_tokens[place].strip("▁")), -place))
    return {"key": key + 1, "token": trace.src_tokens[key], "pieces": size}


def top_neuron(case: Case) -> dict[str, Any]:
    """The most active neuron of the last layer at that token."""
    picked = stream_row(case)
    place = place_of(case, picked)
    sites = [neurons.site(place.stack, place.n_layers - 1, name) for name in ("activation", "pre_activation")]
    after, before = (replay(case.checkpoint, case.trace, sites)[site] for site in sites)
    here, told = after[place.row], before[: case.trace.n_tokens(place.stack)]
    neuron = int(neurons.most_active(here, 1)[0])
    refuse_if(not here[neuron] > 0, say("No neuron is active at this token; try another sentence."))
    return picked | {
        "layer": place.n_layers,
        "neuron": neuron + 1,
        "n_neurons": case.checkpoint.config.of(place.stack).d_ff,
        "activation": float(here[neuron]),
        "mean": float(told[place.row].mean()),
        "deviation": float(told[place.row].std()),
        "own_mean": float(told[:, neuron].mean()),
    }


def place_of(case: Case, picked: Mapping[str, Any]) -> TokenRow:
    """Where in the model what `stream_row` found is."""
    parts = anatomy(case.checkpoint.config)
    stack = parts.stacks[-1] if picked["side"] == "target" else parts.stack("encoder")
    row = case.trace.row_of(int(picked["step"]) - 1) if picked["side"] == "target" else int(picked["key"]) - 1
    return TokenRow(stack.name, stack.n_layers, row)


def _middle(case: Case) -> int:
    own = own_pieces(case)
    return own[len(own) // 2]


def spelled_alike(one: str, other: str) -> bool:
    """Whether two pieces share how they are written: the first three letters, or a character of a script without."""
    a, b = one.strip("▁").lower(), other.strip("▁").lower()
    if a.isascii() or b.isascii():
        return len(a) >= 3 and a[:3] == b[:3]
    if any("\u4e00" <= sign <= "\u9fff" for sign in a):
        return bool(set(a) & set(b))
    return a[:3] == b[:3]


def table_of(case: Case) -> np.ndarray:
    """The embeddings of the source's pieces [V, D]."""
    return case.checkpoint.model.src_table.float().numpy(force=True)


CLEAR: Final = 1.05  # by how much the largest has to exceed the next to be asked for
ALMOST: Final = 0.05  # a mean this near to 0 and a deviation this near to 1 are as good as 0 and 1
EQUAL_NATS: Final = 0.5
MOST_CHOICES: Final = 4
MOST_REPLACED: Final = 16
_START: Final = "{stack}.embedding.output"
PARTS: Final = {"self_attn": "self", "cross_attn": "cross", "ffn": "ffn"}


def largest_addition(case: Case) -> Answer:
    """Which kind of sub-layer adds the largest vector to the stream of a token."""
    measured, row = _measured(case)
    largest: dict[str, tuple[float, int]] = {}
    for place, added in zip(measured.sublayers, measured.added[:, row], strict=True):
        here = (float(added), (place.layer or 0) + 1)
        largest[PARTS[place.part]] = max(largest.get(PARTS[place.part], here), here)
    order = sorted(largest, key=lambda part: -largest[part][0])
    (most, layer), (second, _) = largest[order[0]], largest[order[1]]
    refuse_if(most < CLEAR * second, Refusal.NO_WINNER)
    values = {"layer": layer, "size": most, "second": second, "before": float(measured.size[0, row])}
    return Answer(order[0], values, options=worded(*largest))


def left_of_the_start(case: Case) -> Answer:
    """The cosine of a token's stream after the last layer with what it began as."""
    measured, row = _measured(case)
    kept = float(measured.kept[len(measured.sublayers), row])
    words = "none", "little", "some", "most"
    right = between((0.1, 0.3, 0.7), kept, words)
    variant = "far" if right in words[:2] else "near"
    return Answer(right, {"kept": kept}, variant=variant)


def _measured(case: Case) -> tuple[stream.Stream, int]:
    place, config, trace = place_of(case, case.picked), case.checkpoint.config, case.trace
    recorded = replay(case.checkpoint, trace, stream.sites(config, place.stack))
    return stream.measure(recorded, config, place.stack, n_tokens=trace.n_tokens(place.stack)), place.row


def standardised(case: Case) -> Answer:
    """Over which numbers a norm takes its mean and its deviation."""
    config, place = case.checkpoint.config, place_of(case, case.picked)
    if config.norm_kind in ("none", "rms"):
        raise QuestionNotApplicable("This model has no layer norm that subtracts the mean; choose another checkpoint.")
    n_tokens = case.trace.n_tokens(place.stack)
    refuse_if(n_tokens < 3, Refusal.TOO_SHORT)
    norm = stream.norm_places(config, place.stack)[case.at("norm")]
    recorded = replay(case.checkpoint, case.trace, stream.sites(config, place.stack))
    found = stream.normed(recorded, case.checkpoint.model, place.stack, norm, n_tokens=n_tokens)
    by_token, by_dimension = (_is_standard(found.standardised, axis) for axis in (1, 0))
    right = "both" if by_token and by_dimension else ("token" if by_token else "dimension")
    own = found.standardised[place.row]
    values = {
        "deviation": float(found.deviation_before[place.row]),
        "mean": abs(float(own.mean())),
        "one": float(own.std()),
        "after": float(found.deviation_after[place.row]),
    }
    return Answer(right, values)


def _is_standard(vectors: np.ndarray, axis: int) -> bool:
    means, deviations = vectors.mean(axis=axis), vectors.std(axis=axis)
    return not above(float(max(np.abs(means).max(), np.abs(deviations - 1).max())), ALMOST)


def settled_depth(case: Case) -> Answer:
    """After which layer the piece that is written is on top to stay."""
    step = case.at("step")
    lens = logit_lens(case.checkpoint, case.trace, top=2).by_layer()
    refuse_if(not clear(lens.top_probs[:, step]).all(), Refusal.NEAR)
    settled, last = int(paths(lens.rank).stays[step]), len(lens.places) - 1
    if settled < 0:
        raise QuestionNotApplicable(
            "The token at this step of the output is not the model's own first choice; try another sentence."
        )
    among = [*dict.fromkeys([settled, 0, last, *range(last - 1, 0, -1)])][:MOST_CHOICES]
    values = {
        "layer": settled,
        "last": last,
        "p": float(lens.prob[settled, step]),
        "p_last": float(lens.prob[last, step]),
        "rank": int(lens.rank[max(0, settled - 1), step]),
    }
    variant = "start" if settled == 0 else ("last" if settled == last else "before")
    options = tuple(map(_depth, sorted(among)))
    return Answer(_depth(settled).word, values, options=options, variant=variant)


def _depth(depth: int) -> Option:
    if depth == 0:
        return Option("embedding")
    return Option(f"depth-{depth}", say("after layer {layer}", layer=depth))


def stream_or_sublayer(case: Case) -> Answer:
    """What harms more in the decoder's first layer: no feed-forward, or nothing but feed-forward."""
    refuse_if(case.picked["side"] != "target", Refusal.WRITES_NOTHING)
    alone = NoResidual(stack="decoder", layer=0, sublayer="ffn")
    lost = {"skip": _cost(case, Skip(stack="decoder", layer=0, part="ffn")), "alone": _cost(case, alone)}
    refuse_if(not all(np.isfinite(cost) for cost in lost.values()), Refusal.NOT_FINITE)
    right = between((-EQUAL_NATS, EQUAL_NATS), lost["alone"] - lost["skip"], ("skip", "equal", "alone"))
    shown = min(int(case.picked["step"]), max(1, case.changed(alone).n_steps))  # its output may be shorter
    return Answer(right, {**lost, "do": str(alone), "shown": shown})


def _cost(case: Case, change: Any) -> float:
    """By how many nats a change makes the output that was written less probable."""
    trace = case.trace
    other = case.another(interventions=(change,), forced=trace.tgt_ids, max_new=max(trace.n_steps, 1))
    return trace.log_prob - other.log_prob


def among_others(case: Case) -> Answer:
    """How alike the vectors of one piece are in two sentences."""
    config, key = case.checkpoint.config, case.at("key")
    sentence, changes = _elsewhere(case, key)
    changed = case.another(interventions=changes, max_new=1)
    where = stream.places(config, "encoder")
    ends = [place.site for place in where if place.ends_layer]
    here, there = (
        np.stack([replay(case.checkpoint, trace, ends)[site][key].astype(np.float64) for site in ends])
        for trace in (case.trace, changed)
    )
    alike = [float(one) for one in stream.cosine(here, there)]
    right = between((0.8, 0.95), alike[-1], ("apart", "like", "same"))
    values = {"start": alike[0], "first": alike[1], "last": alike[-1], "other": sentence, "do": write(changes)}
    return Answer(right, values)


def _elsewhere(case: Case, key: int) -> tuple[str, tuple[Replace, ...]]:
    """An example of the checkpoint's card, and what puts its pieces in the places of the others."""
    trace, checkpoint = case.trace, case.checkpoint
    others = [place for place in own_pieces(case) if place != key][:MOST_REPLACED]
    refuse_if(len(others) < 2, Refusal.TOO_SHORT)
    for sentence in reversed(checkpoint.card.examples):
        ids = [i for i in checkpoint.src_tokenizer.encode(sentence).ids if not checkpoint.src_tokenizer.is_special(i)]
        pairs = [(place, ids[n % len(ids)]) for n, place in enumerate(others)] if ids else []
        changes = tuple(Replace(place=place, piece=i) for place, i in pairs if i != trace.src_ids[place])
        if 2 * len(changes) > len(others):
            return sentence, changes
    raise QuestionNotApplicable("The model card of this checkpoint has no other sentence to take tokens from.")


def silent_sublayers(case: Case) -> Answer:
    """What is left of the stream of a token if every sub-layer adds 0 to it."""
    site, added, row = _path(case)
    silent = tap_of(Replacer(dict.fromkeys(added, torch.zeros_like), causal=True))
    end = replay(case.checkpoint, case.trace, [site], tap=silent)[site][row]
    start = _START.format(stack=site.split(".")[0])
    begun = replay(case.checkpoint, case.trace, [start])[start][row]
    apart = float(np.abs(end - begun).max())
    right = "start" if only_rounding(apart) else ("zero" if not end.any() else "other")
    return Answer(right, {"apart": amount(apart), "n": len(added)})


def path_that_nothing_scales(case: Case) -> Answer:
    """Whether what a token began as stands unscaled in the stream at the end: it does if norms stand off the path."""
    site, added, row = _path(case)
    start = _START.format(stack=site.split(".")[0])
    found = replay(case.checkpoint, case.trace, [site, start, *added])
    whole = found[start][row].astype(np.float64) + sum(found[one][row].astype(np.float64) for one in added)
    apart = float(np.abs(whole - found[site][row]).max())
    right = "before" if only_rounding(apart / max(1.0, float(np.abs(whole).max()))) else "after"
    return Answer(right, {"apart": amount(apart), "n": len(added)}, variant="before")


def _path(case: Case) -> tuple[str, list[str], int]:
    """The site of the stream after the last layer, the sites of all that was added to it, and the token's row."""
    config, place = case.checkpoint.config, place_of(case, case.picked)
    if config.norm != "pre":
        raise QuestionNotApplicable(
            "This is not a pre-norm model; choose a checkpoint whose norms come before the sub-layers."
        )
    stack = anatomy(config).stack(place.stack)
    added = [f"{stack.name}.{layer}.{part}.output" for layer in range(stack.n_layers) for part in stack.sublayers]
    return f"{stack.name}.{stack.n_layers - 1}.output", added, place.row


HARDLY: Final = 0.1  # a logit that changes by less has hardly changed: it makes a probability a tenth larger
NEAREST: Final = 10
CLEARLY_NEARER: Final = 0.005  # by how much the nearest cosine has to exceed the next
FAR: Final = 60  # a decoy is the piece at about this place in the order of nearness


def ffn_alone(case: Case) -> Answer:
    """Which other tokens a feed-forward sub-layer reads for one."""
    place, trace = place_of(case, case.picked), case.trace
    n_tokens = trace.n_tokens(place.stack)
    refuse_if(n_tokens < 3, Refusal.TOO_SHORT)
    layer = case.at("layer")
    output = neurons.site(place.stack, layer, "output")
    moved = {}
    for which, rows in (("before", slice(0, place.row)), ("after", slice(place.row + 1, n_tokens))):
        # Declared causal, to read all rows in one pass: with prefixes, no row would have anything after it.
        tap = tap_of(Replacer({_read(case, place, layer): partial(_without, rows)}, causal=True))
        kept, other = (replay(case.checkpoint, trace, [output], tap=one)[output] for one in (tap_of(), tap))
        scale = max(1.0, float(np.abs(kept[place.row]).max()))
        moved[which] = float(np.abs(kept[place.row] - other[place.row]).max()) / scale
    sees = {which for which, by in moved.items() if not only_rounding(by)}
    right = "none" if not sees else ("before" if sees == {"before"} else "all")
    return Answer(right, {"by": max(moved.values())})


def _read(case: Case, place: TokenRow, layer: int) -> str:
    """The site that a layer's feed-forward reads."""
    config = case.checkpoint.config
    if config.norm != "post":
        return f"{place.stack}.{layer}.ffn.norm"
    where = places(config, place.stack)
    at = next(i for i, one in enumerate(where) if one.layer == layer and one.part == "ffn")
    return where[at - 1].site


def _without(rows: slice, value: Tensor) -> Tensor:
    """A value [1, T, D] with rows set to 0."""
    changed = value.clone()
    changed[:, rows] = 0.0
    return changed


def silent_share(case: Case) -> Answer:
    """The share of the neurons of a layer that are silent at a token."""
    place, kind = place_of(case, case.picked), str(case.checkpoint.config.activation)
    share = float(neurons.silent(_activations(case, place)[place.row], kind).mean())
    words = "few", "half", "most", "nearly_all"
    right = between((0.5, 0.75, 0.9), share, words)
    values = {"share": share, "active": round((1 - share) * case.checkpoint.config.of(place.stack).d_ff)}
    return Answer(right, values, variant="exact" if kind == "relu" else "near")


def _activations(case: Case, place: TokenRow) -> np.ndarray:
    """Of the layer that was picked, of the tokens that were read [T, d_ff]."""
    site = neurons.site(place.stack, case.at("layer"), "activation")
    return replay(case.checkpoint, case.trace, [site])[site][: case.trace.n_tokens(place.stack)]


def active_elsewhere(case: Case) -> Answer:
    """At how many of the other tokens the most active neuron of one is active, too."""
    place, kind = place_of(case, case.picked), str(case.checkpoint.config.activation)
    activation = _activations(case, place)[:, case.at("neuron")]
    n_others = len(activation) - 1
    refuse_if(n_others < 3, Refusal.TOO_SHORT)
    active = ~neurons.silent(activation, kind)
    count = int(active.sum()) - int(active[place.row])
    right = "only" if not count else ("some" if 2 * count < n_others else "many")
    return Answer(right, {"n": count, "n_others": n_others})


def pushes(case: Case) -> Answer:
    """Whether the most active neuron raises the logit of the piece that is written."""
    refuse_if(case.picked["side"] != "target", Refusal.WRITES_NOTHING)
    model, trace, config = case.checkpoint.model, case.trace, case.checkpoint.config
    place, layer, neuron = place_of(case, case.picked), case.at("layer"), case.at("neuron")
    inputs = replay(case.checkpoint, trace, neurons.effect_sites(config, layer))
    effect = neurons.direct_effect(model, layer, neuron, inputs, token=place.row) * float(case.picked["activation"])
    written_id = trace.tgt_ids[case.at("step")]
    change = float(effect[written_id])
    right = between((-HARDLY, HARDLY), change, ("lowers", "hardly", "raises"))
    most = right == "raises" and largest(effect) == written_id
    values = {
        "change": change,
        "raised": trace.vocabulary[int(effect.argmax())],
        "raised_by": float(effect.max()),
        "lowered": trace.vocabulary[int(effect.argmin())],
    }
    return Answer(right, values, variant="raises_most" if most else right)


def without_ffn(case: Case) -> Answer:
    """What becomes of the output if the last layer's feed-forward writes nothing."""
    refuse_if(case.picked["side"] != "target", Refusal.WRITES_NOTHING)
    change, trace = NoFeedForward(stack="decoder", layer=case.at("layer")), case.trace
    other = case.changed(change)
    same = sum(a == b for a, b in zip(trace.tgt_ids, other.tgt_ids, strict=False))
    differ = max(trace.n_steps, other.n_steps) - same
    right = "same" if not differ else ("some" if 2 * differ <= trace.n_steps else "most")
    values = {
        "n": differ,
        "n_steps": trace.n_steps,
        "after": other.output_text.strip() or "–",
        "do": str(change),
        "shown": min(int(case.picked["step"]), max(1, other.n_steps)),
    }
    return Answer(right, values)


def nearest_piece(case: Case) -> Answer:
    """Which piece's embedding has the largest cosine with that of a piece."""
    own, found, piece = _near(case)
    refuse_if(found.cosine[0] - found.cosine[1] < CLEARLY_NEARER, Refusal.NO_WINNER)
    nearest = int(found.ids[0])
    beside = [case.trace.src_ids[place] for place in own_pieces(case)]
    alike = [int(i) for i in found.ids[1:] if spelled_alike(piece(own), piece(int(i)))]
    chosen = {nearest: f"piece-{nearest}"}
    chosen.setdefault(next((i for i in beside if i not in (own, nearest)), nearest), "beside")
    chosen.setdefault(alike[-1] if alike else nearest, "spelled")
    chosen.setdefault(int(found.ids[-1]), "far")
    options = tuple(Option(word, piece(i)) for i, word in chosen.items())
    values = {"nearest": piece(nearest), "cosine": float(found.cosine[0]), "second": piece(int(found.ids[1]))}
    return Answer(chosen[nearest], values, options=options)


def near_by_spelling(case: Case) -> Answer:
    """How many of the ten nearest pieces are spelled like a piece."""
    own, found, piece = _near(case)
    ten = [piece(int(i)) for i in found.ids[:NEAREST]]
    count = sum(spelled_alike(piece(own), one) for one in ten)
    right = "hardly" if count <= 1 else ("some" if count <= 5 else "most")
    return Answer(right, {"n": count, "ten": " · ".join(ten)})


def _near(case: Case) -> tuple[int, neighbours.Neighbours, Callable[[int], str]]:
    """The id of the piece that was picked, the pieces near it, and what pieces are called."""
    own, tokenizer = case.trace.src_ids[case.at("key")], case.checkpoint.src_tokenizer
    table, allowed = table_of(case), np.array([not tokenizer.is_special(i) for i in range(tokenizer.size)])
    norms = neighbours.row_norms(table)
    found = neighbours.nearest(table, norms, own, count=FAR, by="cosine", allowed=allowed)
    refuse_if(len(found.ids) < FAR, say("This embedding table has too few non-zero vectors to compare."))
    return own, found, tokenizer.piece
