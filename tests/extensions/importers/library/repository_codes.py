"""The codes of popular repositories: what each computes, how it is saved, and what its card leaves open.

Written anew from their published names and orders of operations; a parameter that is asked for the first time gets
random values, so that a first pass makes the state that the repository would save. Sources: the addresses in
`importers/cards/`.
"""

import math
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F

WIDTH, HIDDEN, HEADS, LAYERS, LENGTH, VOCABS = 16, 24, 4, 2, 32, (17, 19)
ACTS = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}


class State(dict):
    """Parameters by name; those that are asked for the first time are drawn."""

    def of(self, name, *shape, around=0.0):
        if name not in self:
            self[name] = around + torch.randn(shape) * (0.3 if len(shape) > 1 else 0.2)
        return self[name]

    def linear(self, x, name, out=WIDTH, bias=True):
        weight = self.of(f"{name}.weight", out, x.size(-1))
        return F.linear(x, weight, self.of(f"{name}.bias", out) if bias else None)


def attention(q, k, v, mask, divisor=None):
    """[B, T, H d] each: heads are consecutive dimensions."""
    q, k, v = (x.view(*x.shape[:2], HEADS, -1).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(-2, -1) / (divisor or math.sqrt(q.size(-1)))
    return (scores.masked_fill(~mask, -1e9).softmax(-1) @ v).transpose(1, 2).flatten(2)


def causal(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


def waves(exponent=lambda i: 2 * (i // 2) / WIDTH):
    """Sines in even columns, cosines in odd ones, of p / 10000^exponent."""
    rows = [[p / 10000 ** exponent(i) for i in range(WIDTH)] for p in range(LENGTH)]
    return torch.tensor([[math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(row)] for row in rows])


def within(places, parts):
    """The names of the parts of each attention, which is at a place in a layer."""
    return tuple(" ".join(f"{place}.{part}" for part in parts.split()) for place in places.split())


def of_sides(name, sides="encoder decoder"):
    return tuple(name.format(side) for side in sides.split())


@dataclass(frozen=True)
class Recipe:
    """An encoder and a decoder, or one stack alone; of names in a layer those of a stack are words of one text."""

    tables: tuple[str, ...]
    output: str
    attention: tuple[str, ...]  # of the first stack, of the second, across: queries, keys, values, output
    ffn: tuple[str, ...]  # up and down, of both stacks or of each
    norms: tuple[str, ...] = ("- -", "- - -")  # in the order of the sub-layers
    layers: tuple[str, ...] = ("encoder.layers.{n}", "decoder.layers.{n}")
    last: tuple[str, ...] = ()  # norms behind the stacks, where they stand before the sub-layers
    ends: Mapping = field(default_factory=dict)  # of norms: names, epsilon, standard deviation
    scaled: bool = False
    positions: tuple[str, ...] = ()  # names of the tables that are saved
    shape: tuple[int, ...] = (LENGTH, WIDTH)  # of these
    sines: torch.Tensor | None = field(default_factory=waves)  # None where positions are learned
    embedding_norms: tuple[str, ...] = ()
    biases: tuple[bool, bool] = (True, True)  # of the three maps of an attention, and of its output
    ffn_bias: bool = True
    output_bias: bool = True
    act: str = "relu"
    hidden: int = HIDDEN
    width: int = WIDTH  # of all heads
    copies: Mapping[str, str] = field(default_factory=dict)  # names of tables that are others
    buffers: Mapping[str, torch.Tensor] = field(default_factory=dict)  # masks that each layer has
    output_scale: float = 1.0
    sizes: tuple[int, ...] = VOCABS
    pad: int = 1

    def __call__(self, s, src, tgt):
        for name, size in zip(self.tables, self.sizes, strict=True):
            if name not in self.copies:
                s.of(f"{name}.weight", size, WIDTH)
        for name, own in self.copies.items():
            s.setdefault(f"{name}.weight", s[f"{own}.weight"])
        future = causal(tgt.size(1))  # behind a text is only padding
        if src is None:
            x = self.stack(s, 0, tgt, future)
        else:
            seen = (src != self.pad)[:, None, None]
            x = self.stack(s, 1, tgt, future, self.stack(s, 0, src, seen), seen)
        return s.linear(x, self.output, VOCABS[1], self.output_bias) * self.output_scale

    def stack(self, s, i, ids, mask, memory=None, seen=None):
        x = self.embedded(s, i, ids)
        for n in range(LAYERS):
            at = self.layers[i].format(n=n)
            own, across, ffn = (
                [f"{at}.{name}" for name in names[place % len(names)].split()]
                for names, place in ((self.attention, i), (self.attention, -1), (self.ffn, i))
            )
            steps = [lambda z, own=own: self.attend(s, z, z, mask, own)]
            if memory is not None:
                steps.append(lambda z, across=across: self.attend(s, z, memory, seen, across))
            steps.append(lambda z, ffn=ffn: self.network(s, z, ffn))
            for norm, step in zip(self.norms[i].split(), steps, strict=True):
                x = self.around(s, x, f"{at}.{norm}", step)
            for name, table in self.buffers.items():
                s.setdefault(f"{at}.{name}", table)
        return self.norm(s, x, self.last[i]) if self.last else x

    def embedded(self, s, i, ids):
        x = s[f"{self.tables[i]}.weight"][ids] * (math.sqrt(WIDTH) if self.scaled else 1)
        x = x + self.places(s, i, ids.size(1))
        return self.norm(s, x, self.embedding_norms[i]) if self.embedding_norms else x

    def places(self, s, i, n):
        if self.sines is None:
            return s.of(self.positions[i], LENGTH, WIDTH)[:n] if self.positions else 0
        if self.positions:
            s.setdefault(self.positions[i], self.sines.view(self.shape))
        return self.sines[:n]

    def around(self, s, x, norm, step):
        return x + step(self.norm(s, x, norm)) if self.last else self.norm(s, step(x) + x, norm)

    def norm(self, s, x, name):
        how = {"eps": 1e-5, "names": "weight bias", "deviation": False} | self.ends
        scale, shift = (name if name.endswith("-") else f"{name}.{one}" for one in how["names"].split())
        centred = x - x.mean(-1, keepdim=True)
        if how["deviation"]:
            centred = centred / (x.std(-1, keepdim=True) + how["eps"])
        else:
            centred = centred / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + how["eps"])
        if name.endswith("-"):
            return centred
        return s.of(scale, WIDTH, around=1.0) * centred + (s.of(shift, WIDTH) if how.get("shifted", True) else 0)

    def attend(self, s, x, y, mask, names):
        q, k, v = (s.linear(z, name, self.width, self.biases[0]) for z, name in zip((x, y, y), names[:3], strict=True))
        return s.linear(attention(q, k, v, mask), names[3], bias=self.biases[1])

    def network(self, s, x, names):
        up, down = names
        return s.linear(ACTS[self.act](s.linear(x, up, self.hidden, self.ffn_bias)), down, bias=self.ffn_bias)


class SameMapForEachHead(Recipe):
    """aladdinpersson: every head's part goes through the same small map, and scores are divided by the width's root."""

    def attend(self, s, x, y, mask, names):
        part = WIDTH // HEADS
        heads = [
            s.linear(z.reshape(*z.shape[:2], HEADS, part), name, part, bias=False).flatten(2)
            for z, name in zip((x, y, y), names[:3], strict=True)
        ]
        return s.linear(attention(*heads, mask, divisor=WIDTH**0.5), names[3])


class JoinedHeadByHead(Recipe):
    """ajhalthor: one map makes [B, T, H, parts d]."""

    def attend(self, s, x, y, mask, names):
        def cut(made, parts):
            return [one.flatten(2) for one in made.view(*made.shape[:2], HEADS, -1).chunk(parts, dim=-1)]

        joint, *alone, out = names
        if alone:
            q, (k, v) = s.linear(x, alone[0]), cut(s.linear(y, joint, 2 * WIDTH), 2)
        else:
            q, k, v = cut(s.linear(x, joint, 3 * WIDTH), 3)
        return s.linear(attention(q, k, v, mask), out)


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
        return s.linear(attention(q, k, v, mask), names[1], bias=self.biases[1])


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
        return s.linear(torch.cat(made, dim=-1), names[1])


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
        return s.linear(attention(q.flatten(2), k, v, mask), names[3], bias=False)

    def network(self, s, x, names):
        gate, up, down = names
        return s.linear(F.silu(s.linear(x, gate, HIDDEN, False)) * s.linear(x, up, HIDDEN, False), down, bias=False)


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
    of_sides("{}.layer_stack.{{n}}"), ends={"eps": 1e-6}, positions=of_sides("{}.position_enc.pos_table"), shape=LINES,
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
    of_sides("{}.blks.block{{n}}"), scaled=True, biases=(False, False),
)  # fmt: skip
GORDICALEKSA = Recipe(
    of_sides("{}_embedding.embeddings_table", "src trg"), "decoder_generator.linear",
    within("multi_headed_attention trg_multi_headed_attention src_multi_headed_attention",
    "qkv_nets.0 qkv_nets.1 qkv_nets.2 out_projection_net"), ("pointwise_net.linear1 pointwise_net.linear2",),
    tuple(" ".join(f"sublayers.{i}.norm" for i in range(n)) for n in (2, 3)), of_sides("{0}.{0}_layers.{{n}}"),
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
    of_sides("{0}.{0}_layers.{{n}}"), ends={"eps": 1e-6, "names": "gain bias", "deviation": True}, scaled=True,
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
    of_sides(f"{_BRANDO}.{{0}}.{{0}}_blocks.{{{{n}}}}"), scaled=True, shape=LINES,
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
    ("transformer.h.{n}",), ("transformer.ln_f",), act="gelu", positions=("transformer.wpe.weight",),
    output_bias=False, copies={"lm_head": "transformer.wte"}, **WIDER,
)  # fmt: skip
RASBT = Recipe(
    ("tok_emb",), "out_head", within("att", "W_query W_key W_value out_proj"), within("ff.layers", "0 2"),
    ("norm1 norm2",), ("trf_blocks.{n}",), ("final_norm",), ends={"names": "scale shift"}, biases=(False, True),
    act="gelu_tanh", positions=("pos_emb.weight",), output_bias=False,
    buffers={"att.mask": 1 - causal(LENGTH).float()}, **WIDER,
)  # fmt: skip
LECTURE = HeadByHead(
    ("token_embedding_table",), "lm_head", within("sa", "heads proj"), within("ffwd.net", "0 2"), ("ln1 ln2",),
    ("blocks.{n}",), ("ln_f",), positions=("position_embedding_table.weight",), **WIDER,
)  # fmt: skip
PBLOEM = Recipe(
    ("token_embedding",), "toprobs", within("attention", "toqueries tokeys tovalues unifyheads"), within("ff", "0 2"),
    ("norm1 norm2",), ("tblocks.{n}",), biases=(False, True), positions=("pos_embedding.weight",), **WIDER,
)  # fmt: skip
LLAMA2C = Rotary(
    ("tok_embeddings",), "output", within("attention", "wq wk wv wo"), within("feed_forward", "w1 w3 w2"),
    ("attention_norm ffn_norm",), ("layers.{n}",), ("norm",), output_bias=False, copies={"output": "tok_embeddings"},
    sizes=VOCABS[1:], sines=None,
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
