"""Each change of the wiring beside what it amounts to in `plain.Wires`, and models to make it in."""

import math

import numpy as np
import torch

from tests.transformer.tiny import DECODER, ENCODER, tiny_model

MODELS = {
    "both": {"n_heads": 4, "pad_id": 0},
    "post": {"n_heads": 4, "norm": "post", "final_norm": False, "positions": "learned", "mask_fill": -1e9,
             "scale_embedding": False},
    "decoder": {**DECODER, "positions": "learned", "n_heads": 4},
    "rotary": {**DECODER, "positions": "rotary", "norm_kind": "rms", "norm_bias": False, "n_heads": 2,
               "n_kv_heads": 1},
    "alibi": {**DECODER, "positions": "alibi", "n_heads": 4},
    "encoder": {**ENCODER, "n_heads": 4},
}  # fmt: skip
"""Kinds of models: what `tiny_config` takes."""

LENGTH = 12


def model_of(name, dtype=torch.float64):
    sizes = {"n_encoder_layers": 2, "n_decoder_layers": 2, "max_len": LENGTH}
    return tiny_model(dtype=dtype, **(sizes | MODELS[name]))


def sets(name, value, *, kinds=("encoder", "decoder", "cross")):
    """A function that writes a value into a table of wires."""

    def wire(wires):
        table = getattr(wires, name)
        setattr(wires, name, {**table, **dict.fromkeys(kinds, value)})

    return wire


def moves(to, *, kinds=("encoder", "decoder", "cross")):
    """A function that moves tokens to other places, after what moved them before."""

    def wire(wires):
        before = wires.place
        wires.place = {kind: (lambda p, f=f: to(f(p))) if kind in kinds else f for kind, f in before.items()}

    return wire


def stretches(by, *, kinds=("encoder", "decoder", "cross")):
    def wire(wires):
        wires.strength = {kind: f * by if kind in kinds else f for kind, f in wires.strength.items()}

    return wire


def puts(name, value):
    return lambda wires: setattr(wires, name, value)


def but(*one):
    """True but for one sub-layer of one layer."""
    return lambda *place: place != one


def appends(name, value, *, kinds=("encoder", "decoder", "cross")):
    def wire(wires):
        for kind in kinds:
            getattr(wires, name)[kind].append(value)

    return wire


def twice(plain, weights, is_open, fill):
    return plain.softmax(weights, is_open, fill)


def twice_open(plain, weights, is_open, fill):
    return plain.softmax(weights, np.ones_like(is_open), fill)


def shuffled(among, seed):
    order = torch.randperm(among, generator=torch.Generator().manual_seed(seed)).tolist()
    return lambda place: int(place) // among * among + order[int(place) % among]


ALONE = ("both", "post", "decoder", "rotary", "alibi")
TABLES = ("both", "post", "decoder")

CASES = {
    "scale-all.off.1": (ALONE, sets("scale", 1.0)),
    "scale-decoder.model.1": (ALONE, sets("scale", 1 / math.sqrt(12), kinds=["decoder"])),
    "scale-all.number.0p3": (ALONE, sets("scale", 0.3)),
    "twice-all.1": (ALONE, appends("weigh", twice)),
    "twice-all.0": (ALONE, appends("weigh", twice_open)),
    "fill-all.m1": (ALONE, sets("fill", -1.0)),
    "fill-all.m1e9": (ALONE, sets("fill", -1e9)),
    "unguarded-all": (ALONE, lambda wires: None),
    "unplaced-all": ((*TABLES, "alibi"), stretches(0.0)),
    "unplaced-decoder": (("rotary",), moves(lambda p: 0)),
    "shift-all.3": (ALONE, moves(lambda p: p + 3)),
    "shift-decoder.m2": (ALONE, moves(lambda p: p - 2, kinds=["decoder"])),
    "stretch-decoder.2p5": ((*TABLES, "alibi"), stretches(2.5, kinds=["decoder"])),
    "stretch-all.0p5": (("rotary",), moves(lambda p: p / 2)),
    "misplaced-all.3.4": (ALONE, moves(shuffled(4, 3))),
    "causal-off": (ALONE, puts("causal", lambda i, j: True)),
    "causal-hidden": (ALONE, puts("causal", lambda i, j: j < i)),
    "causal-peek": (ALONE, puts("causal", lambda i, j: j <= i + 1)),
    "causal-inverted": (ALONE, puts("causal", lambda i, j: j > i)),
    "causal-transposed": (ALONE, puts("causal", lambda i, j: j >= i)),
    "padding-all.off": (("both", "post"), sets("padding", "off")),
    "padding-cross.off": (("both", "post"), sets("padding", "off", kinds=["cross"])),
    "padding-encoder.rows": (("both", "post"), sets("padding", "rows", kinds=["encoder"])),
    "noresidual-all.all.all": (ALONE, puts("adds", lambda stack, layer, sub: False)),
    "noresidual-decoder.2.ffn": (ALONE, puts("adds", but("decoder", 1, "ffn"))),
    "nonorm-decoder.1.selfattn": (ALONE, puts("norms", but("decoder", 0, "self_attn"))),
    "nonorm-decoder.all.final": (("both", "decoder", "rotary"), sets("final", False, kinds=["decoder"])),
    "swapnorms-all": (("both", "decoder", "rotary"), sets("post", True)),
    "swapnorms-decoder": (("post",), sets("post", False, kinds=["decoder"])),
    "noffn-all.all": (ALONE, puts("feeds", lambda stack, layer: False)),
    "noffn-decoder.2": (ALONE, puts("feeds", lambda stack, layer: (stack, layer) != ("decoder", 1))),
    "embed-all.0p5": (ALONE, sets("embed", 0.5)),
    "embed-decoder.9": (ALONE, sets("embed", 9.0, kinds=["decoder"])),
    "heads-2": (TABLES, puts("heads", 2)),
    "heads-12": (TABLES, puts("heads", 12)),
}  # fmt: skip
"""By its text in an address: the models in which it is tried, and what it amounts to."""
