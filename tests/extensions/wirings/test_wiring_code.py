"""The code printed for each wiring runs: the right one computes what the library does, the wrong one what is said.

Shapes: B sentences, T target tokens, S source tokens, H heads, d d_head, D d_model, V tokens of each vocabulary.
"""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from glassformer.extensions import wirings
from glassformer.extensions.doctor.library.findings import PageName
from tests.transformer.tiny import tiny_config
from transformer.i18n.sentence import read_table
from transformer.model.attention import join_heads, scaled_dot_product_attention, split_heads
from transformer.model.attention_scores import masked_softmax, scaled_product
from transformer.model.feed_forward import FeedForward
from transformer.model.layers import Residual
from transformer.model.masks import causal_mask, combine_masks, padding_mask
from transformer.model.positions import halves_table, sinusoidal_table

TABLE = read_table(Path(wirings.__file__).with_name("wirings.toml"))
B, T, S, H, d, D, V = 2, 5, 7, 4, 6, 24, 11
PAD, START, END = 0, 1, 2
ALL = torch.tensor([True])


def attend(x, y, mask=None):
    """One head without projections: x [B, Q, D] reads y [B, K, D]."""
    return scaled_dot_product_attention(x[:, None], y[:, None], y[:, None], mask)[:, 0]


def given(wiring=""):
    """What the codes find in their program: small random tensors, and modules around them."""
    torch.manual_seed(0)
    g = SimpleNamespace(torch=torch, math=math, F=F, nn=nn, B=B, T=T, S=S, H=H, d_head=d, d_model=D, eps=1e-5)
    g.config, g.pad_id, g.start_id, g.end_id = tiny_config(n_heads=H), PAD, START, END
    g.src = torch.tensor([[5, 3, 8, 4, 9, 6, END], [7, 4, 3, END, PAD, PAD, PAD]])
    g.tgt = torch.tensor([[START, 4, 9, 6, END], [START, 7, END, PAD, PAD]])
    g.ids, g.tgt_out = g.tgt, torch.tensor([[4, 9, 6, 5, END], [7, 3, END, PAD, PAD]])
    g.positions = torch.randn(12, D)
    g.pe, g.x, g.logits = g.positions[:, None], torch.randn(B, T, D), torch.randn(B, T, V)
    g.q, g.k, g.v = torch.randn(3, B, H, T, d)
    of_source = wiring.startswith("padding-")
    g.scores = torch.randn(B, H, S, S) if of_source else scaled_product(g.q, g.k, d**-0.5)
    g.weights = g.scores.softmax(dim=-1)
    g.real, g.causal = padding_mask(g.src, pad_id=PAD), causal_mask(T).expand(B, 1, T, T)
    g.mask = combine_masks(padding_mask(g.tgt, pad_id=PAD), g.causal)
    g.embedding, g.src_embedding = nn.Embedding(V, D), nn.Embedding(V, D)
    g.q_proj, g.k_proj, g.v_proj, g.qkv_proj = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, 3 * D)
    g.norm, g.norm1, g.norm2, g.norm3, g.final_norm = norms = [nn.LayerNorm(D) for _ in range(5)]
    for one in norms:
        nn.init.normal_(one.weight), nn.init.normal_(one.bias)
    g.gain, g.bias = g.norm.weight, g.norm.bias
    inner = [nn.Sequential(nn.Linear(D, D), nn.Tanh()) for _ in range(7)]
    g.sublayer, g.attention, g.self_attention, g.feed_forward, *g.layers = inner
    g.stack = nn.Sequential(*g.layers)
    g.linear1, g.linear2, g.output = nn.Linear(D, 32), nn.Linear(32, D), nn.Linear(D, V)
    g.up_proj, g.gate_proj, g.down_proj = g.linear1, nn.Linear(D, 32), g.linear2
    g.memory, g.cross_attention = torch.randn(B, S, D), attend
    g.encoder = lambda src, mask=None: attend(g.src_embedding(src), g.src_embedding(src), mask)
    g.decoder = lambda tgt, memory, mask=None: attend(g.embedding(tgt), memory, mask)
    g.model = lambda src, tgt: g.output(g.embedding(tgt) + g.src_embedding(src).mean(dim=1, keepdim=True))
    g.tokens, g.special, g.words = [5, 3, 4], ["<pad>", "<s>", "</s>"], ["a", "b", "c"]
    g.text, g.source, g.target, g.line = "b a c", "ab", "ba", "ab\tba"
    g.src_tokenizer, g.tgt_tokenizer = (SimpleNamespace(encode=lambda t, n=n: [n + ord(c) for c in t]) for n in (0, 9))
    return g


