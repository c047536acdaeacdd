"""Each change of the wiring beside what it amounts to in `plain.Plain`, and models to make it in."""

import math

import numpy as np
import torch

from glassformer.extensions.what_if.interventions.layer_changes import drawn
from glassformer.extensions.what_if.interventions.score_changes import random_bias, random_features
from tests.extensions.what_if.interventions.plain import softmax
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
    "gated": {"gated": True, "activation": "silu", "n_kv_heads": 1, "pad_id": 0},
}  # fmt: skip
"""Kinds of models: what `tiny_config` takes."""

LENGTH = 12


def model_of(name, dtype=torch.float64):
    sizes = {"n_encoder_layers": 2, "n_decoder_layers": 2, "max_len": LENGTH}
    return tiny_model(dtype=dtype, **(sizes | MODELS[name]))


def always(value):
    return lambda _, here: value


def nothing(value, here):
    return value * 0


def on_head(n, change):
    """A change of one head alone."""
    return lambda value, here: change(value, here) if here.head == n else value


# How scores are made


def twice(weights, here):
    return softmax(weights, here.is_open, here.fill)


def twice_open(weights, here):
    return softmax(weights, np.ones_like(here.is_open), here.fill)


def dot(_, here):
    return here.q @ here.k.T


def general(_, here):
    d, state, shared = here.q.shape[1], here.plain.state, here.plain.c.n_heads // here.plain.c.n_kv_heads
    q_bias = state[f"{here.module}.q_proj.bias"].reshape(-1, d)[here.head]
    k_bias = state[f"{here.module}.k_proj.bias"].reshape(-1, d)[here.head // shared]
    return (here.q - q_bias) @ (here.k - k_bias).T * here.scale


def cosine(_, here):
    q, k = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in (here.q, here.k))
    return q @ k.T


def kernel(sigma):
    return lambda _, here: -((here.q[:, None] - here.k) ** 2).sum(-1) / 2 / sigma**2


def featured(n, seed):
    def product(_, here):
        directions = random_features(n, here.q.shape[1], seed).numpy()
        q, k = (
            np.exp(x @ directions.T - (x * x).sum(1, keepdims=True) / 2) / math.sqrt(n)
            for x in (here.q * math.sqrt(here.scale), here.k * math.sqrt(here.scale))
        )
        return np.log(q @ k.T)

    return product


def sloped(by):
    def added(scores, here):
        apart = abs(np.arange(scores.shape[0])[:, None] - np.arange(scores.shape[1]))
        return scores - by * 2 ** (-8 * (here.head + 1) / here.n_heads) * apart

    return added


def biased(size, seed):
    def added(keys, here):
        return keys + size * random_bias(here.site.removesuffix(".keys"), keys.shape[1], seed).numpy()

    return added


def half(x):
    return np.asarray(x).astype(np.float16).astype(np.float64)


def half_product(_, here):
    return half(half(half(here.q) @ half(here.k).T) * here.scale)


def half_softmax(fill):
    def weigh(_, here):
        with np.errstate(over="ignore"):
            scores = np.where(here.is_open, half(here.scores), half(fill))
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        return half(shares / shares.sum(-1, keepdims=True))

    return weigh


def projected(rows):
    """Linformer's attention for one query: the means of neighbouring open keys are weighed."""

    def weigh(_, here):
        found = np.zeros(here.scores.shape)
        for query, seen in enumerate(here.is_open):
            places = np.flatnonzero(seen)
            parts = np.arange(len(places)) * rows // max(len(places), rows)
            means = np.array([(parts == one) / (parts == one).sum() for one in sorted(set(parts))])
            shares = np.exp(means @ here.scores[query, places])
            found[query, places] = means.T @ (shares / shares.sum())
        return found

    return weigh


# What becomes of maps


def nearest(matrix, rank):
    left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
    return left[:, :rank] * sizes[:rank] @ right[:rank]


