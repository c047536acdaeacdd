"""A tiny Transformer written once more, in which a test changes one thing by hand, and what compares the two.

`Reference` is plain: one sentence, no batch, no cache, no tap, a table of tensors and a few lines for each part. A
change is a subclass that overrides the part in question; several changes are a class of several such bases, whose
methods call `super()` first, so that the base that is named first acts last.

    class NoFeedForward(Reference):
        def sublayer(self, x, name, function):
            return x if name.endswith("ffn") else super().sublayer(x, name, function)

    assert_same(both, [Skip(...)], NoFeedForward)

What it has in common with the model is torch's arithmetic and the names of the tensors. An attention is called by its
place, such as `decoder.1.cross_attn`.
"""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from glassformer.extensions.training.library.run import learn_vocabulary
from tests.conftest import SOURCES, TARGETS
from tests.transformer.tiny import tiny_model
from transformer import run
from transformer.checkpoint.load import load
from transformer.checkpoint.save import CheckpointContents, save
from transformer.model.anatomy import anatomy
from transformer.model.cache import KVCache
from transformer.runs.apply_interventions import tap_for
from transformer.runs.decoding import Prefix
from transformer.runs.dynamic_batching import run_together
from transformer.runs.replay import each_layer, replay
from transformer.runs.source import read_source
from transformer.text.tokenizer import Tokenizer

SOURCE = "ba lo mi ta"  # 5 tokens of the model below, with the end piece
FORCED = (9, 5, 7, 12, 30, 6)  # what the decoder reads behind its start
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


def made(folder: Path, stack: str = "both"):
    """A checkpoint of 2 layers and 3 heads: post-norm with sinusoids, or pre-norm of one stack alone."""
    pieces = learn_vocabulary(SOURCES + TARGETS, size=48)
    size = Tokenizer(pieces).size
    changes = {
        "both": {"norm": "post", "final_norm": False},
        "decoder": {"n_encoder_layers": 0, "append_source_eos": False, "prepend_source_bos": True, "n_kv_heads": 1},
        "encoder": {"n_decoder_layers": 0},
    }[stack]
    sizes = {"src_vocab_size": size, "tgt_vocab_size": size, "shared_vocab": True, "max_len": 24}
    model = tiny_model(**({"n_encoder_layers": 2, "n_decoder_layers": 2} | sizes | changes))
    save(CheckpointContents(model.config, model.state_dict(), (pieces,), {"title": stack}), folder / stack)
    return load(folder / stack)


def precise(checkpoint):
    """The same checkpoint, computing in float64."""
    return replace(checkpoint, model=deepcopy(checkpoint.model).double())