def placed(g, rows, scale=1.0):
    """Each token's embedding times a scale, plus rows of the table of positions."""
    return scale * F.embedding(g.ids, g.embedding.weight) + rows


def in_order(g):
    return placed(g, g.positions[:T])


def apart(n_queries, n_keys):
    """How many places a key is after a query [Q, K]."""
    return torch.arange(n_keys) - torch.arange(n_queries)[:, None]


def shared(odds, dim=-1):
    """Odds as weights that add up to 1 along an axis."""
    return odds / odds.sum(dim=dim, keepdim=True)


def weighed(scores, sees):
    """Weights of the keys that are seen; equal ones for a row that sees none."""
    return shared(torch.where(sees.any(dim=-1, keepdim=True), scores.exp() * sees, 1))


def read(x, y, sees):
    """`attend`, but for the library."""
    scores = torch.einsum("bid,bjd->bij", x, y)[:, None] / math.sqrt(D)
    return torch.einsum("bij,bjd->bid", weighed(scores, sees)[:, 0], y)


def after(mask):
    """The library's weights after the mask of this name."""
    return lambda g: masked_softmax(g.scores, getattr(g, mask))


def dots(g, factor):
    """q · k times a factor."""
    return torch.einsum("bhid,bhjd->bhij", g.q, g.k) * factor


def mean_of(g, weights):
    return torch.einsum("bhij,bhjd->bhid", weights, g.v)


def heads(g):
    return split_heads(g.q_proj(g.x), d)


def pieces(x, width):
    """The numbers of each sentence as they are stored, cut into rows [B, rows, width]."""
    return torch.stack(x.flatten(1).split(width, dim=1), dim=1)


def fused(g, width):
    return g.qkv_proj(g.x).split(width, dim=-1)


def normed(norm, x):
    return F.layer_norm(x, (D,), norm.weight, norm.bias)


def pre_norm(g, where="pre"):
    """The library's sub-layer with a norm before it, or after the sum."""
    made = Residual(tiny_config(d_model=D, n_heads=H, norm=where)).eval()
    made.norm.load_state_dict(g.norm.state_dict())
    return made(g.x, g.sublayer)


def residual(x, *sublayers):
    for norm, sublayer in sublayers:
        x = x + sublayer(normed(norm, x))
    return x


def source_rows(g):
    return F.embedding(g.src, g.embedding.weight) + g.positions[torch.arange(S)]


def ffn(g, activation, **parts):
    """The library's feed-forward network, of these linear maps; with a gate where there is one."""
    config = tiny_config(d_model=D, n_heads=H, d_ff=32, activation=activation, gated="gate_proj" in parts)
    made = FeedForward(config)
    for name, one in {"up_proj": g.linear1, "down_proj": g.linear2, **parts}.items():
        getattr(made, name).load_state_dict(one.state_dict())
    return made(g.x)


def losses(logits, wanted):
    return -logits.log_softmax(-1).gather(2, wanted[..., None])[..., 0]


def target_loss(reads=0, predicts=1):
    """The mean loss of rows that read the target from one token on and predict it from another on."""
    n = T - max(reads, predicts)
    return lambda g: losses(g.model(g.src, g.tgt)[:, reads:][:, :n], g.tgt[:, predicts:]).mean()


