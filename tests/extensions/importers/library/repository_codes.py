"""The codes of popular repositories, each with how it is saved and what its card leaves open; decoders alone."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

from tests.extensions.importers.library.repository_models import (
    HEADS,
    HIDDEN,
    LAYERS,
    LENGTH,
    VOCABS,
    WIDTH,
    State,
    ajhalthor,
    aladdinpersson,
    attention,
    bentrevett,
    brandokoch,
    causal,
    d2l,
    dreamgonfly,
    gordicaleksa,
    hkproj,
    hyunwoongko,
    jadore801120,
    jayparks,
    labml,
    samlynnevans,
    wmathor,
)

# Decoders alone: the source is None.


def gpt(s, _, ids, act="gelu", tied=True, biases=True):
    """As nanoGPT and minGPT name it."""
    table = s.of("transformer.wte.weight", VOCABS[1], WIDTH)
    if tied:
        s.kept("lm_head.weight", table)

    def norm(x, name):
        scale = s.of(f"{name}.weight", WIDTH, around=1.0)
        return F.layer_norm(x, (WIDTH,), scale, s.of(f"{name}.bias", WIDTH) if biases else None)

    x = table[ids] + s.of("transformer.wpe.weight", LENGTH, WIDTH)[: ids.size(1)]
    for n in range(LAYERS):
        at = f"transformer.h.{n}"
        if not tied:
            s.kept(f"{at}.attn.bias", causal(LENGTH).float()[None, None])
        joint = s.linear(norm(x, f"{at}.ln_1"), f"{at}.attn.c_attn", 3 * WIDTH, biases)
        q, k, v = joint.split(WIDTH, dim=2)
        x = x + s.linear(attention(q, k, v, causal(ids.size(1))), f"{at}.attn.c_proj", bias=biases)
        z = norm(x, f"{at}.ln_2")
        x = x + s.network(z, f"{at}.mlp.c_fc", f"{at}.mlp.c_proj", act, 4 * WIDTH, biases)
    return s.linear(norm(x, "transformer.ln_f"), "lm_head", VOCABS[1], bias=False)


def rasbt(s, _, ids):
    ends = {"names": ("scale", "shift")}
    x = s.of("tok_emb.weight", VOCABS[1], WIDTH)[ids] + s.of("pos_emb.weight", LENGTH, WIDTH)[: ids.size(1)]
    for n in range(LAYERS):
        at = f"trf_blocks.{n}"
        s.kept(f"{at}.att.mask", 1 - causal(LENGTH).float())
        names = [f"{at}.att.{one}" for one in ("W_query", "W_key", "W_value", "out_proj")]
        z = s.norm(x, f"{at}.norm1", **ends)
        x = x + s.attend(z, z, causal(ids.size(1)), names, (False, True))
        z = s.norm(x, f"{at}.norm2", **ends)
        x = x + s.network(z, f"{at}.ff.layers.0", f"{at}.ff.layers.2", "gelu_tanh", 4 * WIDTH)
    return s.linear(s.norm(x, "final_norm", **ends), "out_head", VOCABS[1], bias=False)


def lecture(s, _, ids):
    x = s.of("token_embedding_table.weight", VOCABS[1], WIDTH)[ids]
    x = x + s.of("position_embedding_table.weight", LENGTH, WIDTH)[: ids.size(1)]

    def head(x, name):
        s.kept(f"{name}.tril", causal(LENGTH).float())
        k, q, v = (s.linear(x, f"{name}.{one}", WIDTH // HEADS, bias=False) for one in ("key", "query", "value"))
        scores = (q @ k.transpose(-2, -1)) * k.size(-1) ** -0.5
        return scores.masked_fill(~causal(ids.size(1)), float("-inf")).softmax(-1) @ v

    for n in range(LAYERS):
        at = f"blocks.{n}"
        z = s.norm(x, f"{at}.ln1")
        heads = torch.cat([head(z, f"{at}.sa.heads.{h}") for h in range(HEADS)], dim=-1)
        x = x + s.linear(heads, f"{at}.sa.proj")
        x = x + s.network(s.norm(x, f"{at}.ln2"), f"{at}.ffwd.net.0", f"{at}.ffwd.net.2", hidden=4 * WIDTH)
    return s.linear(s.norm(x, "ln_f"), "lm_head", VOCABS[1])


def pbloem(s, _, ids):
    x = s.of("token_embedding.weight", VOCABS[1], WIDTH)[ids]
    x = x + s.of("pos_embedding.weight", LENGTH, WIDTH)[: ids.size(1)]
    for n in range(LAYERS):
        at = f"tblocks.{n}"
        names = [f"{at}.attention.{one}" for one in ("toqueries", "tokeys", "tovalues", "unifyheads")]
        x = s.norm(s.attend(x, x, causal(ids.size(1)), names, (False, True)) + x, f"{at}.norm1")
        x = s.norm(s.network(x, f"{at}.ff.0", f"{at}.ff.2", hidden=4 * WIDTH) + x, f"{at}.norm2")
    return s.linear(x, "toprobs", VOCABS[1]).log_softmax(-1)


def llama2c(s, _, ids, groups=2):
    part, n_ids = WIDTH // HEADS, ids.size(1)
    angles = torch.outer(torch.arange(n_ids).float(), 10000.0 ** (-torch.arange(0, part, 2).float() / part))
    turn = torch.polar(torch.ones_like(angles), angles)[:, None]  # [T, 1, d / 2]

    def norm(x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * s.of(f"{name}.weight", WIDTH, around=1.0)

    def rotated(x):  # neighbours are a pair
        pairs = torch.view_as_complex(x.reshape(*x.shape[:3], -1, 2))
        return torch.view_as_real(pairs * turn).flatten(3)

    table = s.of("tok_embeddings.weight", VOCABS[1], WIDTH)
    s.kept("output.weight", table)
    x = table[ids]
    for n in range(LAYERS):
        at = f"layers.{n}"
        z = norm(x, f"{at}.attention_norm")
        q, k, v = (
            s.linear(z, f"{at}.attention.w{one}", many * part, bias=False).view(*ids.shape, many, part)
            for one, many in (("q", HEADS), ("k", groups), ("v", groups))
        )
        k, v = (one.repeat_interleave(HEADS // groups, dim=2) for one in (rotated(k), v))
        made = attention(rotated(q).flatten(2), k.flatten(2), v.flatten(2), causal(n_ids))
        x = x + s.linear(made, f"{at}.attention.wo", bias=False)
        z, ffn = norm(x, f"{at}.ffn_norm"), f"{at}.feed_forward"
        gated = F.silu(s.linear(z, f"{ffn}.w1", HIDDEN, False)) * s.linear(z, f"{ffn}.w3", HIDDEN, False)
        x = x + s.linear(gated, f"{ffn}.w2", bias=False)
    return s.linear(norm(x, "norm"), "output", VOCABS[1], bias=False)


@dataclass(frozen=True)
class Code:
    """One repository's model: how it computes, how it is saved, what its card leaves open and what answers that."""

    card: str
    run: Callable[..., torch.Tensor]
    asked: dict = field(default_factory=dict)  # the answer to each question that is left
    options: dict = field(default_factory=dict)
    beside: Callable[[State], dict] = dict  # what is saved, of the state
    alone: bool = False  # a decoder by itself
    pad: int | None = 1


