"""What the codes of popular repositories compute, written anew from their published names and order of operations.

Each function takes its parameters by the repository's own names; a name that is new gets random values, so that a first
pass makes the state that the repository would save. Sources: the addresses in `importers/cards/`.
"""

import math

import torch
import torch.nn.functional as F

WIDTH, HIDDEN, HEADS, LAYERS, LENGTH, VOCABS = 16, 24, 4, 2, 32, (17, 19)
ACTS = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu}


class State(dict):
    """Parameters by name; those that are asked for the first time are drawn."""

    def of(self, name, *shape, around=0.0):
        if name not in self:
            self[name] = around + torch.randn(shape) * (0.3 if len(shape) > 1 else 0.2)
        return self[name]

    def kept(self, name, table):
        return self.setdefault(name, table)

    def linear(self, x, name, out=WIDTH, bias=True):
        weight = self.of(f"{name}.weight", out, x.size(-1))
        return F.linear(x, weight, self.of(f"{name}.bias", out) if bias else None)

    def norm(self, x, name, eps=1e-5, names=("weight", "bias"), deviation=False):
        scale, shift = self.of(f"{name}.{names[0]}", WIDTH, around=1.0), self.of(f"{name}.{names[1]}", WIDTH)
        centred = x - x.mean(-1, keepdim=True)
        if deviation:
            return scale * centred / (x.std(-1, keepdim=True) + eps) + shift
        return scale * centred / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + eps) + shift

    def network(self, x, up, down, act="relu", hidden=HIDDEN, bias=True):
        return self.linear(ACTS[act](self.linear(x, up, hidden, bias)), down, bias=bias)

    def attend(self, x, y, mask, names, bias=(True, True), heads=HEADS, width=WIDTH):
        """Queries of x, keys and values of y, by four names; biases of the three and of the last."""
        q, k, v = (self.linear(z, name, width, bias[0]) for z, name in zip((x, y, y), names, strict=False))
        return self.linear(attention(q, k, v, mask, heads), names[3], bias=bias[1])