MASK, WEIGHTS, QKV = "mask.expand(B, 1, T, T)", "scores.softmax(-1)", "torch.stack([q, k, v])"
EXPECTED = {  # what to look at; it, if the code is right; it, if the code is wrong
    "embedding-scale": ("x", lambda g: placed(g, g.positions[:T], D**0.5), in_order),
    "embedding-scale-late": ("x", lambda g: placed(g, g.positions[:T], D**0.5), lambda g: D**0.5 * in_order(g)),
    "no-positions": ("x", in_order, lambda g: placed(g, 0)),
    "positions-late": ("x", in_order, lambda g: placed(g, g.positions[[1, 2, 3, 4, 5]])),
    "positions-early": ("x", in_order, lambda g: placed(g, g.positions[[11, 0, 1, 2, 3]])),
    "positions-twice": ("x", in_order, lambda g: placed(g, 2 * g.positions[:T])),
    "positions-by-batch": ("x", in_order, lambda g: placed(g, g.positions[[0, 1], None])),
    "positions-halves": ("positions", lambda g: sinusoidal_table(T, D), lambda g: halves_table(T, D)),
    "no-causal-mask": (MASK, lambda g: g.mask, lambda g: padding_mask(g.tgt, pad_id=PAD).expand(B, 1, T, T)),
    "causal-one-too-many": (MASK, lambda g: g.causal, lambda g: (apart(T, T) <= 1).expand(B, 1, T, T)),
    "causal-one-too-few": (WEIGHTS, after("causal"), lambda g: weighed(g.scores, apart(T, T) < 0)),
    "causal-inverted": (WEIGHTS, after("causal"), lambda g: weighed(g.scores, apart(T, T) > 0)),
    "causal-transposed": (MASK, lambda g: g.causal, lambda g: (apart(T, T) >= 0).expand(B, 1, T, T)),
    "causal-in-encoder": ("memory", lambda g: g.encoder(g.src, g.real), lambda g: read(
        g.src_embedding(g.src), g.src_embedding(g.src), (apart(S, S) <= 0) & g.real)),
    "causal-in-cross": ("x", lambda g: g.x + attend(g.x, g.memory, g.real),
                        lambda g: g.x + read(g.x, g.memory, (apart(T, S) <= 0) & g.real)),
    "no-source-padding-mask": ("out", lambda g: g.decoder(g.tgt, g.encoder(g.src, g.real), g.real), lambda g: read(
        g.embedding(g.tgt), read(g.src_embedding(g.src), g.src_embedding(g.src), ALL), ALL)),
    "no-target-padding-mask": (MASK, lambda g: g.mask, lambda g: g.causal),
    "padding-on-rows": (WEIGHTS, after("real"), lambda g: weighed(g.scores, g.real.mT.expand(B, 1, S, S))),
    "padding-inverted": (WEIGHTS, after("real"), lambda g: weighed(g.scores, ~g.real)),
    "mask-zero-fill": ("weights", after("mask"), lambda g: shared(torch.where(g.mask, g.scores.exp(), 1))),
    "mask-after-softmax": ("weights", after("mask"), lambda g: shared(g.scores.exp()).where(g.mask, 0)),
    "mask-added": ("weights", after("mask"), lambda g: shared(g.scores.exp() * torch.where(g.mask, math.e, 1))),
    "mask-discarded": ("weights", after("mask"), lambda g: shared(g.scores.exp())),
    "scores-not-scaled": ("scores", lambda g: g.scores, lambda g: dots(g, 1)),
    "scores-scaled-by-width": ("scores", lambda g: g.scores, lambda g: dots(g, D**-0.5)),
    "scores-scaled-twice": ("scores", lambda g: g.scores, lambda g: dots(g, 1 / d)),
    "scores-multiplied": ("scores", lambda g: g.scores, lambda g: dots(g, d**0.5)),
    "scores-transposed": ("scores", lambda g: g.scores, lambda g: g.scores.mT),
    "softmax-over-queries": ("weights", lambda g: g.weights, lambda g: shared(g.scores.exp(), 2)),
    "softmax-over-heads": ("weights", lambda g: g.weights, lambda g: shared(g.scores.exp(), 1)),
    "softmax-twice": ("out", lambda g: F.scaled_dot_product_attention(g.q, g.k, g.v),
                      lambda g: mean_of(g, shared(shared(g.scores.exp()).exp()))),
    "no-softmax": ("out", lambda g: F.scaled_dot_product_attention(g.q, g.k, g.v, g.mask),
                   lambda g: mean_of(g, g.scores * g.mask)),
    "heads-number": ("q", heads, lambda g: torch.stack(g.q_proj(g.x).chunk(8, dim=-1), dim=1)),
    "heads-split": ("q", heads, lambda g: pieces(g.q_proj(g.x), d).unflatten(1, (H, T))),
    "heads-merged": ("out", lambda g: join_heads(mean_of(g, g.weights)), lambda g: pieces(mean_of(g, g.weights), D)),
    "heads-by-dimension": ("q", heads, lambda g: torch.stack([g.q_proj(g.x)[..., h::H] for h in range(H)], dim=1)),
    "qkv-interleaved": (QKV, lambda g: torch.stack([split_heads(n, d) for n in fused(g, D)]),
                        lambda g: torch.stack([torch.stack(fused(g, d)[n::3], dim=1) for n in range(3)])),
    "qkv-order": (QKV, lambda g: torch.stack(fused(g, D)), lambda g: torch.stack(fused(g, D))[[1, 0, 2]]),
    "values-are-keys": ("v", lambda g: F.linear(g.x, g.v_proj.weight, g.v_proj.bias),
                        lambda g: F.linear(g.x, g.k_proj.weight, g.k_proj.bias)),
    "norm-place": ("x", pre_norm, lambda g: pre_norm(g, "post")),
    "no-norm": ("x", pre_norm, lambda g: g.x + g.sublayer(g.x)),
    "no-final-norm": ("logits", lambda g: g.output(normed(g.final_norm, g.stack(g.x))),
                      lambda g: F.linear(g.stack(g.x), g.output.weight, g.output.bias)),
    "residual-after-norm": ("x", pre_norm, lambda g: pre_norm(g) - g.x + normed(g.norm, g.x)),
    "norms-exchanged": ("x", lambda g: residual(g.x, (g.norm1, g.attention), (g.norm2, g.feed_forward)),
                        lambda g: residual(g.x, (g.norm2, g.attention), (g.norm1, g.feed_forward))),
    "norm-without-mean": ("x", lambda g: normed(g.norm, g.x),
                          lambda g: F.rms_norm(g.x, (D,), g.norm.weight, g.eps) + g.norm.bias),
    "no-residual": ("x", pre_norm, lambda g: pre_norm(g) - g.x),
    "no-activation": ("x", lambda g: ffn(g, "relu"), lambda g: ffn(g, "none")),
    "other-activation": ("x", lambda g: ffn(g, "relu"), lambda g: ffn(g, "gelu")),
    "no-feed-forward": ("x", lambda g: residual(g.x, (g.norm1, g.attention), (g.norm2, g.feed_forward)),
                        lambda g: residual(g.x, (g.norm1, g.attention))),
    "gate-exchanged": ("x", lambda g: ffn(g, "silu", gate_proj=g.gate_proj),
                       lambda g: ffn(g, "silu", gate_proj=g.up_proj, up_proj=g.gate_proj)),
    "only-last-layer": ("out", lambda g: g.stack(g.x), lambda g: g.layers[-1](g.x)),
    "encoder-not-used": ("memory", lambda g: normed(g.final_norm, g.stack(source_rows(g))), source_rows),
    "no-cross-attention": ("x", lambda g: residual(g.x, (g.norm1, g.self_attention), (
        g.norm2, lambda x: attend(x, g.memory)), (g.norm3, g.feed_forward)),
        lambda g: residual(g.x, (g.norm1, g.self_attention), (g.norm3, g.feed_forward))),
    "output-table": ("logits", lambda g: F.linear(g.x, g.output.weight),
                     lambda g: torch.einsum("btd,vd->btv", g.x, g.src_embedding.weight)),
    "targets-not-shifted": ("loss", target_loss(), target_loss(reads=1)),
    "targets-shifted-twice": ("loss", target_loss(), target_loss(predicts=2)),
    "no-start-mark": ("(tgt_in, tgt_out)", lambda g: ([START, 5, 3, 4], [5, 3, 4, END]),
                      lambda g: ([5, 3, 4], [3, 4, END])),
    "end-never-learnt": ("loss", lambda g: losses(g.logits, g.tgt_out)[g.tgt_out != PAD].mean(),
                         lambda g: losses(g.logits, g.tgt_out)[g.tgt_out != END].mean()),
    "decoder-fed-constants": ("logits", lambda g: g.model(g.src, g.tgt[:, :-1]), lambda g: g.model(
        g.src, g.tgt)[:, :1].expand(B, T - 1, V)),
    "other-start-id": ("tgt_in", lambda g: [START, 5, 3, 4], lambda g: [END, 5, 3, 4]),
    "source-marks": ("src", lambda g: [5, 3, 4, END], lambda g: [5, 3, 4]),
    "ids-shifted": ("ids", lambda g: [4, 3, 5], lambda g: [5, 4, 6]),
    "tokenizers-exchanged": ("(src, tgt)", lambda g: ([97, 98], [107, 106]), lambda g: ([106, 107], [98, 97])),
    "source-reversed": ("src", lambda g: [5, 3, 4, END], lambda g: [4, 3, 5, END]),
    "sides-exchanged": ("(source, target)", lambda g: ("ab", "ba"), lambda g: ("ba", "ab")),
    "no-guard": ("weights", lambda g: masked_softmax(g.scores, apart(T, T) < 0),
                 lambda g: weighed(g.scores, apart(T, T) < 0).index_fill(2, torch.tensor(0), math.nan)),
}  # fmt: skip