HEADED = {"n_heads": HEADS}
SPECIAL = {"pad_id": 0, "bos_id": 2, "eos_id": 3}
END = {"eos_id": 3}


def _settings(**of):
    return lambda state: {"epoch": 3, "settings": Namespace(n_head=HEADS, d_k=5, **of), "model": dict(state)}


CODES = {
    "hyunwoongko": Code("hyunwoongko", hyunwoongko, HEADED),
    "SamLynnEvans": Code("samlynnevans", samlynnevans, HEADED),
    "jadore801120, one table, prj": Code(
        "jadore801120", jadore801120, beside=_settings(scale_emb_or_prj="prj", proj_share_weight=True)
    ),
    "jadore801120, one table, emb": Code(
        "jadore801120", jadore801120, options={"scale": "emb"}, beside=_settings(scale_emb_or_prj="emb")
    ),
    "jadore801120, several tables": Code(
        "jadore801120", jadore801120, options={"shared": False}, beside=_settings(scale_emb_or_prj="prj")
    ),
    "jadore801120, weights alone": Code(
        "jadore801120", jadore801120, HEADED | {"scale_embedding": False, "output_scale": 0.25}
    ),
    "hkproj": Code("hkproj", hkproj, HEADED, beside=lambda state: {"epoch": 1, "model_state_dict": dict(state)}),
    "aladdinpersson": Code("aladdinpersson", aladdinpersson, SPECIAL, pad=0),
    "bentrevett": Code("bentrevett", bentrevett, HEADED),
    "d2l": Code("d2l", d2l, HEADED | {"pad_id": 1, "bos_id": 2, "eos_id": 3}),
    "gordicaleksa": Code("gordicaleksa", gordicaleksa, HEADED, beside=lambda state: {"state_dict": dict(state)}),
    "labml": Code("labml", labml, HEADED | SPECIAL, pad=0),
    "labml, autoregressive": Code("labml-autoregressive", labml, HEADED | END, alone=True),
    "dreamgonfly": Code("dreamgonfly", dreamgonfly, HEADED, pad=0),
    "dreamgonfly, no positions": Code("dreamgonfly", dreamgonfly, HEADED, {"placed": False}, pad=0),
    "wmathor": Code("wmathor", wmathor, HEADED | {"bos_id": 2, "eos_id": 3}, pad=0),
    "brandokoch": Code("brandokoch", brandokoch, HEADED, pad=0),
    "ajhalthor": Code("ajhalthor", ajhalthor, HEADED | SPECIAL, pad=0),
    "jayparks": Code(
        "jayparks", jayparks, pad=0,
        beside=lambda state: {"opt": Namespace(n_heads=HEADS, d_k=4), "curr_epochs": 1, "model_params": dict(state)},
    ),
    "nanoGPT": Code(
        "nanogpt", gpt, END, alone=True,
        beside=lambda state: {"model": dict(state), "model_args": {"n_head": HEADS, "n_layer": LAYERS}, "iter_num": 9},
    ),
    "nanoGPT, no biases": Code("nanogpt", gpt, HEADED | END, {"biases": False}, alone=True),
    "minGPT": Code("mingpt", gpt, HEADED | END, {"act": "gelu_tanh", "tied": False}, alone=True),
    "rasbt": Code("rasbt", rasbt, HEADED | END, beside=lambda state: {"model_state_dict": dict(state)}, alone=True),
    "ng-video-lecture": Code("ng-video-lecture", lecture, END, alone=True),
    "pbloem": Code("pbloem", pbloem, HEADED | END, alone=True),
    "llama2.c": Code(
        "llama2c", llama2c, alone=True,
        beside=lambda state: {
            "model": dict(state),
            "model_args": {"n_heads": HEADS, "n_kv_heads": 2, "max_seq_len": LENGTH, "dim": WIDTH},
        },
    ),
}  # fmt: skip


def sentences(code):
    """Padded ids of both sides; none for a decoder alone."""
    pad = 0 if code.pad is None else code.pad
    src = torch.tensor([[5, 6, 7, 8, 9, 10], [11, 4, 5, 6, pad, pad], [2, 9, 3, pad, pad, pad]])
    tgt = torch.tensor([[2, 5, 6, 7, 11], [2, 8, 9, 10, pad], [2, 12, pad, pad, pad]])
    if code.alone:
        return None, torch.tensor([[5, 6, 7, 8, 9, 10], [11, 4, 5, 6, 7, 7]])
    return src, tgt


def drawn(code, seed=0):
    """The state of a code with random parameters."""
    torch.manual_seed(seed)
    state = State()
    code.run(state, *sentences(code), **code.options)
    return state
