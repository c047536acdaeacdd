"""A Transformer written once more in NumPy, attention by attention and head by head, with its wiring in plain sight.

It takes a config and a table of parameters, and nothing of the model's code. Each value and each setting has a site; a
change is a pattern of sites, and a function of what is there and of where it is.
"""

import math
from fnmatch import fnmatchcase
from types import SimpleNamespace

import numpy as np


class Plain:
    """`Plain(model, changes).log_probs(src, tgt)`: of the piece after `tgt`."""

    def __init__(self, model, changes=()):
        self.c, self.changes = model.config, changes
        self.maps = {}  # of the last reading, by place: [H, Q, K]
        self.state = {name: value.double().numpy() for name, value in model.state_dict().items()}
        self.tables = {
            name: getattr(model, name).embedding.positions.table.double().numpy()
            for name in ("encoder", "decoder")
            if hasattr(model, name) and model.config.positions in ("sinusoidal", "learned")
        }

    def now(self, site, value, **here):
        """A value or a setting after its changes."""
        for pattern, change in self.changes:
            if fnmatchcase(site, pattern):
                value = change(value, SimpleNamespace(plain=self, site=site, **here))
        return value

    def log_probs(self, src, tgt):
        """Of a decoder [V]."""
        memory = self.memory(src) if self.c.n_encoder_layers else None
        x = self.stack("decoder", tgt, memory, src)[-1]
        own = "src_table" if self.c.shared_vocab else "tgt_table"
        logits = self.matrix(own if self.c.tie_output else "output_table") @ x
        return logits - logits.max() - math.log(np.exp(logits - logits.max()).sum())

    def memory(self, src):
        """Of an encoder [S, D]."""
        return self.stack("encoder", src, None, src)

    def matrix(self, name):
        return self.now(f"matrix {name}", self.state[name])

    def linear(self, x, module):
        return x @ self.matrix(f"{module}.weight").T + self.state.get(f"{module}.bias", 0.0)

    def norm(self, x, name):
        x = x if self.c.norm_kind == "rms" else x - x.mean(-1, keepdims=True)
        size = np.sqrt((x**2).mean(-1, keepdims=True) + self.c.norm_eps)
        return self.state[f"{name}.weight"] * x / size + self.state.get(f"{name}.bias", 0.0)

    def places(self, stack, n):
        """Where the tokens of a stack stand [n]."""
        return np.array([self.now(f"{stack}.place", place) for place in range(n)])

    def stack(self, stack, ids, memory, src):
        x = self.embed(stack, ids)
        for layer in range(self.c.n_encoder_layers if stack == "encoder" else self.c.n_decoder_layers):
            parts = [("self_attn", lambda y: (y, ids))]
            parts += [("cross_attn", lambda _: (memory, src))] * (stack == "decoder" and memory is not None)
            for part, read in (*parts, ("ffn", None)):
                x = self.sublayer(stack, layer, part, x, ids, read)
        return self.norm(x, f"{stack}.final_norm") if self.now(f"{stack}.final", self.c.final_norm) else x

    def embed(self, stack, ids):
        c = self.c
        table = self.matrix("src_table" if c.shared_vocab or stack == "encoder" else "tgt_table")
        scale = self.now(f"{stack}.scale", math.sqrt(c.d_model) if c.scale_embedding else 1.0)
        x = self.now(f"{stack}.embedding.tokens", table[ids] * scale)
        if stack in self.tables:
            rows = self.tables[stack]
            rows = self.now("matrix positions", rows) if c.positions == "learned" else rows
            places = self.places(stack, len(ids)).astype(int) % len(rows)
            x = x + rows[places] * self.now(f"{stack}.strength", 1.0)
        return self.now(f"{stack}.embedding.output", x)

    def sublayer(self, stack, layer, part, x, ids, read):
        site, module = f"{stack}.{layer}.{part}", f"{stack}.layers.{layer}.{part}"

        def normed(y):
            return self.norm(y, f"{module}_residual.norm") if self.now(f"{site}.normed", True) else y

        post = self.now(f"{stack}.post", self.c.norm == "post")
        given = x if post else normed(x)
        made = self.feed_forward(site, module, given) if read is None else None
        made = self.attention(site, module, given, ids, *read(given)) if read else made
        made = self.now(f"{site}.output", made)
        if self.now(f"{site}.skipped", False):
            return x
        total = x + made if self.now(f"{site}.added", True) else made
        return normed(total) if post else total

    def feed_forward(self, site, module, x):
        hidden = self.linear(x, f"{module}.up_proj")
        if self.c.gated:
            gate = self.linear(x, f"{module}.gate_proj")
            hidden = gate / (1 + np.exp(-gate)) * hidden
        assert self.c.activation == ("silu" if self.c.gated else "relu")
        hidden = hidden if self.c.gated else hidden * (hidden > 0)
        return self.linear(self.now(f"{site}.activation", hidden), f"{module}.down_proj")

    def attention(self, site, module, x, ids, context, key_ids):
        c = self.c
        n_heads, groups = self.now("heads", (c.n_heads, c.n_kv_heads))
        d = c.n_heads * c.d_head // n_heads
        q, k, v = (
            self.now(f"{site}.{name}", self.linear(given, f"{module}.{name[0]}_proj"), module=module)
            for name, given in (("queries", x), ("keys", context), ("values", context))
        )
        is_open, maps, values = self.open(site, np.array(ids), np.array(key_ids)), [], []
        for head in range(n_heads):
            own, shared = slice(head * d, (head + 1) * d), head * groups // n_heads
            theirs = slice(shared * d, (shared + 1) * d)
            here = {"head": head, "n_heads": n_heads, "module": module, "is_open": is_open}
            scores = self.scores(site, q[:, own], k[:, theirs], here)
            here["fill"] = fill = self.now(f"{site}.fill", c.mask_fill)
            weights = self.now(f"{site}.softmax", softmax(scores, is_open, fill), scores=scores, **here)
            maps.append(self.now(f"{site}.weights", weights, **here))
            values.append(v[:, theirs])
        maps = self.maps[site] = self.now(f"{site}.maps", np.array(maps))
        heads = [
            self.now(f"{site}.written", weights @ value, head=head, is_open=is_open)
            for head, (weights, value) in enumerate(zip(maps, values, strict=True))
        ]
        return self.linear(np.concatenate(heads, 1), f"{module}.out_proj")

    def open(self, site, queries, keys):
        """[Q, K]"""
        i, j = np.arange(len(queries))[:, None], np.arange(len(keys))
        of_decoder = site.startswith("decoder") and site.endswith("self_attn")
        found = self.now("causal", j <= i, i=i, j=j) if of_decoder else np.ones((len(queries), len(keys)), bool)
        padding = self.now(f"{site}.padding", "columns")
        if padding == "columns":
            found = found & ((keys != self.c.pad_id) | (of_decoder & (j == 0)))
        elif padding == "rows":
            found = found & (queries != self.c.pad_id)[:, None]
        return self.now(f"{site}.open", found, i=i, j=j)

    def scores(self, site, q, k, here):
        c, stack, own = self.c, site.partition(".")[0], site.endswith("self_attn")
        query_places, key_places = self.places(stack, len(q)), self.places(stack, len(k))
        if own and c.positions == "rotary":
            q, k = self.turned(q, query_places), self.turned(k, key_places)
        scale = self.now(f"{site}.scale", 1 / math.sqrt(q.shape[1]) if c.score_scale is None else c.score_scale)
        scores = self.now(f"{site}.product", q @ k.T * scale, q=q, k=k, scale=scale, **here)
        if own and c.positions == "alibi":
            slope = 2 ** (-8 * (here["head"] + 1) / here["n_heads"]) * self.now(f"{stack}.strength", 1.0)
            scores = scores - slope * abs(query_places[:, None] - key_places)
        return self.now(f"{site}.scores", scores, **here)

    def turned(self, x, places):
        half = x.shape[1] // 2
        angles = places[:, None] * self.c.rotary.base ** (-np.arange(half) / half)
        one, two, cos, sin = x[:, :half], x[:, half:], np.cos(angles), np.sin(angles)
        return np.concatenate([one * cos - two * sin, one * sin + two * cos], 1)


def softmax(scores, is_open, fill):
    """Of each row; without a fill value a row of closed keys has no weights."""
    scores = np.where(is_open, scores, -np.inf if fill is None else fill)
    most = scores.max(-1, keepdims=True)
    shares = np.exp(scores - np.where(np.isfinite(most), most, 0))
    return shares / np.maximum(shares.sum(-1, keepdims=True), 1e-300)