def attention(q, k, v, mask, heads=HEADS, divisor=None):
    """[B, T, H d] each: heads are consecutive dimensions."""
    q, k, v = (x.view(*x.shape[:2], heads, -1).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(-2, -1) / (divisor or math.sqrt(q.size(-1)))
    return (scores.masked_fill(~mask, -1e9).softmax(-1) @ v).transpose(1, 2).flatten(2)


def causal(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


def masks(src, tgt, pad):
    return (src != pad)[:, None, None], (tgt != pad)[:, None, None] & causal(tgt.size(1))


def waves(length=LENGTH, exponent=lambda i: 2 * (i // 2) / WIDTH):
    """Sines in even columns, cosines in odd ones, of p / 10000^exponent."""
    rows = [[p / 10000 ** exponent(i) for i in range(WIDTH)] for p in range(length)]
    return torch.tensor([[math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(row)] for row in rows])


def hyunwoongko(s, src, tgt, pad=1):
    src_mask, tgt_mask = masks(src, tgt, pad)
    ends = {"eps": 1e-12, "names": ("gamma", "beta")}

    def attend(x, y, mask, name):
        return s.attend(x, y, mask, [f"{name}.{one}" for one in ("w_q", "w_k", "w_v", "w_concat")])

    x, y = (
        s.of(f"{side}.emb.tok_emb.weight", size, WIDTH)[ids] + waves()[: ids.size(1)]
        for side, size, ids in zip(("encoder", "decoder"), VOCABS, (src, tgt), strict=True)
    )
    for n in range(LAYERS):
        at = f"encoder.layers.{n}"
        x = s.norm(attend(x, x, src_mask, f"{at}.attention") + x, f"{at}.norm1", **ends)
        x = s.norm(s.network(x, f"{at}.ffn.linear1", f"{at}.ffn.linear2") + x, f"{at}.norm2", **ends)
    for n in range(LAYERS):
        at = f"decoder.layers.{n}"
        y = s.norm(attend(y, y, tgt_mask, f"{at}.self_attention") + y, f"{at}.norm1", **ends)
        y = s.norm(attend(y, x, src_mask, f"{at}.enc_dec_attention") + y, f"{at}.norm2", **ends)
        y = s.norm(s.network(y, f"{at}.ffn.linear1", f"{at}.ffn.linear2") + y, f"{at}.norm3", **ends)
    return s.linear(y, "decoder.linear", VOCABS[1])


def samlynnevans(s, src, tgt, pad=1):
    src_mask, tgt_mask = masks(src, tgt, pad)
    table = waves(exponent=lambda i: 2 * i / WIDTH)  # of even i and odd i alike
    ends = {"eps": 1e-6, "names": ("alpha", "bias"), "deviation": True}

    def embed(side, size, ids):
        x = s.of(f"{side}.embed.embed.weight", size, WIDTH)[ids] * math.sqrt(WIDTH)
        return x + s.kept(f"{side}.pe.pe", table[None])[:, : ids.size(1)]

    def attend(x, y, mask, name):
        return s.attend(x, y, mask, [f"{name}.{one}" for one in ("q_linear", "k_linear", "v_linear", "out")])

    x, y = embed("encoder", VOCABS[0], src), embed("decoder", VOCABS[1], tgt)
    for n in range(LAYERS):
        at = f"encoder.layers.{n}"
        z = s.norm(x, f"{at}.norm_1", **ends)
        x = x + attend(z, z, src_mask, f"{at}.attn")
        x = x + s.network(s.norm(x, f"{at}.norm_2", **ends), f"{at}.ff.linear_1", f"{at}.ff.linear_2")
    x = s.norm(x, "encoder.norm", **ends)
    for n in range(LAYERS):
        at = f"decoder.layers.{n}"
        z = s.norm(y, f"{at}.norm_1", **ends)
        y = y + attend(z, z, tgt_mask, f"{at}.attn_1")
        y = y + attend(s.norm(y, f"{at}.norm_2", **ends), x, src_mask, f"{at}.attn_2")
        y = y + s.network(s.norm(y, f"{at}.norm_3", **ends), f"{at}.ff.linear_1", f"{at}.ff.linear_2")
    return s.linear(s.norm(y, "decoder.norm", **ends), "out", VOCABS[1])


def jadore801120(s, src, tgt, pad=1, shared=True, scale="prj", d_k=5):
    src_mask, tgt_mask = masks(src, tgt, pad)
    size = VOCABS[1] if shared else VOCABS[0]
    target = s.of("decoder.trg_word_emb.weight", VOCABS[1], WIDTH)
    source = (
        s.kept("encoder.src_word_emb.weight", target) if shared else s.of("encoder.src_word_emb.weight", size, WIDTH)
    )
    if shared:
        s.kept("trg_word_prj.weight", target)

    def embed(side, table, ids):
        x = table[ids] * (math.sqrt(WIDTH) if shared and scale == "emb" else 1)
        x = x + s.kept(f"{side}.position_enc.pos_table", waves()[None])[:, : ids.size(1)]
        return s.norm(x, f"{side}.layer_norm", eps=1e-6)

    def attend(x, y, mask, name):
        names = [f"{name}.{one}" for one in ("w_qs", "w_ks", "w_vs", "fc")]
        return s.norm(s.attend(x, y, mask, names, (False, False), width=HEADS * d_k) + x, f"{name}.layer_norm", 1e-6)

    def network(x, name):
        return s.norm(s.network(x, f"{name}.w_1", f"{name}.w_2") + x, f"{name}.layer_norm", 1e-6)

    x, y = embed("encoder", source, src), embed("decoder", target, tgt)
    for n in range(LAYERS):
        x = network(attend(x, x, src_mask, f"encoder.layer_stack.{n}.slf_attn"), f"encoder.layer_stack.{n}.pos_ffn")
    for n in range(LAYERS):
        y = attend(y, y, tgt_mask, f"decoder.layer_stack.{n}.slf_attn")
        y = network(attend(y, x, src_mask, f"decoder.layer_stack.{n}.enc_attn"), f"decoder.layer_stack.{n}.pos_ffn")
    logits = s.linear(y, "trg_word_prj", VOCABS[1], bias=False)
    return logits * WIDTH**-0.5 if shared and scale == "prj" else logits


def hkproj(s, src, tgt, pad=1):
    src_mask, tgt_mask = masks(src, tgt, pad)
    ends = {"eps": 1e-6, "names": ("alpha", "bias"), "deviation": True}

    def embed(side, size, ids):
        x = s.of(f"{side}_embed.embedding.weight", size, WIDTH)[ids] * math.sqrt(WIDTH)
        return x + s.kept(f"{side}_pos.pe", waves()[None])[:, : ids.size(1)]

    def around(x, at, i, sublayer):
        return x + sublayer(s.norm(x, f"{at}.residual_connections.{i}.norm", **ends))

    def attend(x, y, mask, name):
        return s.attend(x, y, mask, [f"{name}.{one}" for one in ("w_q", "w_k", "w_v", "w_o")], (False, False))

    def network(x, at):
        return s.network(x, f"{at}.feed_forward_block.linear_1", f"{at}.feed_forward_block.linear_2")

    x, y = embed("src", VOCABS[0], src), embed("tgt", VOCABS[1], tgt)
    for n in range(LAYERS):
        at = f"encoder.layers.{n}"
        x = around(x, at, 0, lambda z, at=at: attend(z, z, src_mask, f"{at}.self_attention_block"))
        x = around(x, at, 1, lambda z, at=at: network(z, at))
    x = s.norm(x, "encoder.norm", **ends)
    for n in range(LAYERS):
        at = f"decoder.layers.{n}"
        y = around(y, at, 0, lambda z, at=at: attend(z, z, tgt_mask, f"{at}.self_attention_block"))
        y = around(y, at, 1, lambda z, at=at: attend(z, x, src_mask, f"{at}.cross_attention_block"))
        y = around(y, at, 2, lambda z, at=at: network(z, at))
    return s.linear(s.norm(y, "decoder.norm", **ends), "projection_layer.proj", VOCABS[1])


def aladdinpersson(s, src, tgt, pad=0):
    src_mask, tgt_mask = (src != pad)[:, None, None], causal(tgt.size(1))
    part = WIDTH // HEADS

    def attend(x, y, mask, name):
        def cut(z, one):  # every head's part goes through the same small map
            return s.linear(z.reshape(*z.shape[:2], HEADS, part), f"{name}.{one}", part, bias=False)

        q, k, v = cut(x, "queries"), cut(y, "keys"), cut(y, "values")
        energy = torch.einsum("nqhd,nkhd->nhqk", q, k).masked_fill(~mask, -1e20)
        out = torch.einsum("nhql,nlhd->nqhd", torch.softmax(energy / WIDTH**0.5, dim=3), v)
        return s.linear(out.flatten(2), f"{name}.fc_out")

    def block(x, y, mask, at):
        x = s.norm(attend(x, y, mask, f"{at}.attention") + x, f"{at}.norm1")
        return s.norm(s.network(x, f"{at}.feed_forward.0", f"{at}.feed_forward.2") + x, f"{at}.norm2")

    x, y = (
        s.of(f"{side}.word_embedding.weight", size, WIDTH)[ids]
        + s.of(f"{side}.position_embedding.weight", LENGTH, WIDTH)[: ids.size(1)]
        for side, size, ids in zip(("encoder", "decoder"), VOCABS, (src, tgt), strict=True)
    )
    for n in range(LAYERS):
        x = block(x, x, src_mask, f"encoder.layers.{n}")
    for n in range(LAYERS):
        at = f"decoder.layers.{n}"
        y = s.norm(attend(y, y, tgt_mask, f"{at}.attention") + y, f"{at}.norm")
        y = block(y, x, src_mask, f"{at}.transformer_block")
    return s.linear(y, "decoder.fc_out", VOCABS[1])


def bentrevett(s, src, tgt, pad=1):
    src_mask, tgt_mask = masks(src, tgt, pad)

    def embed(side, size, ids):
        places = s.of(f"{side}.pos_embedding.weight", LENGTH, WIDTH)[: ids.size(1)]
        return s.of(f"{side}.tok_embedding.weight", size, WIDTH)[ids] * math.sqrt(WIDTH) + places

    def attend(x, y, mask, name):
        return s.attend(x, y, mask, [f"{name}.fc_{one}" for one in "qkvo"])

    x, y = embed("encoder", VOCABS[0], src), embed("decoder", VOCABS[1], tgt)
    for side in ("encoder", "decoder"):
        z, mask = (x, src_mask) if side == "encoder" else (y, tgt_mask)
        for n in range(LAYERS):
            at = f"{side}.layers.{n}"
            z = s.norm(z + attend(z, z, mask, f"{at}.self_attention"), f"{at}.self_attn_layer_norm")
            if side == "decoder":
                z = s.norm(z + attend(z, x, src_mask, f"{at}.encoder_attention"), f"{at}.enc_attn_layer_norm")
            ffn = f"{at}.positionwise_feedforward"
            z = s.norm(z + s.network(z, f"{ffn}.fc_1", f"{ffn}.fc_2"), f"{at}.ff_layer_norm")
        x = z if side == "encoder" else x
    return s.linear(z, "decoder.fc_out", VOCABS[1])


def d2l(s, src, tgt, pad=1):
    lengths = (src != pad).sum(1)
    src_mask = (torch.arange(src.size(1)) < lengths[:, None])[:, None, None]

    def embed(side, size, ids):
        x = s.of(f"{side}.embedding.weight", size, WIDTH)[ids] * math.sqrt(WIDTH)
        return x + waves()[: ids.size(1)]

    def attend(x, y, mask, name):
        return s.attend(x, y, mask, [f"{name}.W_{one}" for one in "qkvo"], (False, False))

    x, y = embed("encoder", VOCABS[0], src), embed("decoder", VOCABS[1], tgt)
    for n in range(LAYERS):
        at = f"encoder.blks.block{n}"
        x = s.norm(attend(x, x, src_mask, f"{at}.attention") + x, f"{at}.addnorm1.ln")
        x = s.norm(s.network(x, f"{at}.ffn.dense1", f"{at}.ffn.dense2") + x, f"{at}.addnorm2.ln")
    for n in range(LAYERS):
        at = f"decoder.blks.block{n}"
        y = s.norm(attend(y, y, causal(tgt.size(1)), f"{at}.attention1") + y, f"{at}.addnorm1.ln")
        y = s.norm(attend(y, x, src_mask, f"{at}.attention2") + y, f"{at}.addnorm2.ln")
        y = s.norm(s.network(y, f"{at}.ffn.dense1", f"{at}.ffn.dense2") + y, f"{at}.addnorm3.ln")
    return s.linear(y, "decoder.dense", VOCABS[1])


def gordicaleksa(s, src, tgt, pad=1):
    src_mask, tgt_mask = masks(src, tgt, pad)

    def embed(side, size, ids):
        x = s.of(f"{side}_embedding.embeddings_table.weight", size, WIDTH)[ids] * math.sqrt(WIDTH)
        return x + s.kept(f"{side}_pos_embedding.positional_encodings_table", waves())[: ids.size(1)]

    def attend(x, y, mask, name):
        return s.attend(x, y, mask, [*(f"{name}.qkv_nets.{i}" for i in range(3)), f"{name}.out_projection_net"])

    def before(x, at, i):
        return s.norm(x, f"{at}.sublayers.{i}.norm")

    x, y = embed("src", VOCABS[0], src), embed("trg", VOCABS[1], tgt)
    for n in range(LAYERS):
        at = f"encoder.encoder_layers.{n}"
        z = before(x, at, 0)
        x = x + attend(z, z, src_mask, f"{at}.multi_headed_attention")
        x = x + s.network(before(x, at, 1), f"{at}.pointwise_net.linear1", f"{at}.pointwise_net.linear2")
    x = s.norm(x, "encoder.norm")
    for n in range(LAYERS):
        at = f"decoder.decoder_layers.{n}"
        z = before(y, at, 0)
        y = y + attend(z, z, tgt_mask, f"{at}.trg_multi_headed_attention")
        y = y + attend(before(y, at, 1), x, src_mask, f"{at}.src_multi_headed_attention")
        y = y + s.network(before(y, at, 2), f"{at}.pointwise_net.linear1", f"{at}.pointwise_net.linear2")
    return s.linear(s.norm(y, "decoder.norm"), "decoder_generator.linear", VOCABS[1]).log_softmax(-1)


def labml(s, src, tgt, pad=0):
    """Of vectors [T, B, D] in the repository; a decoder alone is its encoder with a causal mask."""
    alone = src is None
    src_mask, tgt_mask = masks(tgt if alone else src, tgt, pad)

    def embed(side, size, ids):
        x = s.of(f"{side}_embed.linear.weight", size, WIDTH)[ids] * math.sqrt(WIDTH)
        table = s.kept(f"{side}_embed.positional_encodings", waves()[:, None])
        return x + table[: ids.size(1), 0]

    def attend(x, y, mask, name):
        return s.attend(x, y, mask, [*(f"{name}.{one}.linear" for one in ("query", "key", "value")), f"{name}.output"])

    def layer(x, mask, at, memory=None):
        z = s.norm(x, f"{at}.norm_self_attn")
        x = x + attend(z, z, mask, f"{at}.self_attn")
        if memory is not None:
            x = x + attend(s.norm(x, f"{at}.norm_src_attn"), memory, src_mask, f"{at}.src_attn")
        z = s.norm(x, f"{at}.norm_ff")
        return x + s.network(z, f"{at}.feed_forward.layer1", f"{at}.feed_forward.layer2")

    x = embed("src", VOCABS[alone], tgt if alone else src)
    for n in range(LAYERS):
        x = layer(x, causal(tgt.size(1)) if alone else src_mask, f"encoder.layers.{n}")
    x = s.norm(x, "encoder.norm")
    if not alone:
        y = embed("tgt", VOCABS[1], tgt)
        for n in range(LAYERS):
            y = layer(y, tgt_mask, f"decoder.layers.{n}", x)
        x = s.norm(y, "decoder.norm")
    return s.linear(x, "generator.projection", VOCABS[1])


def dreamgonfly(s, src, tgt, pad=0, placed=True):
    src_mask, tgt_mask = masks(src, tgt, pad)
    ends = {"eps": 1e-6, "names": ("gain", "bias"), "deviation": True}

    def embed(side, size, ids):
        table = s.of(f"{side}.embedding.weight", size, WIDTH)
        if not placed:
            return table[ids]
        s.kept(f"{side}.embedding.embbedding.weight", table)
        return table[ids] * math.sqrt(WIDTH) + s.kept(f"{side}.embedding.pe", waves()[None])[:, : ids.size(1)]

    def attend(x, y, mask, at):
        names = [f"{at}.sublayer.{one}_projection" for one in ("query", "key", "value", "final")]
        return s.norm(s.attend(x, y, mask, names) + x, f"{at}.layer_normalization", **ends)

    def network(x, at):
        inside = f"{at}.sublayer.feed_forward"
        return s.norm(s.network(x, f"{inside}.0", f"{inside}.3") + x, f"{at}.layer_normalization", **ends)

    x, y = embed("encoder", VOCABS[0], src), embed("decoder", VOCABS[1], tgt)
    for n in range(LAYERS):
        at = f"encoder.encoder_layers.{n}"
        x = attend(x, x, src_mask, f"{at}.self_attention_layer")
        x = network(x, f"{at}.pointwise_feedforward_layer")
    for n in range(LAYERS):
        at = f"decoder.decoder_layers.{n}"
        y = attend(y, y, tgt_mask, f"{at}.self_attention_layer")
        y = attend(y, x, src_mask, f"{at}.memory_attention_layer")
        y = network(y, f"{at}.pointwise_feedforward_layer")
    s.kept("decoder.generator.weight", s["decoder.embedding.weight"])
    return s.linear(y, "decoder.generator", VOCABS[1])


def wmathor(s, src, tgt, pad=0):
    src_mask, tgt_mask = masks(src, tgt, pad)

    def embed(side, name, size, ids):
        places = s.kept(f"{side}.pos_emb.pe", waves()[:, None])
        return s.of(f"{side}.{name}.weight", size, WIDTH)[ids] + places[: ids.size(1), 0]

    def plain(x):
        return F.layer_norm(x, (WIDTH,))

    def attend(x, y, mask, name):
        names = [f"{name}.{one}" for one in ("W_Q", "W_K", "W_V", "fc")]
        return plain(s.attend(x, y, mask, names, (False, False)) + x)

    def network(x, at):
        return plain(s.network(x, f"{at}.pos_ffn.fc.0", f"{at}.pos_ffn.fc.2", bias=False) + x)

    x, y = embed("encoder", "src_emb", VOCABS[0], src), embed("decoder", "tgt_emb", VOCABS[1], tgt)
    for n in range(LAYERS):
        x = network(attend(x, x, src_mask, f"encoder.layers.{n}.enc_self_attn"), f"encoder.layers.{n}")
    for n in range(LAYERS):
        at = f"decoder.layers.{n}"
        y = attend(attend(y, y, tgt_mask, f"{at}.dec_self_attn"), x, src_mask, f"{at}.dec_enc_attn")
        y = network(y, at)
    return s.linear(y, "projection", VOCABS[1], bias=False)


def brandokoch(s, src, tgt, pad=0):
    src_mask, tgt_mask = masks(src, tgt, pad)
    model = "transformer_encoder_decoder"
    table = s.of(f"{model}.src_embedding.weight", VOCABS[1], WIDTH)
    for name in ("trg_embedding", "linear"):
        s.kept(f"{model}.{name}.weight", table)

    def embed(side, ids):
        places = s.kept(f"{model}.{side}_pos_embedding.pe_table", waves()[None])
        return table[ids] * math.sqrt(WIDTH) + places[:, : ids.size(1)]

    x, y = embed("src", src), embed("trg", tgt)
    for n in range(LAYERS):
        at = f"{model}.encoder.encoder_blocks.{n}"
        names = [f"{at}.W_q", f"{at}.W_k", f"{at}.W_v", f"{at}.mha_layer.W_0"]
        x = s.norm(s.attend(x, x, src_mask, names) + x, f"{at}.add_and_norm_layer_1.layer_norm")
        made = s.network(x, f"{at}.ffn_layer.w_1", f"{at}.ffn_layer.w_2")
        x = s.norm(made + x, f"{at}.add_and_norm_layer_2.layer_norm")
    for n in range(LAYERS):
        at = f"{model}.decoder.decoder_blocks.{n}"
        for i, (read, mask) in enumerate(((None, tgt_mask), (x, src_mask)), 1):
            names = [*(f"{at}.W_{one}_{i}" for one in "qkv"), f"{at}.mha_layer_{i}.W_0"]
            made = s.attend(y, y if read is None else read, mask, names)
            y = s.norm(made + y, f"{at}.add_and_norm_{i}.layer_norm")
        made = s.network(y, f"{at}.ffn_layer.w_1", f"{at}.ffn_layer.w_2")
        y = s.norm(made + y, f"{at}.add_and_norm_3.layer_norm")
    return s.linear(y, f"{model}.linear", VOCABS[1])


def ajhalthor(s, src, tgt, pad=0):
    src_mask, tgt_mask = masks(src, tgt, pad)
    ends = {"names": ("gamma", "beta")}

    def cut(made, parts):
        """Head by head: [B, T, H, parts d] -> so many [B, T, H d]."""
        by_head = made.view(*made.shape[:2], HEADS, -1)
        return [one.flatten(2) for one in by_head.chunk(parts, dim=-1)]

    def itself(x, mask, name):
        q, k, v = cut(s.linear(x, f"{name}.qkv_layer", 3 * WIDTH), 3)
        return s.linear(attention(q, k, v, mask), f"{name}.linear_layer")

    def other(x, y, mask, name):
        k, v = cut(s.linear(y, f"{name}.kv_layer", 2 * WIDTH), 2)
        return s.linear(attention(s.linear(x, f"{name}.q_layer"), k, v, mask), f"{name}.linear_layer")

    x, y = (
        s.of(f"{side}.sentence_embedding.embedding.weight", size, WIDTH)[ids] + waves()[: ids.size(1)]
        for side, size, ids in zip(("encoder", "decoder"), VOCABS, (src, tgt), strict=True)
    )
    for n in range(LAYERS):
        at = f"encoder.layers.{n}"
        x = s.norm(itself(x, src_mask, f"{at}.attention") + x, f"{at}.norm1", **ends)
        x = s.norm(s.network(x, f"{at}.ffn.linear1", f"{at}.ffn.linear2") + x, f"{at}.norm2", **ends)
    for n in range(LAYERS):
        at = f"decoder.layers.{n}"
        y = s.norm(itself(y, tgt_mask, f"{at}.self_attention") + y, f"{at}.layer_norm1", **ends)
        y = s.norm(other(y, x, src_mask, f"{at}.encoder_decoder_attention") + y, f"{at}.layer_norm2", **ends)
        y = s.norm(s.network(y, f"{at}.ffn.linear1", f"{at}.ffn.linear2") + y, f"{at}.layer_norm3", **ends)
    return s.linear(y, "linear", VOCABS[1])


def jayparks(s, src, tgt, pad=0):
    src_mask, tgt_mask = masks(src, tgt, pad)
    ends = {"eps": 1e-6, "names": ("gamma", "beta"), "deviation": True}

    def embed(side, name, size, ids):
        table = s.kept(f"{side}.pos_emb.pos_enc.weight", torch.cat((torch.zeros(1, WIDTH), waves())))
        places = torch.arange(1, ids.size(1) + 1).expand_as(ids) * (ids != pad)  # row 0 is for padding
        return s.of(f"{side}.{name}.weight", size, WIDTH)[ids] + table[places]

    def attend(x, y, mask, name):
        names = [*(f"{name}.multihead_attn.w_{one}.linear" for one in "qkv"), f"{name}.proj.linear"]
        return s.norm(x + s.attend(x, y, mask, names), f"{name}.layer_norm", **ends)

    def network(x, name):
        up, down = s.of(f"{name}.conv1.weight", HIDDEN, WIDTH, 1), s.of(f"{name}.conv2.weight", WIDTH, HIDDEN, 1)
        made = F.relu(F.conv1d(x.transpose(1, 2), up, s.of(f"{name}.conv1.bias", HIDDEN)))
        made = F.conv1d(made, down, s.of(f"{name}.conv2.bias", WIDTH)).transpose(1, 2)
        return s.norm(x + made, f"{name}.layer_norm", **ends)

    x, y = embed("encoder", "src_emb", VOCABS[0], src), embed("decoder", "tgt_emb", VOCABS[1], tgt)
    for n in range(LAYERS):
        at = f"encoder.layers.{n}"
        x = network(attend(x, x, src_mask, f"{at}.enc_self_attn"), f"{at}.pos_ffn")
    for n in range(LAYERS):
        at = f"decoder.layers.{n}"
        y = attend(attend(y, y, tgt_mask, f"{at}.dec_self_attn"), x, src_mask, f"{at}.dec_enc_attn")
        y = network(y, f"{at}.pos_ffn")
    return s.linear(y, "tgt_proj.linear", VOCABS[1], bias=False)