class Reference:
    """`Reference(checkpoint).log_probs(source ids, ids that the decoder reads)`: [T, V], in float64."""

    def __init__(self, checkpoint):
        self.c = checkpoint.config
        self.state = {name: value.double() for name, value in checkpoint.model.state_dict().items()}
        self.fill = -torch.inf  # of a closed score
        self._tables = {}
        self.maps = {}  # of the last reading, by place: [H, Q, K]

    # What a change overrides

    def edited(self, ids):
        """The source's ids as they are read: a list."""
        return ids

    def tokens(self, ids, stack):
        """Rows of the table [T, D], scaled."""
        return self.state["src_table"][ids] * self.c.d_model**0.5

    def places(self, length, stack):
        """The position of each token [T]."""
        return torch.arange(length).double()

    def positions(self, length, stack):
        """What is added to the tokens [T, D]."""
        if (length, stack) in self._tables:
            return self._tables[length, stack]
        angles = [[p / 10000 ** (2 * (i // 2) / self.c.d_model) for i in range(self.c.d_model)]
                  for p in self.places(length, stack).tolist()]  # fmt: skip
        angles = torch.tensor(angles, dtype=torch.float64)
        even = torch.arange(self.c.d_model) % 2 == 0
        table = torch.where(even, angles.sin(), angles.cos()).float().double()  # the model's is rounded so
        return self._tables.setdefault((length, stack), table)

    def mask(self, name, n_queries, keys_are_read):
        """Bool [Q, K]: who may see which key; the source's padding is closed, and what comes later."""
        open_ = keys_are_read[None].expand(n_queries, -1)
        return open_ & torch.ones_like(open_).tril() if name.startswith("decoder") and "self" in name else open_

    def weight(self, name):
        """A matrix, such as `decoder.layers.0.ffn.up_proj`."""
        return self.state[f"{name}.weight"]

    def queries(self, q, name, head):
        """Of one head [Q, d]."""
        return q

    def keys(self, k, name, head):
        """Of one head [K, d]."""
        return k

    def values(self, v, name, head):
        """Of one head [K, d]."""
        return v

    def scores(self, q, k, name, head):
        """Of one head [Q, K]."""
        return q @ k.T / self.c.d_head**0.5

    def weights(self, scores, mask, name, head):
        """Of one head [Q, K]; a row without any open key is 0."""
        raised = scores.masked_fill(~mask, self.fill).exp()
        sums = raised.sum(-1, keepdim=True)
        return torch.where(sums > 0, raised / sums, torch.zeros_like(raised))

    def head(self, output, mask, name, head):
        """What one head writes [Q, d]."""
        return output

    def attention_output(self, x, name):
        """After W_O [Q, D]."""
        return x

    def hidden(self, x, name):
        """Inside a feed-forward layer, after the non-linearity [T, F]."""
        return x

    def norm(self, x, name):
        """A norm by its name, such as `decoder.layers.0.ffn_residual.norm` or `decoder.final_norm`."""
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / ((centred**2).mean(-1, keepdim=True) + self.c.norm_eps) ** 0.5
        return scaled * self.state[f"{name}.weight"] + self.state[f"{name}.bias"]

    def sublayer(self, x, name, function):
        """The stream after a sub-layer; the name is `decoder.0.ffn` or `decoder.1.cross_attn`."""
        norm = f"{self.long(name)}_residual.norm"
        if self.c.norm == "post":
            return self.norm(x + function(x), norm)
        return x + function(self.norm(x, norm))

    def layer(self, x, name):
        """The stream after a layer, named `decoder.0`."""
        return x

    # What none needs to

    @staticmethod
    def long(name):
        """`decoder.0.ffn` as the tensors have it: `decoder.layers.0.ffn`."""
        stack, rest = name.split(".", 1)
        return f"{stack}.layers.{rest}"

    def linear(self, x, name):
        return x @ self.weight(name).T + self.state[f"{name}.bias"]

    def attention(self, x, context, keys_are_read, name):
        c, long = self.c, self.long(name)
        q, k, v = (self.linear(y, f"{long}.{p}_proj") for y, p in ((x, "q"), (context, "k"), (context, "v")))
        mask, heads, maps = self.mask(name, len(x), keys_are_read), [], []
        for head in range(c.n_heads):
            own = slice(head * c.d_head, (head + 1) * c.d_head)
            group = head // (c.n_heads // c.n_kv_heads)
            shared = slice(group * c.d_head, (group + 1) * c.d_head)
            scores = self.scores(self.queries(q[:, own], name, head), self.keys(k[:, shared], name, head), name, head)
            weights = self.weights(scores, mask, name, head)
            maps.append(weights)
            heads.append(self.head(weights @ self.values(v[:, shared], name, head), mask, name, head))
        self.maps[name] = torch.stack(maps)
        return self.attention_output(self.linear(torch.cat(heads, -1), f"{long}.out_proj"), name)

    def feed_forward(self, x, name):
        long = self.long(name)
        inner = self.linear(x, f"{long}.up_proj")
        return self.linear(self.hidden(inner * (inner > 0), name), f"{long}.down_proj")

    def stack(self, stack, ids, memory, source_is_read):
        x = self.tokens(ids, stack) + self.positions(len(ids), stack)
        read = source_is_read if stack == "encoder" else torch.ones(len(ids), dtype=torch.bool)
        for i in range(self.c.n_encoder_layers if stack == "encoder" else self.c.n_decoder_layers):
            name = f"{stack}.{i}"
            own, cross, ffn = f"{name}.self_attn", f"{name}.cross_attn", f"{name}.ffn"
            x = self.sublayer(x, own, lambda y, own=own: self.attention(y, y, read, own))
            if stack == "decoder" and memory is not None:
                x = self.sublayer(x, cross, lambda y, n=cross: self.attention(y, memory, source_is_read, n))
            x = self.layer(self.sublayer(x, ffn, lambda y, ffn=ffn: self.feed_forward(y, ffn)), name)
        return self.norm(x, f"{stack}.final_norm") if self.c.final_norm else x

    def memory(self, src):
        """The encoder's vectors [S, D]; None without one."""
        src = self.edited(list(src))
        return self.stack("encoder", src, None, torch.tensor(src) != 0) if self.c.n_encoder_layers else None

    def logits(self, src, tgt):
        """After each token that the decoder reads [T, V]; an encoder alone: its vectors [S, D]."""
        memory = self.memory(src)
        if not self.c.n_decoder_layers:
            return memory
        read = torch.tensor(self.edited(list(src))) != 0
        return self.stack("decoder", list(tgt), memory, read) @ self.state["src_table"].T

    def log_probs(self, src, tgt):
        """Of the pieces that follow the start piece or the prompt [T, V].

        Whatever a change does, a step sees what is before it and nothing else: each prefix is read by itself.
        """
        before = [self.c.decoder_start_id] if self.c.n_encoder_layers else self.edited(list(src))
        rows = [self.logits(src, [*before, *tgt[:n]])[-1] for n in range(len(tgt) + 1)]
        return torch.stack(rows).log_softmax(-1)

    def maps_by_steps(self, src, tgt):
        """The maps by place [H, Q, K]: each row of the decoder as when its token was the last that it had read."""
        before = [self.c.decoder_start_id] if self.c.n_encoder_layers else self.edited(list(src))
        read, rows = [*before, *tgt], {}
        for n in range(1, len(read) + 1) if self.c.n_decoder_layers else (0,):
            self.logits(src, read[:n])
            for name, maps in self.maps.items():
                rows.setdefault(name, []).append(maps[:, -1:])
        widths = {name: found[-1].size(-1) for name, found in rows.items()}
        return {
            name: torch.cat([F.pad(row, (0, widths[name] - row.size(-1))) for row in found], 1)
            if name.startswith("decoder")
            else self.maps[name]
            for name, found in rows.items()
        }


def reference_of(checkpoint, *changes):
    """The reference with these changes, carried out in this order."""
    kind = type("Changed", (*reversed(changes), Reference), {}) if changes else Reference
    return kind(checkpoint)


def assert_same(checkpoint, interventions, *changes, text=SOURCE, differs=True):
    """Compare a changed model with the reference that is changed by hand.

    In float64 and float32, in one pass, step by step with and without a cache, and in a whole run with its record and
    its maps.

    Args:
        checkpoint: As `made` gives it.
        interventions: What is changed.
        changes: Subclasses of `Reference`, in the same order.
        text: The source.
        differs: Whether the change has an effect on this sentence; a test that sees none would prove nothing.
    """
    src = read_source(checkpoint, checkpoint.query(text)).ids
    expected = reference_of(checkpoint, *changes).log_probs(src, FORCED)
    untouched = Reference(checkpoint).log_probs(src, FORCED)
    assert bool(((expected - untouched).abs().max() > 1e-4) == differs)
    for one in (precise(checkpoint), checkpoint):
        atol = TOLERANCE[one.model.src_table.dtype]
        for found in _found(one, tuple(interventions), text):
            np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
    _assert_same_maps(
        checkpoint, tuple(interventions), reference_of(checkpoint, *changes).maps_by_steps(src, FORCED), text
    )


def _assert_same_maps(checkpoint, interventions, expected, text):
    """The maps of a whole run, those that are replayed, and those of a run that kept none."""
    query = checkpoint.query(text, interventions=interventions, forced=FORCED, max_new=len(FORCED) + 1)
    trace = run(checkpoint, query)
    (bare,) = run_together(checkpoint, [query], most_map_bytes=0)
    again = replay(checkpoint, trace, ["*_attn.weights"])
    for one in anatomy(checkpoint.config).attentions:
        remade = each_layer(checkpoint, bare, one.kind, lambda maps, _: maps.copy())
        for layer in range(one.n_layers):
            site = one.site(layer, "weights")
            for found in (trace.maps(one.kind)[layer], remade[layer], again[site]):
                np.testing.assert_allclose(found, expected[site.removesuffix(".weights")], rtol=0, atol=2e-5)


def _found(checkpoint, interventions, text):
    """Log-probabilities [T, V] of every way in which the model computes them."""
    query = checkpoint.query(text, interventions=interventions, forced=FORCED, max_new=len(FORCED) + 1)
    src = torch.tensor([read_source(checkpoint, query).ids])
    for cache in (KVCache(checkpoint.config.n_decoder_layers), None):
        with torch.inference_mode():
            prefix = Prefix(checkpoint.model, src, cache=cache, tap=tap_for(interventions, checkpoint))
            rows = [prefix.next_log_probs()[0]]
            for i in FORCED:
                prefix.append(torch.tensor([i]))
                rows.append(prefix.next_log_probs()[0])
        yield torch.stack(rows)
    yield torch.tensor(run(checkpoint, query).log_probs)  # of one pass, where the changes are causal
