"""Each change of the wiring beside what it amounts to in `plain.Wires`, and models to make it in."""

import math

import numpy as np
import torch

from glassformer.extensions.what_if.interventions.layer_changes import drawn
from glassformer.extensions.what_if.interventions.score_changes import random_bias, random_features
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


def similarity(function, *, where=("encoder", "decoder", "cross"), layers=(0, 1), heads=range(12)):
    """A function that has heads compare queries and keys otherwise: of the model, a name, q, k, head and scale."""

    def wire(wires):
        chosen = {(kind, layer, head): function for kind in where for layer in layers for head in heads}
        wires.similar = {**wires.similar, **chosen}

    return wire


def general(plain, name, q, k, head, scale):
    d, shared = len(q), plain.c.n_heads // plain.c.n_kv_heads
    q_bias = plain.state[f"{name}.q_proj.bias"][head * d : (head + 1) * d]
    k_bias = plain.state[f"{name}.k_proj.bias"][head // shared * d : (head // shared + 1) * d]
    return ((q - q_bias) * (k - k_bias)).sum() * scale


def cosine(plain, name, q, k, head, scale):
    return q @ k / math.sqrt(q @ q) / math.sqrt(k @ k)


def featured(n, seed):
    def product(plain, name, q, k, head, scale):
        directions = random_features(n, len(q), seed).numpy()
        q, k = q * math.sqrt(scale), k * math.sqrt(scale)
        features = [np.exp(directions @ x) * math.exp(-(x @ x) / 2) / math.sqrt(n) for x in (q, k)]
        return math.log(features[0] @ features[1])

    return product


def sloped(by):
    return lambda head, n, i, j: -by * 2 ** (-8 * (head + 1) / n) * abs(i - j)


def biased(size, seed):
    return sets("keys", lambda site, key: key + size * random_bias(site, len(key), seed).numpy())


def near(rank):
    def nearest(plain, weights, is_open, fill):
        left, sizes, right = np.linalg.svd(weights)
        sizes[rank:] = 0
        found = sum(s * np.outer(left[:, i], right[i]) for i, s in enumerate(sizes))
        found = np.where(weights == 0, 0, np.maximum(found, 0))
        rows = [
            row / row.sum() * own.sum() if row.sum() > 1e-6 * own.sum() else own
            for row, own in zip(found, weights, strict=True)
        ]
        return np.array(rows)

    return nearest


def in_bits(bits):
    most = 2 ** (bits - 1) - 1

    def rounded(rows):
        rows = np.atleast_2d(rows)
        return np.array([np.round(row / (abs(row).max() / most)) * (abs(row).max() / most) for row in rows])

    def wire(wires):
        wires.matrix = lambda name, matrix: rounded(matrix)
        wires.vectors = lambda row: rounded(row)[0]

    return wire


def soft(row, *, kinds=("encoder", "decoder", "cross")):
    """A function that weighs each row of scores otherwise; of the row and what is open."""

    def weigh(scores, is_open):
        return np.array([row(*pair) for pair in zip(scores, is_open, strict=True)])

    return sets("soft", weigh, kinds=kinds)


def by_rows(matrix):
    """Linformer's attention for one query: E [r, n] of its open keys, of their number and places."""

    def row(scores, is_open):
        found, places = np.zeros(len(scores)), np.flatnonzero(is_open)
        projection = matrix(places)
        shares = np.exp(projection @ scores[places])
        found[places] = projection.T @ (shares / shares.sum())
        return found

    return row


def neighbours(rows):
    def matrix(places):
        parts = np.arange(len(places)) * rows // max(len(places), rows)
        return np.array([(parts == one) / (parts == one).sum() for one in sorted(set(parts))])

    return matrix


def half(x):
    return np.asarray(x).astype(np.float16).astype(np.float64)


def half_softmax(fill):
    def row(scores, is_open):
        with np.errstate(over="ignore"):
            scores = np.where(is_open, half(scores), half(fill))
        shares = np.exp(scores - scores.max())
        return half(shares / shares.sum())

    return row


def in_half(fill, *, where=("encoder", "decoder", "cross")):
    def wire(wires):
        product = similarity(lambda plain, name, q, k, head, scale: half(half(half(q) @ half(k)) * scale), where=where)
        product(wires)
        soft(half_softmax(fill), kinds=where)(wires)

    return wire


def one_map(maps):
    return np.broadcast_to(maps.mean(0), maps.shape)


def dropping(rate, seed):
    def drops(site, place, vector):
        if site.endswith("tokens"):
            return vector
        numbers = drawn(site, place // 32, len(vector), seed)[place % 32].numpy()
        return vector * (numbers >= rate) / (1 - rate)

    return puts("drops", drops)


def blanking(blank, stack):
    """A token whose embedding is 0."""
    return puts("drops", lambda site, place, x: x * ((site, place) != (f"{stack}.embedding.tokens", blank)))


def at_heads(name, kind, change, *, layers=(0, 1), heads=range(4)):
    """A function that changes the weights (`rows`) or the output (`writes`) of some heads."""

    def here(values, is_open, layer, head):
        return change(values, is_open) if layer in layers and head in heads else values

    return appends(name, here, kinds=[kind])


def mean_so_far(output, is_open):
    return np.cumsum(output, 0) / np.arange(1, len(output) + 1)[:, None]


def mean_of_all(output, is_open):
    """Of an encoder: over all tokens that are read."""
    return np.broadcast_to(output[is_open[0]].mean(0), output.shape)


def alike(weights, is_open):
    return is_open / is_open.sum(-1, keepdims=True)


def best(weights, is_open):
    return np.eye(weights.shape[1])[np.where(is_open, weights, -1).argmax(-1)]


def at_temperature(t):
    """Weights of scores that are divided by t: their roots, normalised."""
    return lambda weights, is_open: weights ** (1 / t) / (weights ** (1 / t)).sum(-1, keepdims=True)


def normalised(row):
    return row / row.sum() if row.sum() else row


def muted(key, then=normalised):
    def row(weights, is_open):
        return then(np.where(np.arange(len(weights)) == key, 0.0, weights))

    return row


def forced(key):
    return lambda weights, is_open: np.eye(len(weights))[key] if is_open[key : key + 1].any() else weights


def given(*numbers, then=normalised):
    def row(weights, is_open):
        return then(np.array([*numbers, *[0.0] * len(weights)])[: len(weights)] * is_open)

    return row


def each_row(change, queries=range(99)):
    """A change of some rows of a map."""

    def rows(weights, is_open):
        found = [change(*row) if i in queries else row[0] for i, row in enumerate(zip(weights, is_open, strict=True))]
        return np.array(found)

    return rows


ALONE = ("both", "post", "decoder", "rotary", "alibi")
EVERY = (*ALONE, "encoder")
TABLES = ("both", "post", "decoder")
BOTH = ("both", "post")
READS = (*BOTH, "encoder")

CASES = {
    "scale-all.off.1": (EVERY, sets("scale", 1.0)),
    "scale-decoder.model.1": (ALONE, sets("scale", 1 / math.sqrt(12), kinds=["decoder"])),
    "scale-all.number.0p3": (ALONE, sets("scale", 0.3)),
    "twice-all.1": (EVERY, appends("weigh", twice)),
    "twice-all.0": (ALONE, appends("weigh", twice_open)),
    "fill-all.m1": (EVERY, sets("fill", -1.0)),
    "fill-all.m1e9": (ALONE, sets("fill", -1e9)),
    "unguarded-all": (ALONE, lambda wires: None),
    "unplaced-all": ((*TABLES, "alibi"), stretches(0.0)),
    "unplaced-decoder": (("rotary",), moves(lambda p: 0)),
    "shift-all.3": (EVERY, moves(lambda p: p + 3)),
    "shift-decoder.m2": (ALONE, moves(lambda p: p - 2, kinds=["decoder"])),
    "stretch-decoder.2p5": ((*TABLES, "alibi"), stretches(2.5, kinds=["decoder"])),
    "stretch-all.0p5": (("rotary",), moves(lambda p: p / 2)),
    "misplaced-all.3.4": (EVERY, moves(shuffled(4, 3))),
    "causal-off": (ALONE, puts("causal", lambda i, j: True)),
    "causal-hidden": (ALONE, puts("causal", lambda i, j: j < i)),
    "causal-peek": (ALONE, puts("causal", lambda i, j: j <= i + 1)),
    "causal-inverted": (ALONE, puts("causal", lambda i, j: j > i)),
    "causal-transposed": (ALONE, puts("causal", lambda i, j: j >= i)),
    "padding-all.off": (("both", "post", "encoder"), sets("padding", "off")),
    "padding-cross.off": (("both", "post"), sets("padding", "off", kinds=["cross"])),
    "padding-encoder.rows": (("both", "post", "encoder"), sets("padding", "rows", kinds=["encoder"])),
    "noresidual-all.all.all": (EVERY, puts("adds", lambda stack, layer, sub: False)),
    "noresidual-decoder.2.ffn": (ALONE, puts("adds", but("decoder", 1, "ffn"))),
    "nonorm-decoder.1.selfattn": (ALONE, puts("norms", but("decoder", 0, "self_attn"))),
    "nonorm-decoder.all.final": (("both", "decoder", "rotary"), sets("final", False, kinds=["decoder"])),
    "swapnorms-all": (("both", "decoder", "rotary"), sets("post", True)),
    "swapnorms-decoder": (("post",), sets("post", False, kinds=["decoder"])),
    "noffn-all.all": (EVERY, puts("feeds", lambda stack, layer: False)),
    "noffn-decoder.2": (ALONE, puts("feeds", lambda stack, layer: (stack, layer) != ("decoder", 1))),
    "embed-all.0p5": (EVERY, sets("embed", 0.5)),
    "embed-decoder.9": (ALONE, sets("embed", 9.0, kinds=["decoder"])),
    "heads-2": (TABLES, puts("heads", 2)),
    "heads-12": (TABLES, puts("heads", 12)),
    "similar-all.all.all.dot.2": (EVERY, similarity(lambda plain, name, q, k, head, scale: q @ k)),
    "similar-decoder.2.1.general.2": (TABLES, similarity(general, where=["decoder"], layers=[1], heads=[0])),
    "similar-all.all.all.general.2": (TABLES, similarity(general)),
    "similar-decoder.1.2.cosine.2": (ALONE, similarity(cosine, where=["decoder"], layers=[0], heads=[1])),
    "similar-all.all.all.kernel.1p5": (EVERY, similarity(
        lambda plain, name, q, k, head, scale: -((q - k) @ (q - k)) / 2 / 1.5**2)),
    "features-all.30.5": (EVERY, similarity(featured(30, 5))),
    "alibi-all.1": (TABLES, sets("added", sloped(1), kinds=["encoder", "decoder"])),
    "alibi-decoder.3": (ALONE, sets("added", sloped(3), kinds=["decoder"])),
    "keybias-all.3.1": (EVERY, biased(3, 1)),
    "rank-all.2": (EVERY, appends("weigh", near(2))),
    "rank-encoder.1": (("both", "post"), appends("weigh", near(1), kinds=["encoder"])),
    "window-all.1": (EVERY, appends("patterns", lambda i, j: abs(i - j) < 2, kinds=["encoder", "decoder"])),
    "window-cross.1": (("both", "post"), appends("patterns", lambda i, j: abs(i - j) < 2, kinds=["cross"])),
    "dilated-decoder.2.2": (ALONE, appends("patterns", lambda i, j: abs(i - j) in (0, 2, 4), kinds=["decoder"])),
    "global-all.1.1": (EVERY, appends("patterns", lambda i, j: abs(i - j) < 2 or i == 0 or j == 0,
                                      kinds=["encoder", "decoder"])),
    "dropout-0p2.3": (EVERY, dropping(0.2, 3)),
    "bits-8": (EVERY, in_bits(8)),
    "bits-4": (EVERY, in_bits(4)),
    "projected-all.2": (EVERY, soft(by_rows(neighbours(2)))),
    "projected-all.99": (EVERY, soft(by_rows(neighbours(99)))),
    "projected-decoder.3": (ALONE, soft(by_rows(neighbours(3)), kinds=["decoder"])),
    "half-all.m1e9": (EVERY, in_half(-1e9)),
    "half-decoder.m1": (ALONE, in_half(-1, where=["decoder"])),
    "miswired-all.all.onemap": (EVERY, sets("maps", one_map)),
    "miswired-decoder.all.onemap": (ALONE, sets("maps", one_map, kinds=["decoder"])),
    "zero-encoder.1.3": (READS, at_heads("writes", "encoder", lambda x, _: x * 0, layers=[0], heads=[2])),
    "zero-decoder.2.1": (ALONE, at_heads("writes", "decoder", lambda x, _: x * 0, layers=[1], heads=[0])),
    "zero-cross.2.4": (BOTH, at_heads("writes", "cross", lambda x, _: x * 0, layers=[1], heads=[3])),
    "mean-encoder.all.2": (READS, at_heads("writes", "encoder", mean_of_all, heads=[1])),
    "mean-decoder.1.all": (ALONE, at_heads("writes", "decoder", mean_so_far, layers=[0])),
    "mean-cross.2.3": (BOTH, at_heads("writes", "cross", mean_so_far, layers=[1], heads=[2])),
    "uniform-encoder.1.all": (READS, at_heads("rows", "encoder", alike, layers=[0])),
    "uniform-decoder.all.1": (ALONE, at_heads("rows", "decoder", alike, heads=[0])),
    "uniform-cross.all.all": (BOTH, at_heads("rows", "cross", alike)),
    "temper-encoder.2.2.7": (READS, at_heads("rows", "encoder", at_temperature(7), layers=[1], heads=[1])),
    "temper-decoder.1.all.0p3": (ALONE, at_heads("rows", "decoder", at_temperature(0.3), layers=[0])),
    "temper-cross.all.2.0": (BOTH, at_heads("rows", "cross", best, heads=[1])),
    "temper-decoder.2.all.0": (ALONE, at_heads("rows", "decoder", best, layers=[1])),
    "skip-encoder.1.whole": (READS, puts("skips", lambda stack, layer, sub: (stack, layer) == ("encoder", 0))),
    "skip-decoder.2.self": (ALONE, puts("skips", lambda *place: place == ("decoder", 1, "self_attn"))),
    "skip-decoder.all.cross": (BOTH, puts("skips", lambda stack, layer, sub: sub == "cross_attn")),
    "skip-decoder.1.ffn": (ALONE, puts("skips", lambda *place: place == ("decoder", 0, "ffn"))),
    "mute-encoder.2.3.4.2.1": (READS, at_heads("rows", "encoder", each_row(muted(1), [3]), layers=[1], heads=[2])),
    "mute-decoder.all.all.all.1.1": (ALONE, at_heads("rows", "decoder", each_row(muted(0)))),
    "mute-cross.2.all.all.4.0": (BOTH, at_heads("rows", "cross", each_row(muted(3, then=np.array)), layers=[1])),
    "force-encoder.all.2.3.1": (READS, at_heads("rows", "encoder", each_row(forced(0), [2]), heads=[1])),
    "force-encoder.1.all.all.6": (READS, at_heads("rows", "encoder", each_row(forced(5)), layers=[0])),
    "force-decoder.2.all.all.3": (ALONE, at_heads("rows", "decoder", each_row(forced(2)), layers=[1])),
    "force-cross.1.1.4.2": (BOTH, at_heads("rows", "cross", each_row(forced(1), [3]), layers=[0], heads=[0])),
    "weigh-encoder.2.2.3.0p5~0~2~0~1.1": (READS, at_heads(
        "rows", "encoder", each_row(given(0.5, 0, 2, 0, 1), [2]), layers=[1], heads=[1])),
    "weigh-decoder.1.all.3.1~1~1~1.1": (ALONE, at_heads(
        "rows", "decoder", each_row(given(1, 1, 1, 1), [2]), layers=[0])),
    "weigh-cross.all.1.all.0p5~0~2.0": (BOTH, at_heads(
        "rows", "cross", each_row(given(0.5, 0, 2, then=np.array)), heads=[0])),
    "blank-2": (("both", "post", "encoder"), blanking(1, "encoder")),
    "blank-3": (("decoder", "rotary", "alibi"), blanking(2, "decoder")),
}  # fmt: skip
"""By its text in an address: the models in which it is tried, and what it amounts to."""

INERT = {
    "projected-all.99": EVERY,  # a row for each key
    **dict.fromkeys(("unguarded-all", "fill-all.m1e9"), EVERY),  # no row is closed throughout
    **dict.fromkeys(("shift-all.3", "shift-decoder.m2"), ("rotary", "alibi")),  # distances stay
    "keybias-all.3.1": ("both", "post", "decoder", "alibi", "encoder"),  # only rotary positions turn keys
    "force-encoder.1.all.all.6": READS,  # padding, which no query may see
}
"""Changes that change nothing by law, and in which models."""