def near(rank):
    def maps(weights, here):
        found = np.where(weights == 0, 0, np.maximum(nearest(weights, rank), 0))
        sums, own = found.sum(-1, keepdims=True), weights.sum(-1, keepdims=True)
        return np.where(sums > 1e-6 * own, found / np.where(sums, sums, 1) * own, weights)

    return maps


def seen(condition):
    return lambda is_open, here: is_open & condition(here.i, here.j)


def near_by(i, j):
    return abs(i - j) < 2


def one_map(maps, here):
    return np.broadcast_to(maps.mean(0), maps.shape)


def alike(weights, here):
    return here.is_open / here.is_open.sum(-1, keepdims=True)


def best(weights, here):
    return np.eye(weights.shape[1])[np.where(here.is_open, weights, -1).argmax(-1)]


def at_temperature(t):
    """Weights of scores that are divided by t: their roots, normalised."""
    return lambda weights, here: weights ** (1 / t) / (weights ** (1 / t)).sum(-1, keepdims=True)


def normalised(row):
    return row / row.sum() if row.sum() else row


def muted(key, then=normalised):
    return lambda row, is_open: then(np.where(np.arange(len(row)) == key, 0.0, row))


def forced(key):
    return lambda row, is_open: np.eye(len(row))[key] if is_open[key : key + 1].any() else row


def given(*numbers, then=normalised):
    return lambda row, is_open: then(np.array([*numbers, *[0.0] * len(row)])[: len(row)] * is_open)


def rows(change, query=None):
    """A change of one row of a map, or of each."""

    def changed(weights, here):
        pairs = enumerate(zip(weights, here.is_open, strict=True))
        return np.array([change(*pair) if query in (None, i) else pair[0] for i, pair in pairs])

    return changed


def mean_so_far(output, here):
    return np.cumsum(output, 0) / np.arange(1, len(output) + 1)[:, None]


def mean_of_all(output, here):
    """Of an encoder: over all tokens that are read."""
    return np.broadcast_to(output[here.is_open[0]].mean(0), output.shape)


# What else is changed


def shuffled(among, seed):
    order = torch.randperm(among, generator=torch.Generator().manual_seed(seed)).tolist()
    return lambda place, here: int(place) // among * among + order[int(place) % among]


def blanking(blank):
    """A token whose embedding is 0."""
    return lambda x, here: x * (np.arange(len(x)) != blank)[:, None]


def dropping(rate, seed):
    return lambda x, here: x * (drawn(here.site, 0, x.shape[1], seed)[: len(x)].numpy() >= rate) / (1 - rate)


def in_bits(bits):
    def rounded(matrix, here):
        steps = abs(matrix).max(1, keepdims=True) / (2 ** (bits - 1) - 1)
        return np.round(matrix / steps) * steps

    return rounded


def of_rank(rank):
    return lambda matrix, here: nearest(matrix, rank)


def strongest(share):
    """The places of the largest, by counting."""
    return lambda sizes: sorted(range(len(sizes)), key=lambda place: -sizes[place])[: round(share * len(sizes))]


def leading(share):
    return lambda sizes: range(round(share * len(sizes)))


def neurons(chosen):
    """Neurons that stay, of those whose matrices have such squares."""

    def cut(activation, here):
        stack, layer, *_ = here.site.split(".")
        before, gate, after = (
            here.plain.state.get(f"{stack}.layers.{layer}.ffn.{name}.weight", np.zeros((1, 1))) ** 2
            for name in ("up_proj", "gate_proj", "down_proj")
        )
        stay = chosen((before.sum(1) + gate.sum(1)) * after.sum(0))
        return activation * np.isin(np.arange(activation.shape[1]), [*stay])

    return cut


