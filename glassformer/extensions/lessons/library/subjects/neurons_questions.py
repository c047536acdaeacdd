"""Questions about feed-forward sub-layers and embeddings: silent neurons, what one writes, and who is near whom."""

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from torch import Tensor

from glassformer.extensions.lessons.library.case import (
    Answer,
    Case,
    Option,
    QuestionNotApplicable,
    between,
    largest,
    only_rounding,
    worded,
)
from glassformer.extensions.lessons.library.subjects.looking_questions import own_pieces
from glassformer.extensions.lessons.library.subjects.stream_questions import TokenRow, place_of, spelled_alike, table_of
from glassformer.extensions.what_if.interventions import NoFeedForward
from transformer.analysis import neighbours, neurons
from transformer.analysis.stream import places
from transformer.model.taps import Replacer, tap_of
from transformer.runs.running import replay

HARDLY: Final = 0.1  # a logit that changes by less has hardly changed: it makes a probability a tenth larger
NEAREST: Final = 10
CLEAR: Final = 0.005  # by how much the nearest cosine has to exceed the next
FAR: Final = 60  # a decoy is the piece at about this place in the order of nearness


def ffn_alone(case: Case) -> Answer:
    """Which other tokens a feed-forward sub-layer reads for one."""
    place, trace = place_of(case, case.picked), case.trace
    n_tokens = trace.n_tokens(place.stack)
    if n_tokens < 3:
        raise QuestionNotApplicable(
            "This step needs a token with other tokens on both sides; try a sentence of at least three tokens."
        )
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
    return Answer(right=right, options=worded("none", "before", "all"), values={"by": max(moved.values())})


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
    return Answer(right=right, options=worded(*words), values=values, variant="exact" if kind == "relu" else "near")


def _activations(case: Case, place: TokenRow) -> np.ndarray:
    """Of the layer that was picked, of the tokens that were read [T, d_ff]."""
    site = neurons.site(place.stack, case.at("layer"), "activation")
    return replay(case.checkpoint, case.trace, [site])[site][: case.trace.n_tokens(place.stack)]


def active_elsewhere(case: Case) -> Answer:
    """At how many of the other tokens the most active neuron of one is active, too."""
    place, kind = place_of(case, case.picked), str(case.checkpoint.config.activation)
    activation = _activations(case, place)[:, case.at("neuron")]
    n_others = len(activation) - 1
    if n_others < 3:
        raise QuestionNotApplicable("This step needs at least four tokens; try a longer sentence.")
    active = ~neurons.silent(activation, kind)
    count = int(active.sum()) - int(active[place.row])
    right = "only" if not count else ("some" if 2 * count < n_others else "many")
    values = {"n": count, "n_others": n_others}
    return Answer(right=right, options=worded("only", "some", "many"), values=values, variant=right)


def pushes(case: Case) -> Answer:
    """Whether the most active neuron raises the logit of the piece that is written."""
    if case.picked["side"] != "target":
        raise QuestionNotApplicable("An encoder's neurons change vectors, not logits; choose a model with a decoder.")
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
    options = worded("raises", "hardly", "lowers")
    return Answer(right=right, options=options, values=values, variant="raises_most" if most else right)


def without_ffn(case: Case) -> Answer:
    """What becomes of the output if the last layer's feed-forward writes nothing."""
    if case.picked["side"] != "target":
        raise QuestionNotApplicable("This model writes nothing, so it has no output that could change.")
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
    return Answer(right=right, options=worded("same", "some", "most"), values=values, variant=right)


def nearest_piece(case: Case) -> Answer:
    """Which piece's embedding has the largest cosine with that of a piece."""
    own, found, piece = _near(case)
    if found.cosine[0] - found.cosine[1] < CLEAR:
        raise QuestionNotApplicable(
            "Two tokens have embeddings that are about equally close to the given token, so there is no single "
            "answer; try another sentence."
        )
    nearest = int(found.ids[0])
    beside = [case.trace.src_ids[place] for place in own_pieces(case)]
    alike = [int(i) for i in found.ids[1:] if spelled_alike(piece(own), piece(int(i)))]
    chosen = {nearest: f"piece-{nearest}"}
    chosen.setdefault(next((i for i in beside if i not in (own, nearest)), nearest), "beside")
    chosen.setdefault(alike[-1] if alike else nearest, "spelled")
    chosen.setdefault(int(found.ids[-1]), "far")
    options = tuple(Option(word, piece(i)) for i, word in chosen.items())
    values = {"nearest": piece(nearest), "cosine": float(found.cosine[0]), "second": piece(int(found.ids[1]))}
    return Answer(right=chosen[nearest], options=options, values=values)


def near_by_spelling(case: Case) -> Answer:
    """How many of the ten nearest pieces are spelled like a piece."""
    own, found, piece = _near(case)
    ten = [piece(int(i)) for i in found.ids[:NEAREST]]
    count = sum(spelled_alike(piece(own), one) for one in ten)
    right = "hardly" if count <= 1 else ("some" if count <= 5 else "most")
    values = {"n": count, "ten": " · ".join(ten)}
    return Answer(right=right, options=worded("hardly", "some", "most"), values=values, variant=right)


def _near(case: Case) -> tuple[int, neighbours.Neighbours, Callable[[int], str]]:
    """The id of the piece that was picked, the pieces near it, and what pieces are called."""
    own, tokenizer = case.trace.src_ids[case.at("key")], case.checkpoint.src_tokenizer
    table, allowed = table_of(case), np.array([not tokenizer.is_special(i) for i in range(tokenizer.size)])
    norms = neighbours.row_norms(table)
    found = neighbours.nearest(table, norms, own, count=FAR, by="cosine", allowed=allowed)
    if len(found.ids) < FAR:
        raise QuestionNotApplicable("This embedding table has too few non-zero vectors to compare.")
    return own, found, tokenizer.piece
