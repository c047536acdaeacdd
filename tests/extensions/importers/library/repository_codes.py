"""The codes of popular repositories: what each computes, how it is saved, and what its card leaves open.

Written anew from their published names and orders of operations; a first pass draws the state that the repository would
save. Sources: the addresses in `importers/cards/`.
"""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F

from tests.extensions.importers.library.recipes import (
    HEADS,
    HIDDEN,
    LAYERS,
    LENGTH,
    VOCABS,
    WIDTH,
    Recipe,
    State,
    attention,
    causal,
    of_sides,
    waves,
    within,
)  # fmt: skip


class SameMapForEachHead(Recipe):
    """aladdinpersson: every head's part goes through the same small map, and scores are divided by the width's root."""

    def attend(self, s, x, y, mask, names):
        part = WIDTH // HEADS
        heads = [
            s.linear(z.reshape(*z.shape[:2], HEADS, part), name, part, bias=False).flatten(2)
            for z, name in zip((x, y, y), names[:3], strict=True)
        ]
        return s.linear(attention(*heads, mask, divisor=WIDTH**0.5), names[3], WIDTH)


class JoinedHeadByHead(Recipe):
    """ajhalthor: one map makes [B, T, H, parts d]."""

    def attend(self, s, x, y, mask, names):
        def cut(made, parts):
            return [one.flatten(2) for one in made.view(*made.shape[:2], HEADS, -1).chunk(parts, dim=-1)]

        joint, *alone, out = names
        if alone:
            q, (k, v) = s.linear(x, alone[0], WIDTH), cut(s.linear(y, joint, 2 * WIDTH), 2)
        else:
            q, k, v = cut(s.linear(x, joint, 3 * WIDTH), 3)
        return s.linear(attention(q, k, v, mask), out, WIDTH)


class Convolved(Recipe):
    """jayparks: a row of positions for padding, and feed-forward networks that are convolutions of one place."""

    def places(self, s, i, n):
        s.setdefault(self.positions[i], torch.cat((torch.zeros(1, WIDTH), self.sines)))
        return self.sines[:n]

    def network(self, s, x, names):
        up, down = s.of(f"{names[0]}.weight", HIDDEN, WIDTH, 1), s.of(f"{names[1]}.weight", WIDTH, HIDDEN, 1)
        made = F.relu(F.conv1d(x.transpose(1, 2), up, s.of(f"{names[0]}.bias", HIDDEN)))
        return F.conv1d(made, down, s.of(f"{names[1]}.bias", WIDTH)).transpose(1, 2)


class Joined(Recipe):
    """nanoGPT, minGPT: queries, keys and values are one map."""

    def attend(self, s, x, y, mask, names):
        q, k, v = s.linear(x, names[0], 3 * WIDTH, self.biases[0]).split(WIDTH, dim=2)
        return s.linear(attention(q, k, v, mask), names[1], WIDTH, self.biases[1])