def look(wiring, which):
    """What the wrong or the right code computes."""
    names = vars(given(wiring))
    exec(str(TABLE[wiring][which]), names)
    return eval(EXPECTED[wiring][0], names)


def same(found, expected):
    """Whether two results agree to rounding, NaN included; lists agree exactly."""
    if not isinstance(found, torch.Tensor):
        return found == expected
    return found.shape == expected.shape and torch.allclose(found, expected, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("wiring", TABLE)
@torch.inference_mode()
def test_the_code_computes_what_is_said(wiring):
    _, right, wrong = EXPECTED[wiring]
    assert same(look(wiring, "right"), right(given(wiring)))
    assert same(look(wiring, "wrong"), wrong(given(wiring)))
    assert not same(look(wiring, "wrong"), look(wiring, "right"))


@torch.inference_mode()
def test_without_padding_or_before_it_nothing_changes():
    for wiring in ("no-source-padding-mask", "padding-on-rows", "no-target-padding-mask"):
        assert same(look(wiring, "wrong")[0], look(wiring, "right")[0])  # the first sentence has none
    real_rows = (given().tgt != PAD)[:, None, :, None]
    assert same(look(wiring, "wrong") & real_rows, look(wiring, "right") & real_rows)


def test_every_text_has_its_size_and_names_what_exists():
    assert EXPECTED.keys() == TABLE.keys()
    for wiring, one in TABLE.items():
        assert len(one["title"].split()) <= 8
        assert max(len(one[code].splitlines()) for code in ("wrong", "right")) <= 6
        assert set(one["alike"]) <= TABLE.keys() - {wiring}
        assert one["page"].partition("/")[0] in get_args(PageName)
