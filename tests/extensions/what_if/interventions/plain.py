"""A Transformer written once more in NumPy, token by token and head by head, with its wiring in plain sight.

It takes a config and a table of parameters, and nothing of the model's code. What an intervention changes is an
attribute of `Wires` here; a test sets it by hand and compares.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


def every(value: Any) -> Any:
    """The same for each attention or stack."""
    return dict.fromkeys(("encoder", "decoder", "cross"), value)


def lists() -> dict[str, list[Any]]:
    """Nothing yet, for each attention."""
    return {name: [] for name in ("encoder", "decoder", "cross")}


@dataclass
class Wires:
    """What can be wired otherwise; by attention, or by stack, where it is a table.

    Attributes:
        embed: What token embeddings are multiplied by; None: as the config says.
        place: Where a token stands, by its place.
        strength: What vectors of positions or a bias are multiplied by.
        causal: Whether query i of the decoder sees key j.
        patterns: Further conditions on i and j, each of which has to hold.
        padding: "columns", "rows" or "off".
        scale: What q . k is multiplied by; None: as the config says.
        similar: Instead of q . k times the scale, by attention, layer and head.
        keys: What happens to keys, all heads' in a row, before they are turned.
        added: What is added to a score, of layer, head, number of heads, i and j.
        fill: What closed scores are; None: as the config says; "-inf" with a guard otherwise.
        weigh: What happens to weights [Q, K] after the softmax, in order; of weights and of what is open.
        rows: What happens to them after that: of weights, of what is open, of the layer and the head.
        writes: What happens to what a head writes [Q, d]; of that, of what is open, of the layer and the head.
        heads: How many there are; None: as the config says.
        adds, norms: Whether the stream is added, and whether there is a norm, by stack, layer and sub-layer.
        skips: Whether a sub-layer is skipped with all around it, by the same.
        post: Whether norms stand after the sum, by stack; None: as the config says.
        feeds: Whether feed-forward writes, by stack and layer.
        final: Whether there is a final norm, by stack.
        matrix: What a matrix is instead, by its name.
        vectors: What vectors of embeddings are instead.
        soft: What weighs scores instead of the softmax; of scores and of what is open [Q, K].
        maps: What becomes of all heads' maps of an attention [H, Q, K].
        drops: What is made of what a place writes, by site, place and vector.
    """

    embed: dict[str, float | None] = field(default_factory=lambda: every(None))
    place: dict[str, Callable[[int], float]] = field(default_factory=lambda: every(lambda p: p))
    strength: dict[str, float] = field(default_factory=lambda: every(1.0))
    causal: Callable[[int, int], bool] = lambda i, j: j <= i
    patterns: dict[str, list[Callable[[int, int], bool]]] = field(default_factory=lists)
    padding: dict[str, str] = field(default_factory=lambda: every("columns"))
    scale: dict[str, float | None] = field(default_factory=lambda: every(None))
    similar: dict[tuple[str, int, int], Callable[..., float]] = field(default_factory=dict)
    keys: dict[str, Callable[[str, np.ndarray], np.ndarray]] = field(
        default_factory=lambda: every(lambda site, key: key)
    )
    added: dict[str, Callable[[int, int, int, int], float]] = field(
        default_factory=lambda: every(lambda head, n, i, j: 0.0)
    )
    fill: dict[str, float | None] = field(default_factory=lambda: every(None))
    weigh: dict[str, list[Callable[..., np.ndarray]]] = field(default_factory=lists)
    rows: dict[str, list[Callable[..., np.ndarray]]] = field(default_factory=lists)
    writes: dict[str, list[Callable[..., np.ndarray]]] = field(default_factory=lists)
    heads: int | None = None
    adds: Callable[[str, int, str], bool] = lambda stack, layer, sub: True
    norms: Callable[[str, int, str], bool] = lambda stack, layer, sub: True
    skips: Callable[[str, int, str], bool] = lambda stack, layer, sub: False
    post: dict[str, bool | None] = field(default_factory=lambda: every(None))
    feeds: Callable[[str, int], bool] = lambda stack, layer: True
    final: dict[str, bool] = field(default_factory=lambda: every(True))
    matrix: Callable[[str, np.ndarray], np.ndarray] = lambda name, matrix: matrix
    soft: dict[str, Callable[..., np.ndarray] | None] = field(default_factory=lambda: every(None))
    maps: dict[str, Callable[[np.ndarray], np.ndarray]] = field(default_factory=lambda: every(lambda maps: maps))
    vectors: Callable[[np.ndarray], np.ndarray] = lambda rows: rows
    drops: Callable[[str, int, np.ndarray], np.ndarray] = lambda site, place, vector: vector


class Plain:
    """`Plain(model, wires).log_probs(src, tgt)`: of the piece after `tgt`."""

    def __init__(self, model, wires):
        self.c, self.w = model.config, wires
        self.maps = {}  # of the last reading, by place: [H, Q, K]
        self.state = {name: value.double().numpy() for name, value in model.state_dict().items()}
        self.tables = {
            name: getattr(model, name).embedding.positions.table.double().numpy()
            for name in ("encoder", "decoder")
            if hasattr(model, name) and model.config.positions in ("sinusoidal", "learned")
        }

    def log_probs(self, src, tgt):
        """Of a decoder [V]."""
        memory = self.memory(src) if self.c.n_encoder_layers else None
        x = self.stack("decoder", tgt, memory, src)[-1]
        logits = self.w.matrix("output", self.state[self.output_table()]) @ x
        return logits - logits.max() - math.log(np.exp(logits - logits.max()).sum())

    def memory(self, src):
        """Of an encoder [S, D]."""
        return self.stack("encoder", src, None, src)

    def output_table(self):
        own = "src_table" if self.c.shared_vocab else "tgt_table"
        return own if self.c.tie_output else "output_table"

    def stack(self, name, ids, memory, src):
        n_layers = self.c.n_encoder_layers if name == "encoder" else self.c.n_decoder_layers
        x = self.embed(name, ids)
        for layer in range(n_layers):
            x = self.layer(name, layer, x, ids, memory, src)
        if self.c.final_norm and self.w.final[name]:
            x = self.norm(x, f"{name}.final_norm")
        return x

    def embed(self, name, ids):
        c, w = self.c, self.w
        table = "src_table" if c.shared_vocab or name == "encoder" else "tgt_table"
        scale = math.sqrt(c.d_model) if c.scale_embedding else 1.0
        scale = scale if w.embed[name] is None else w.embed[name]
        vectors = []
        for place, piece in enumerate(ids):
            x = w.drops(f"{name}.embedding.tokens", place, w.vectors(self.state[table][piece]) * scale)
            if name in self.tables:
                rows = self.tables[name]
                row = rows[int(w.place[name](place)) % len(rows)]
                x = x + (w.vectors(row) if c.positions == "learned" else row) * w.strength[name]
            vectors.append(w.drops(f"{name}.embedding.output", place, x))
        return np.array(vectors)

    def layer(self, name, layer, x, ids, memory, src):
        def own(y):
            return self.attention(name, layer, f"{name}.layers.{layer}.self_attn", y, y, ids, ids)

        def cross(y):
            return self.attention("cross", layer, f"decoder.layers.{layer}.cross_attn", y, memory, ids, src)

        def feed(y):
            return self.feed_forward(f"{name}.layers.{layer}.ffn", y) * self.w.feeds(name, layer)

        x = self.sublayer(name, layer, "self_attn", x, own)
        if name == "decoder" and memory is not None:
            x = self.sublayer(name, layer, "cross_attn", x, cross)
        return self.sublayer(name, layer, "ffn", x, feed)

    def sublayer(self, name, layer, sub, x, function):
        w, norm = self.w, f"{name}.layers.{layer}.{sub}_residual.norm"
        normed = w.norms(name, layer, sub)
        post = self.c.norm == "post" if w.post[name] is None else w.post[name]
        made = function(self.norm(x, norm) if normed and not post else x)
        made = np.array([w.drops(f"{name}.{layer}.{sub}.output", place, one) for place, one in enumerate(made)])
        if w.skips(name, layer, sub):
            return x
        total = x + made if w.adds(name, layer, sub) else made
        return self.norm(total, norm) if normed and post else total

    def norm(self, x, name):
        gamma, eps = self.state[f"{name}.weight"], self.c.norm_eps
        rows = []
        for row in x:
            if self.c.norm_kind == "rms":
                rows.append(gamma * row / math.sqrt((row**2).mean() + eps))
            else:
                centred = row - row.mean()
                rows.append(gamma * centred / math.sqrt((centred**2).mean() + eps) + self.state[f"{name}.bias"])
        return np.array(rows)

    def linear(self, x, name):
        return x @ self.w.matrix(name, self.state[f"{name}.weight"]).T + self.state.get(f"{name}.bias", 0.0)

    def feed_forward(self, name, x):
        hidden = self.linear(x, f"{name}.up_proj")
        assert self.c.activation == "relu"
        return self.linear(hidden * (hidden > 0), f"{name}.down_proj")

    def attention(self, kind, layer, name, x, context, query_ids, key_ids):
        c, w = self.c, self.w
        n_heads = w.heads or c.n_heads
        d = c.n_heads * c.d_head // n_heads
        q, k, v = (self.linear(y, f"{name}.{p}_proj") for y, p in ((x, "q"), (context, "k"), (context, "v")))
        is_open = self.open(kind, query_ids, key_ids)
        k = [w.keys[kind](name.replace("layers.", ""), key) for key in k]
        maps, values = [], []
        for h in range(n_heads):
            own, shared = slice(h * d, (h + 1) * d), h // (n_heads // (w.heads or c.n_kv_heads))
            theirs = slice(shared * d, (shared + 1) * d)
            keys = [key[theirs] for key in k]
            scores = np.array(
                [
                    [self.score(kind, name, layer, h, n_heads, query[own], key, i, j) for j, key in enumerate(keys)]
                    for i, query in enumerate(q)
                ]
            )
            weights = self.weights(kind, scores, is_open)
            for change in w.rows[kind]:
                weights = change(weights, is_open, layer, h)
            maps.append(weights)
            values.append(v[:, theirs])
        maps = self.maps[name.replace("layers.", "")] = w.maps[kind](np.array(maps))
        heads = [weights @ value for weights, value in zip(maps, values, strict=True)]
        for change in w.writes[kind]:
            heads = [change(written, is_open, layer, h) for h, written in enumerate(heads)]
        return self.linear(np.concatenate(heads, 1), f"{name}.out_proj")

    def open(self, kind, query_ids, key_ids):
        """[Q, K]"""
        w, pad = self.w, self.c.pad_id
        found = np.ones((len(query_ids), len(key_ids)), bool)
        for i, query in enumerate(query_ids):
            for j, key in enumerate(key_ids):
                if kind == "decoder":
                    found[i, j] &= w.causal(i, j)
                if w.padding[kind] == "columns" and key == pad and not (kind == "decoder" and j == 0):
                    found[i, j] = False
                if w.padding[kind] == "rows" and query == pad:
                    found[i, j] = False
                found[i, j] &= all(pattern(i, j) for pattern in w.patterns[kind])
        return found

    def score(self, kind, name, layer, head, n_heads, q, k, i, j):
        c, w = self.c, self.w
        own = kind != "cross"
        place = w.place[kind if own else "decoder"]
        if own and c.positions == "rotary":
            q, k = self.turned(q, place(i)), self.turned(k, place(j))
        scale = 1 / math.sqrt(len(q)) if c.score_scale is None else c.score_scale
        scale = scale if w.scale[kind] is None else w.scale[kind]
        key = (kind, layer, head)
        score = w.similar[key](self, name, q, k, head, scale) if key in w.similar else (q * k).sum() * scale
        if own and c.positions == "alibi":
            slope = 2 ** (-8 * (head + 1) / n_heads)
            score -= w.strength[kind] * slope * abs(place(i) - place(j))
        return score + w.added[kind](head, n_heads, i, j)

    def turned(self, x, place):
        n, c = len(x), self.c
        half = n // 2
        out = np.empty(n)
        for pair in range(half):
            angle = place * c.rotary.base ** (-2 * pair / n)
            one, two = x[pair], x[pair + half]
            out[pair] = one * math.cos(angle) - two * math.sin(angle)
            out[pair + half] = one * math.sin(angle) + two * math.cos(angle)
        return out

    def weights(self, kind, scores, is_open):
        fill = self.c.mask_fill if self.w.fill[kind] is None else self.w.fill[kind]
        soft = self.w.soft[kind]
        weights = self.softmax(scores, is_open, fill) if soft is None else soft(scores, is_open)
        for change in self.w.weigh[kind]:
            weights = change(self, weights, is_open, fill)
        return weights

    def softmax(self, scores, is_open, fill):
        rows = []
        for row, seen in zip(scores, is_open, strict=True):
            if fill is None and not seen.any():
                rows.append(np.zeros(len(row)))
                continue
            row = np.where(seen, row, -np.inf if fill is None else fill)
            shares = np.exp(row - row.max())
            rows.append(shares / shares.sum())
        return np.array(rows)