class HeadByHead(Recipe):
    """The lecture: a module for each head."""

    def attend(self, s, x, y, mask, names):
        made = []
        for h in range(HEADS):
            head = f"{names[0]}.{h}"
            s.setdefault(f"{head}.tril", causal(LENGTH).float())
            k, q, v = (s.linear(x, f"{head}.{one}", WIDTH // HEADS, bias=False) for one in ("key", "query", "value"))
            scores = (q @ k.transpose(-2, -1)) * k.size(-1) ** -0.5
            made.append(scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v)
        return s.linear(torch.cat(made, dim=-1), names[1], WIDTH)


class Rotary(Recipe):
    """llama2.c: neighbours are a pair, two heads share keys and values, and the network is gated."""

    def norm(self, s, x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * s.of(f"{name}.weight", WIDTH, around=1.0)

    def attend(self, s, x, y, mask, names):
        part, groups, n = WIDTH // HEADS, 2, x.size(1)
        angles = torch.outer(torch.arange(n).float(), 10000.0 ** (-torch.arange(0, part, 2).float() / part))
        turn = torch.polar(torch.ones_like(angles), angles)[:, None]  # [T, 1, d / 2]
        q, k, v = (
            s.linear(x, name, many * part, bias=False).view(*x.shape[:2], many, part)
            for name, many in zip(names, (HEADS, groups, groups), strict=False)
        )
        q, k = (
            torch.view_as_real(torch.view_as_complex(one.reshape(*one.shape[:3], -1, 2)) * turn).flatten(3)
            for one in (q, k)
        )
        k, v = (one.repeat_interleave(HEADS // groups, dim=2).flatten(2) for one in (k, v))
        return s.linear(attention(q.flatten(2), k, v, mask), names[3], WIDTH, bias=False)


THREE = ("norm1 norm2", "norm1 norm2 norm3")
LINES, BATCHES = (1, LENGTH, WIDTH), (LENGTH, 1, WIDTH)  # shapes of tables of positions
ALPHA = {"eps": 1e-6, "names": "alpha bias", "deviation": True}

HYUNWOONGKO = Recipe(
    of_sides("{}.emb.tok_emb"), "decoder.linear", within("attention self_attention enc_dec_attention",
    "w_q w_k w_v w_concat"), ("ffn.linear1 ffn.linear2",), THREE, ends={"eps": 1e-12, "names": "gamma beta"},
)  # fmt: skip
SAMLYNNEVANS = Recipe(
    of_sides("{}.embed.embed"), "out", within("attn attn_1 attn_2", "q_linear k_linear v_linear out"),
    ("ff.linear_1 ff.linear_2",), ("norm_1 norm_2", "norm_1 norm_2 norm_3"), last=of_sides("{}.norm"), ends=ALPHA,
    scaled=True, positions=of_sides("{}.pe.pe"), shape=LINES,
    sines=waves(lambda i: 2 * i / WIDTH),  # of even i and odd i alike
)  # fmt: skip
JADORE801120 = Recipe(
    ("encoder.src_word_emb", "decoder.trg_word_emb"), "trg_word_prj",
    within("slf_attn slf_attn enc_attn", "w_qs w_ks w_vs fc"), ("pos_ffn.w_1 pos_ffn.w_2",),
    ("slf_attn.layer_norm pos_ffn.layer_norm", "slf_attn.layer_norm enc_attn.layer_norm pos_ffn.layer_norm"),
    of_sides("{}.layer_stack.{{n}}."), ends={"eps": 1e-6}, positions=of_sides("{}.position_enc.pos_table"), shape=LINES,
    embedding_norms=of_sides("{}.layer_norm"), biases=(False, False), output_bias=False, width=5 * HEADS,
    copies=dict.fromkeys(("encoder.src_word_emb", "trg_word_prj"), "decoder.trg_word_emb"), output_scale=WIDTH**-0.5,
)  # fmt: skip
HKPROJ = Recipe(
    of_sides("{}_embed.embedding", "src tgt"), "projection_layer.proj",
    within("self_attention_block self_attention_block cross_attention_block", "w_q w_k w_v w_o"),
    ("feed_forward_block.linear_1 feed_forward_block.linear_2",),
    tuple(" ".join(f"residual_connections.{i}.norm" for i in range(n)) for n in (2, 3)), last=of_sides("{}.norm"),
    ends=ALPHA, scaled=True, positions=of_sides("{}_pos.pe", "src tgt"), shape=LINES, biases=(False, False),
)  # fmt: skip
ALADDINPERSSON = SameMapForEachHead(
    of_sides("{}.word_embedding"), "decoder.fc_out",
    within("attention attention transformer_block.attention", "queries keys values fc_out"),
    within("feed_forward transformer_block.feed_forward", "0 2"),
    ("norm1 norm2", "norm transformer_block.norm1 transformer_block.norm2"), sines=None,
    positions=of_sides("{}.position_embedding.weight"), pad=0,
)  # fmt: skip
BENTREVETT = Recipe(
    of_sides("{}.tok_embedding"), "decoder.fc_out", within("self_attention self_attention encoder_attention",
    "fc_q fc_k fc_v fc_o"), ("positionwise_feedforward.fc_1 positionwise_feedforward.fc_2",),
    ("self_attn_layer_norm ff_layer_norm", "self_attn_layer_norm enc_attn_layer_norm ff_layer_norm"), scaled=True,
    sines=None, positions=of_sides("{}.pos_embedding.weight"),
)  # fmt: skip
D2L = Recipe(
    of_sides("{}.embedding"), "decoder.dense", within("attention attention1 attention2", "W_q W_k W_v W_o"),
    ("ffn.dense1 ffn.dense2",), ("addnorm1.ln addnorm2.ln", "addnorm1.ln addnorm2.ln addnorm3.ln"),
    of_sides("{}.blks.block{{n}}."), scaled=True, biases=(False, False),
)  # fmt: skip
GORDICALEKSA = Recipe(
    of_sides("{}_embedding.embeddings_table", "src trg"), "decoder_generator.linear",
    within("multi_headed_attention trg_multi_headed_attention src_multi_headed_attention",
    "qkv_nets.0 qkv_nets.1 qkv_nets.2 out_projection_net"), ("pointwise_net.linear1 pointwise_net.linear2",),
    tuple(" ".join(f"sublayers.{i}.norm" for i in range(n)) for n in (2, 3)), of_sides("{0}.{0}_layers.{{n}}."),
    last=of_sides("{}.norm"), scaled=True,
    positions=of_sides("{}_pos_embedding.positional_encodings_table", "src trg"),
)  # fmt: skip
LABML = Recipe(
    of_sides("{}_embed.linear", "src tgt"), "generator.projection",
    within("self_attn self_attn src_attn", "query.linear key.linear value.linear output"),
    ("feed_forward.layer1 feed_forward.layer2",), ("norm_self_attn norm_ff", "norm_self_attn norm_src_attn norm_ff"),
    last=of_sides("{}.norm"), scaled=True, positions=of_sides("{}_embed.positional_encodings", "src tgt"),
    shape=BATCHES, pad=0,
)  # fmt: skip
DREAMGONFLY = Recipe(
    of_sides("{}.embedding"), "decoder.generator", tuple(
        f"{layer}.sublayer.query_projection {layer}.sublayer.key_projection {layer}.sublayer.value_projection "
        f"{layer}.sublayer.final_projection"
        for layer in ("self_attention_layer", "self_attention_layer", "memory_attention_layer")
    ),
    within("pointwise_feedforward_layer.sublayer.feed_forward", "0 3"),
    tuple(" ".join(f"{layer}.layer_normalization" for layer in layers.split()) for layers in (
        "self_attention_layer pointwise_feedforward_layer",
        "self_attention_layer memory_attention_layer pointwise_feedforward_layer")),
    of_sides("{0}.{0}_layers.{{n}}."), ends={"eps": 1e-6, "names": "gain bias", "deviation": True}, scaled=True,
    positions=of_sides("{}.embedding.pe"), shape=LINES, pad=0,
    copies={f"{side}.embedding.embbedding": f"{side}.embedding" for side in ("encoder", "decoder")}
    | {"decoder.generator": "decoder.embedding"},
)  # fmt: skip
WMATHOR = Recipe(
    ("encoder.src_emb", "decoder.tgt_emb"), "projection", within("enc_self_attn dec_self_attn dec_enc_attn",
    "W_Q W_K W_V fc"), within("pos_ffn.fc", "0 2"), positions=of_sides("{}.pos_emb.pe"), shape=BATCHES,
    biases=(False, False), ffn_bias=False, output_bias=False, pad=0,
)  # fmt: skip
_BRANDO = "transformer_encoder_decoder"
BRANDOKOCH = Recipe(
    of_sides(f"{_BRANDO}.{{}}_embedding", "src trg"), f"{_BRANDO}.linear",
    ("W_q W_k W_v mha_layer.W_0", *(f"W_q_{i} W_k_{i} W_v_{i} mha_layer_{i}.W_0" for i in (1, 2))),
    within("ffn_layer", "w_1 w_2"), ("add_and_norm_layer_1.layer_norm add_and_norm_layer_2.layer_norm",
    "add_and_norm_1.layer_norm add_and_norm_2.layer_norm add_and_norm_3.layer_norm"),
    of_sides(f"{_BRANDO}.{{0}}.{{0}}_blocks.{{{{n}}}}."), scaled=True, shape=LINES,
    positions=of_sides(f"{_BRANDO}.{{}}_pos_embedding.pe_table", "src trg"), sizes=(VOCABS[1],) * 2, pad=0,
    copies=dict.fromkeys((f"{_BRANDO}.trg_embedding", f"{_BRANDO}.linear"), f"{_BRANDO}.src_embedding"),
)  # fmt: skip
AJHALTHOR = JoinedHeadByHead(
    of_sides("{}.sentence_embedding.embedding"), "linear",
    (*within("attention self_attention", "qkv_layer linear_layer"),
     *within("encoder_decoder_attention", "kv_layer q_layer linear_layer")), within("ffn", "linear1 linear2"),
    ("norm1 norm2", "layer_norm1 layer_norm2 layer_norm3"), ends={"names": "gamma beta"}, pad=0,
)  # fmt: skip
JAYPARKS = Convolved(
    ("encoder.src_emb", "decoder.tgt_emb"), "tgt_proj.linear",
    tuple(" ".join([*(f"{place}.multihead_attn.w_{one}.linear" for one in "qkv"), f"{place}.proj.linear"])
          for place in ("enc_self_attn", "dec_self_attn", "dec_enc_attn")), within("pos_ffn", "conv1 conv2"),
    ("enc_self_attn.layer_norm pos_ffn.layer_norm",
     "dec_self_attn.layer_norm dec_enc_attn.layer_norm pos_ffn.layer_norm"),
    ends={"eps": 1e-6, "names": "gamma beta", "deviation": True}, positions=of_sides("{}.pos_emb.pos_enc.weight"),
    output_bias=False, pad=0,
)  # fmt: skip

# Decoders alone.
WIDER = {"hidden": 4 * WIDTH, "sizes": VOCABS[1:], "sines": None}
GPT = Joined(
    ("transformer.wte",), "lm_head", within("attn", "c_attn c_proj"), within("mlp", "c_fc c_proj"), ("ln_1 ln_2",),
    ("transformer.h.{n}.",), ("transformer.ln_f",), act="gelu", positions=("transformer.wpe.weight",),
    output_bias=False, copies={"lm_head": "transformer.wte"}, **WIDER,
)  # fmt: skip
RASBT = Recipe(
    ("tok_emb",), "out_head", within("att", "W_query W_key W_value out_proj"), within("ff.layers", "0 2"),
    ("norm1 norm2",), ("trf_blocks.{n}.",), ("final_norm",), ends={"names": "scale shift"}, biases=(False, True),
    act="gelu_tanh", positions=("pos_emb.weight",), output_bias=False,
    buffers={"att.mask": 1 - causal(LENGTH).float()}, **WIDER,
)  # fmt: skip
LECTURE = HeadByHead(
    ("token_embedding_table",), "lm_head", within("sa", "heads proj"), within("ffwd.net", "0 2"), ("ln1 ln2",),
    ("blocks.{n}.",), ("ln_f",), positions=("position_embedding_table.weight",), **WIDER,
)  # fmt: skip
PBLOEM = Recipe(
    ("token_embedding",), "toprobs", within("attention", "toqueries tokeys tovalues unifyheads"), within("ff", "0 2"),
    ("norm1 norm2",), ("tblocks.{n}.",), biases=(False, True), positions=("pos_embedding.weight",), **WIDER,
)  # fmt: skip
LLAMA2C = Rotary(
    ("tok_embeddings",), "output", within("attention", "wq wk wv wo"), within("feed_forward", "w1 w2 w3"),
    ("attention_norm ffn_norm",), ("layers.{n}.",), ("norm",), output_bias=False, copies={"output": "tok_embeddings"},
    act="silu", ffn_bias=False, sizes=VOCABS[1:], sines=None,
)  # fmt: skip


@dataclass(frozen=True)
class Code:
    """One repository's model: how it computes, how it is saved, what its card leaves open and what answers that."""

    card: str
    run: Recipe
    asked: dict = field(default_factory=dict)  # the answer to each question that is left
    beside: Callable[[State], dict] = dict  # what is saved, of the state

    @property
    def alone(self):
        return len(self.run.tables) == 1


HEADED = {"n_heads": HEADS}
SPECIAL = {"pad_id": 0, "bos_id": 2, "eos_id": 3}
END = {"eos_id": 3}


def _settings(**of):
    return lambda state: {"epoch": 3, "settings": Namespace(n_head=HEADS, d_k=5, **of), "model": dict(state)}


def _with_arguments(**of):
    return lambda state: {"model": dict(state), "model_args": of, "iter_num": 9}


CODES = {
    "hyunwoongko": Code("hyunwoongko", HYUNWOONGKO, HEADED),
    "SamLynnEvans": Code("samlynnevans", SAMLYNNEVANS, HEADED),
    "jadore801120, one table, prj": Code(
        "jadore801120", JADORE801120, beside=_settings(scale_emb_or_prj="prj", proj_share_weight=True)
    ),
    "jadore801120, one table, emb": Code(
        "jadore801120", replace(JADORE801120, scaled=True, output_scale=1.0), beside=_settings(scale_emb_or_prj="emb")
    ),
    "jadore801120, several tables": Code(
        "jadore801120", replace(JADORE801120, copies={}, output_scale=1.0), beside=_settings(scale_emb_or_prj="prj")
    ),
    "jadore801120, weights alone": Code(
        "jadore801120", JADORE801120, HEADED | {"scale_embedding": False, "output_scale": 0.25}
    ),
    "hkproj": Code("hkproj", HKPROJ, HEADED, lambda state: {"epoch": 1, "model_state_dict": dict(state)}),
    "aladdinpersson": Code("aladdinpersson", ALADDINPERSSON, SPECIAL),
    "bentrevett": Code("bentrevett", BENTREVETT, HEADED),
    "d2l": Code("d2l", D2L, HEADED | {"pad_id": 1, "bos_id": 2, "eos_id": 3}),
    "gordicaleksa": Code("gordicaleksa", GORDICALEKSA, HEADED, lambda state: {"state_dict": dict(state)}),
    "labml": Code("labml", LABML, HEADED | SPECIAL),
    "labml, autoregressive": Code(
        "labml-autoregressive", replace(LABML, tables=LABML.tables[:1], sizes=VOCABS[1:]), HEADED | END
    ),
    "dreamgonfly": Code("dreamgonfly", DREAMGONFLY, HEADED),
    "dreamgonfly, no positions": Code(
        "dreamgonfly",
        replace(DREAMGONFLY, scaled=False, sines=None, positions=(), copies={"decoder.generator": "decoder.embedding"}),
        HEADED,
    ),
    "wmathor": Code("wmathor", WMATHOR, HEADED | {"bos_id": 2, "eos_id": 3}),
    "brandokoch": Code("brandokoch", BRANDOKOCH, HEADED),
    "ajhalthor": Code("ajhalthor", AJHALTHOR, HEADED | SPECIAL),
    "jayparks": Code(
        "jayparks",
        JAYPARKS,
        beside=lambda state: {"opt": Namespace(n_heads=HEADS, d_k=4), "curr_epochs": 1, "model_params": dict(state)},
    ),
    "nanoGPT": Code("nanogpt", GPT, END, _with_arguments(n_head=HEADS, n_layer=LAYERS)),
    "nanoGPT, no biases": Code(
        "nanogpt", replace(GPT, biases=(False, False), ffn_bias=False, ends={"shifted": False}), HEADED | END
    ),
    "minGPT": Code(
        "mingpt",
        replace(GPT, act="gelu_tanh", copies={}, buffers={"attn.bias": causal(LENGTH).float()[None, None]}),
        HEADED | END,
    ),
    "rasbt": Code("rasbt", RASBT, HEADED | END, lambda state: {"model_state_dict": dict(state)}),
    "ng-video-lecture": Code("ng-video-lecture", LECTURE, END),
    "pbloem": Code("pbloem", PBLOEM, HEADED | END),
    "llama2.c": Code(
        "llama2c", LLAMA2C, beside=_with_arguments(n_heads=HEADS, n_kv_heads=2, max_seq_len=LENGTH, dim=WIDTH)
    ),
}


def sentences(code):
    """Padded ids of both sides; none for a decoder alone."""
    if code.alone:
        return None, torch.tensor([[5, 6, 7, 8, 9, 10], [11, 4, 5, 6, 7, 7]])
    pad = code.run.pad
    src = torch.tensor([[5, 6, 7, 8, 9, 10], [11, 4, 5, 6, pad, pad], [2, 9, 3, pad, pad, pad]])
    tgt = torch.tensor([[2, 5, 6, 7, 11], [2, 8, 9, 10, pad], [2, 12, pad, pad, pad]])
    return src, tgt


def drawn(code, seed=0):
    """The state of a code with random parameters."""
    torch.manual_seed(seed)
    state = State()
    code.run(state, *sentences(code))
    return state