def dimensions(chosen, one, other):
    """Dimensions of each head that stay, by two of its matrices; heads that share keys stay together."""

    def cut(values, here):
        c, width = here.plain.c, here.plain.c.d_head
        sizes = 1.0
        for name in (one, other):
            squares = here.plain.state[f"{here.module}.{name}.weight"] ** 2
            squares = squares.sum(0 if name == "out_proj" else 1)
            sizes = sizes * squares.reshape(c.n_kv_heads, -1, width).sum(1)  # [G, d]
        stays = np.array([np.isin(range(width), [*chosen(group)]) for group in sizes])
        return values * stays.repeat(values.shape[1] // width // c.n_kv_heads, 0).ravel()

    return cut


def narrower(chosen):
    return (
        ("*_attn.queries", dimensions(chosen, "q_proj", "k_proj")),
        ("*_attn.keys", dimensions(chosen, "q_proj", "k_proj")),
        ("*_attn.values", dimensions(chosen, "v_proj", "out_proj")),
    )


ALONE = ("both", "post", "decoder", "rotary", "alibi")
EVERY = (*ALONE, "encoder")
TABLES = ("both", "post", "decoder")
BOTH = ("both", "post")
READS = (*BOTH, "encoder")
SIZED = ("post", "both", "rotary", "encoder", "alibi", "decoder", "gated")

CASES = {
    "scale-all.off.1": (EVERY, ("*_attn.scale", always(1.0))),
    "scale-decoder.model.1": (ALONE, ("decoder.*.self_attn.scale", always(1 / math.sqrt(12)))),
    "scale-all.number.0p3": (ALONE, ("*_attn.scale", always(0.3))),
    "twice-all.1": (EVERY, ("*.softmax", twice)),
    "twice-all.0": (ALONE, ("*.softmax", twice_open)),
    "fill-all.m1": (EVERY, ("*.fill", always(-1.0))),
    "fill-all.m1e9": (ALONE, ("*.fill", always(-1e9))),
    "unguarded-all": (ALONE,),
    "unplaced-all": ((*TABLES, "alibi"), ("*.strength", nothing)),
    "unplaced-decoder": (("rotary",), ("decoder.place", nothing)),
    "shift-all.3": (EVERY, ("*.place", lambda place, here: place + 3)),
    "shift-decoder.m2": (ALONE, ("decoder.place", lambda place, here: place - 2)),
    "stretch-decoder.2p5": ((*TABLES, "alibi"), ("decoder.strength", lambda by, here: by * 2.5)),
    "stretch-all.0p5": (("rotary",), ("*.place", lambda place, here: place / 2)),
    "misplaced-all.3.4": (EVERY, ("*.place", shuffled(4, 3))),
    "causal-off": (ALONE, ("causal", lambda is_open, here: is_open | True)),
    "causal-hidden": (ALONE, ("causal", lambda _, here: here.j < here.i)),
    "causal-peek": (ALONE, ("causal", lambda _, here: here.j <= here.i + 1)),
    "causal-inverted": (ALONE, ("causal", lambda _, here: here.j > here.i)),
    "causal-transposed": (ALONE, ("causal", lambda _, here: here.j >= here.i)),
    "padding-all.off": (READS, ("*.padding", always("off"))),
    "padding-cross.off": (BOTH, ("*.cross_attn.padding", always("off"))),
    "padding-encoder.rows": (READS, ("encoder.*.padding", always("rows"))),
    "noresidual-all.all.all": (EVERY, ("*.added", always(False))),
    "noresidual-decoder.2.ffn": (ALONE, ("decoder.1.ffn.added", always(False))),
    "nonorm-decoder.1.selfattn": (ALONE, ("decoder.0.self_attn.normed", always(False))),
    "nonorm-decoder.all.final": (("both", "decoder", "rotary"), ("decoder.final", always(False))),
    "swapnorms-all": (("both", "decoder", "rotary"), ("*.post", always(True))),
    "swapnorms-decoder": (("post",), ("decoder.post", always(False))),
    "noffn-all.all": (EVERY, ("*.ffn.output", nothing)),
    "noffn-decoder.2": (ALONE, ("decoder.1.ffn.output", nothing)),
    "embed-all.0p5": (EVERY, ("*coder.scale", always(0.5))),
    "embed-decoder.9": (ALONE, ("decoder.scale", always(9.0))),
    "heads-2": (TABLES, ("heads", always((2, 2)))),
    "heads-12": (TABLES, ("heads", always((12, 12)))),
    "similar-all.all.all.dot.2": (EVERY, ("*.product", dot)),
    "similar-decoder.2.1.general.2": (TABLES, ("decoder.1.self_attn.product", on_head(0, general))),
    "similar-all.all.all.general.2": (TABLES, ("*.product", general)),
    "similar-decoder.1.2.cosine.2": (ALONE, ("decoder.0.self_attn.product", on_head(1, cosine))),
    "similar-all.all.all.kernel.1p5": (EVERY, ("*.product", kernel(1.5))),
    "features-all.30.5": (EVERY, ("*.product", featured(30, 5))),
    "alibi-all.1": (TABLES, ("*.self_attn.scores", sloped(1))),
    "alibi-decoder.3": (ALONE, ("decoder.*.self_attn.scores", sloped(3))),
    "keybias-all.3.1": (EVERY, ("*.keys", biased(3, 1))),
    "rank-all.2": (EVERY, ("*.softmax", near(2))),
    "rank-encoder.1": (BOTH, ("encoder.*.softmax", near(1))),
    "window-all.1": (EVERY, ("*.self_attn.open", seen(near_by))),
    "window-cross.1": (BOTH, ("*.cross_attn.open", seen(near_by))),
    "dilated-decoder.2.2": (ALONE, (
        "decoder.*.self_attn.open", seen(lambda i, j: np.isin(abs(i - j), (0, 2, 4))))),
    "global-all.1.1": (EVERY, ("*.self_attn.open", seen(lambda i, j: near_by(i, j) | (i == 0) | (j == 0)))),
    "dropout-0p2.3": (EVERY, ("*.output", dropping(0.2, 3))),
    "bits-8": (EVERY, ("matrix *", in_bits(8))),
    "bits-4": (EVERY, ("matrix *", in_bits(4))),
    "projected-all.2": (EVERY, ("*.softmax", projected(2))),
    "projected-all.99": (EVERY, ("*.softmax", projected(99))),
    "projected-decoder.3": (ALONE, ("decoder.*.self_attn.softmax", projected(3))),
    "half-all.m1e9": (EVERY, ("*.product", half_product), ("*.softmax", half_softmax(-1e9))),
    "half-decoder.m1": (ALONE, ("decoder.*.self_attn.product", half_product),
                        ("decoder.*.self_attn.softmax", half_softmax(-1))),
    "miswired-all.all.onemap": (EVERY, ("*.maps", one_map)),
    "miswired-decoder.all.onemap": (ALONE, ("decoder.*.maps", one_map)),
    "zero-encoder.1.3": (READS, ("encoder.0.self_attn.written", on_head(2, nothing))),
    "zero-decoder.2.1": (ALONE, ("decoder.1.self_attn.written", on_head(0, nothing))),
    "zero-cross.2.4": (BOTH, ("decoder.1.cross_attn.written", on_head(3, nothing))),
    "mean-encoder.all.2": (READS, ("encoder.*.written", on_head(1, mean_of_all))),
    "mean-decoder.1.all": (ALONE, ("decoder.0.self_attn.written", mean_so_far)),
    "mean-cross.2.3": (BOTH, ("decoder.1.cross_attn.written", on_head(2, mean_so_far))),
    "uniform-encoder.1.all": (READS, ("encoder.0.self_attn.weights", alike)),
    "uniform-decoder.all.1": (ALONE, ("decoder.*.self_attn.weights", on_head(0, alike))),
    "uniform-cross.all.all": (BOTH, ("*.cross_attn.weights", alike)),
    "temper-encoder.2.2.7": (READS, ("encoder.1.self_attn.weights", on_head(1, at_temperature(7)))),
    "temper-decoder.1.all.0p3": (ALONE, ("decoder.0.self_attn.weights", at_temperature(0.3))),
    "temper-cross.all.2.0": (BOTH, ("*.cross_attn.weights", on_head(1, best))),
    "temper-decoder.2.all.0": (ALONE, ("decoder.1.self_attn.weights", best)),
    "skip-encoder.1.whole": (READS, ("encoder.0.*.skipped", always(True))),
    "skip-decoder.2.self": (ALONE, ("decoder.1.self_attn.skipped", always(True))),
    "skip-decoder.all.cross": (BOTH, ("*.cross_attn.skipped", always(True))),
    "skip-decoder.1.ffn": (ALONE, ("decoder.0.ffn.skipped", always(True))),
    "mute-encoder.2.3.4.2.1": (READS, ("encoder.1.self_attn.weights", on_head(2, rows(muted(1), 3)))),
    "mute-decoder.all.all.all.1.1": (ALONE, ("decoder.*.self_attn.weights", rows(muted(0)))),
    "mute-cross.2.all.all.4.0": (BOTH, ("decoder.1.cross_attn.weights", rows(muted(3, then=np.array)))),
    "force-encoder.all.2.3.1": (READS, ("encoder.*.weights", on_head(1, rows(forced(0), 2)))),
    "force-encoder.1.all.all.6": (READS, ("encoder.0.self_attn.weights", rows(forced(5)))),
    "force-decoder.2.all.all.3": (ALONE, ("decoder.1.self_attn.weights", rows(forced(2)))),
    "force-cross.1.1.4.2": (BOTH, ("decoder.0.cross_attn.weights", on_head(0, rows(forced(1), 3)))),
    "weigh-encoder.2.2.3.0p5~0~2~0~1.1": (READS, (
        "encoder.1.self_attn.weights", on_head(1, rows(given(0.5, 0, 2, 0, 1), 2)))),
    "weigh-decoder.1.all.3.1~1~1~1.1": (ALONE, ("decoder.0.self_attn.weights", rows(given(1, 1, 1, 1), 2))),
    "weigh-cross.all.1.all.0p5~0~2.0": (BOTH, (
        "*.cross_attn.weights", on_head(0, rows(given(0.5, 0, 2, then=np.array))))),
    "blank-2": (READS, ("encoder.embedding.tokens", blanking(1))),
    "blank-3": (("decoder", "rotary", "alibi"), ("decoder.embedding.tokens", blanking(2))),
    "neuron-all.2.1_neuron-all.2.7": (SIZED, ("*.1.ffn.activation", neurons(lambda sizes: {*range(20)} - {0, 6}))),
    "width-all.all.ffn.0p3.strongest.0": (SIZED, ("*.ffn.activation", neurons(strongest(0.3)))),
    "width-all.all.ffn.0p25.first.0": (SIZED, ("*.ffn.activation", neurons(leading(0.25)))),
    "width-all.all.ffn.1.random.0": (EVERY,),
    "width-all.all.heads.0p67.strongest.0": (SIZED, *narrower(strongest(0.67))),
    "width-all.all.heads.0p5.first.0": (SIZED, *narrower(leading(0.5))),
    "width-all.all.heads.1.strongest.0": (EVERY,),
    "ffrank-all.all.3": (SIZED, ("matrix *.ffn.*_proj.weight", of_rank(3))),
    "ffrank-all.all.99": (EVERY,),
}  # fmt: skip
"""By its text in an address: the models in which it is tried, and what it amounts to: sites, and changes there."""

UNCUT = dict.fromkeys(("width-all.all.ffn.1.random.0", "width-all.all.heads.1.strongest.0", "ffrank-all.all.99"), EVERY)
INERT = UNCUT | {
    "projected-all.99": EVERY,  # a row for each key
    **dict.fromkeys(("unguarded-all", "fill-all.m1e9"), EVERY),  # no row is closed throughout
    **dict.fromkeys(("shift-all.3", "shift-decoder.m2"), ("rotary", "alibi")),  # distances stay
    "keybias-all.3.1": ("both", "post", "decoder", "alibi", "encoder"),  # only rotary positions turn keys
    "force-encoder.1.all.all.6": READS,  # padding, which no query may see
}
"""Changes that change nothing by law, and in which models."""
