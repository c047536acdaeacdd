"""What four toolkits compute, written from their papers and their published code, in doubles.

Sources: Ott et al., "fairseq" (2019), with positions as in tensor2tensor, counted behind padding; Klein et al.,
"OpenNMT" (2017), with norms before sub-layers; Kreutzer et al., "Joey NMT" (2019); Junczys-Dowmunt et al., "Marian"
(2018), and its documentation of `--transformer-postprocess`; Vaswani et al. (2017).
"""

import math

import torch
from torch.nn import functional as F

FUNCTIONS = {
    "relu": torch.relu, "gelu": F.gelu, "gelu_accurate": lambda x: F.gelu(x, approximate="tanh"), "linear": lambda x: x,
    "silu": F.silu, "swish": F.silu, "gated-gelu": F.gelu,
}  # fmt: skip

MARIAN_FUNCTIONS = {"relu": torch.relu, "swish": F.silu, "gelu": lambda x: x * torch.sigmoid(1.702 * x)}
MARIAN_PLACES = {"self": "self", "cross": "context", "ffn": "ffn"}
OPENNMT_LAYERS = {"encoder": "encoder.transformer", "decoder": "decoder.transformer_layers"}


def attention(queries, keys, values, allowed, n_heads):
    """Head after head, with -inf where it is not allowed [B, Q, K]."""
    made = []
    for q, k, v in zip(*(one.chunk(n_heads, dim=-1) for one in (queries, keys, values)), strict=True):
        scores = q @ k.transpose(1, 2) / math.sqrt(q.size(-1))
        made.append(scores.masked_fill(~allowed, -torch.inf).softmax(-1) @ v)
    return torch.cat(made, dim=-1)


def sines(positions, d, *, apart):
    """Of positions [...]: all sines before all cosines, or one after the other."""
    half = torch.arange(d // 2, dtype=torch.float64)
    rates = torch.exp(-math.log(10000) * (half / (d // 2 - 1) if apart else half / (d / 2)))
    angle = positions.double()[..., None] * rates
    return (
        torch.cat([angle.sin(), angle.cos()], -1) if apart else torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)
    )


class Stacks:
    """An encoder and a decoder, layer after layer; a toolkit says how it names, embeds, attends and norms.

    Parameters get random values when they are first asked for, norms around 1, every bias at random.
    """

    pad, epsilon, copies = 1, 1e-6, {}

    def __init__(self, sizes):
        torch.manual_seed(0)
        self.state, self.sizes = {}, dict(zip(("encoder", "decoder"), sizes, strict=True))
        self(torch.tensor([[2]]), torch.tensor([[2]]))

    def __call__(self, source, target):
        memory = self.through("encoder", source, self.seen(source, source.size(1)))
        cross = self.seen(source, target.size(1))
        causal = torch.ones(target.size(1), target.size(1), dtype=torch.bool).tril()[None].expand(len(target), -1, -1)
        return self.logits(self.through("decoder", target, causal, memory, cross))

    def seen(self, ids, n_queries):
        """Who may see which id: [B, Q, K]."""
        return (ids != self.pad)[:, None, :].expand(-1, n_queries, -1)

    def through(self, stack, ids, own, memory=None, cross=None):
        x = self.embedded(stack, ids)
        for layer in self.layers(stack):
            x = self.around(layer, "self", x, lambda h, at=layer: self.attend(at, "self", h, h, own))
            if memory is not None:
                x = self.around(layer, "cross", x, lambda h, at=layer: self.attend(at, "cross", h, memory, cross))
            x = self.around(layer, "ffn", x, lambda h, at=layer: self.forward(at, h))
        return self.last(stack, x)

    def of(self, name, *shape):
        """A parameter in doubles; it is saved in float32."""
        if name in self.copies:
            self.of(self.copies[name], *shape)
            self.state[name] = self.state[self.copies[name]]
        if name not in self.state:
            values = torch.randn(shape)
            if ("norm" in name and name.endswith("weight")) or "_ln_scale" in name:
                self.state[name] = 1 + 0.3 * values
            else:
                self.state[name] = values * (0.3 if len(shape) == 1 or shape[0] == 1 else shape[-1] ** -0.5)
        return self.state[name].double()

    def linear(self, name, x, out=None, *, bias=True):
        out = out or self.d
        weight = self.of(f"{name}.weight", out, x.size(-1))
        return F.linear(x, weight, self.of(f"{name}.bias", out) if bias else None)

    def norm(self, name, x, of=("{}.weight", "{}.bias"), row=()):
        centred = x - x.mean(-1, keepdim=True)
        size = (centred.square().mean(-1, keepdim=True) + self.epsilon).sqrt()
        scale, shift = (self.of(one.format(name), *row, self.d) for one in of)
        return centred / size * scale + shift

    def around(self, layer, kind, x, compute):
        name = self.norm_name(layer, kind)
        return x + compute(self.norm(name, x)) if self.pre else self.norm(name, x + compute(x))

    def last(self, stack, x):
        return self.norm(f"{stack}.layer_norm", x) if self.pre else x

    def table(self, name, stack):
        return self.of(name, self.sizes[stack], self.d)

    def attended(self, name, three, x, context, allowed, n_heads, out, *, bias=True):
        """Of three maps and one behind them, by their names."""
        heads = [
            self.linear(f"{name}.{one}", y, bias=bias) for one, y in zip(three, (x, context, context), strict=True)
        ]
        return self.linear(f"{name}.{out}", attention(*heads, allowed, n_heads), bias=bias)


class Fairseq(Stacks):
    epsilon = 1e-5

    def __init__(self, args, sizes):
        self.args, self.d, self.pre = args, args["encoder_embed_dim"], args.get("encoder_normalize_before")
        table = "decoder.embed_tokens.weight"
        self.copies = {table: "encoder.embed_tokens.weight"} if args["share_all_embeddings"] else {}
        if args["share_decoder_input_output_embed"]:
            self.copies = self.copies | {"decoder.output_projection.weight": table}
        super().__init__(sizes)

    def layers(self, stack):
        return [f"{stack}.layers.{i}" for i in range(self.args[f"{stack}_layers"])]

    def embedded(self, stack, ids):
        args = self.args
        x = self.table(f"{stack}.embed_tokens.weight", stack)[ids]
        x = x if args.get("no_scale_embedding") else x * math.sqrt(self.d)
        real = ids != self.pad
        positions = real.cumsum(1) * real + self.pad
        if args.get("encoder_learned_pos"):
            most = args[f"max_{'source' if stack == 'encoder' else 'target'}_positions"]
            x = x + self.of(f"{stack}.embed_positions.weight", most + self.pad + 1, self.d)[positions]
        elif not args.get("no_token_positional_embeddings"):
            x = x + sines(positions, self.d, apart=True) * real[..., None]
        return self.norm(f"{stack}.layernorm_embedding", x) if args.get("layernorm_embedding") else x

    def norm_name(self, layer, kind):
        return f"{layer}.{ {'self': 'self_attn', 'cross': 'encoder_attn', 'ffn': 'final'}[kind] }_layer_norm"

    def attend(self, layer, kind, x, context, allowed):
        heads = self.args[f"{layer.partition('.')[0]}_attention_heads"]
        name = f"{layer}.{'encoder' if kind == 'cross' else 'self'}_attn"
        return self.attended(name, ("q_proj", "k_proj", "v_proj"), x, context, allowed, heads, "out_proj")

    def forward(self, layer, x):
        inner = self.linear(f"{layer}.fc1", x, self.args[f"{layer.partition('.')[0]}_ffn_embed_dim"])
        return self.linear(f"{layer}.fc2", FUNCTIONS[self.args.get("activation_fn", "relu")](inner))

    def logits(self, x):
        return x @ self.table("decoder.output_projection.weight", "decoder").t()


class JoeyNMT(Stacks):
    def __init__(self, model, sizes, norms):
        self.model, self.d, self.pre = model, model["encoder"]["hidden_size"], norms == "pre"
        tables = ("src_embed.lut.weight", "trg_embed.lut.weight", "decoder.output_layer.weight")
        said = (model["tied_embeddings"], model["tied_softmax"])
        self.copies = {tables[i + 1]: tables[i] for i in (0, 1) if said[i]}
        super().__init__(sizes)

    def layers(self, stack):
        return [f"{stack}.layers.{i}" for i in range(self.model[stack]["num_layers"])]

    def embedded(self, stack, ids):
        table = self.table(f"{'src' if stack == 'encoder' else 'trg'}_embed.lut.weight", stack)
        scale = math.sqrt(self.d) if self.model["encoder"]["embeddings"].get("scale") else 1
        return table[ids] * scale + sines(torch.arange(ids.size(1)), self.d, apart=False)

    def norm_name(self, layer, kind):
        own = {"ffn": "feed_forward.layer_norm", "cross": "dec_layer_norm"}
        return f"{layer}.{own.get(kind, 'layer_norm' if layer.startswith('encoder') else 'x_layer_norm')}"

    def attend(self, layer, kind, x, context, allowed):
        stack = layer.partition(".")[0]
        own = "src_src_att" if stack == "encoder" else "trg_trg_att"
        name, heads = f"{layer}.{'src_trg_att' if kind == 'cross' else own}", self.model[stack]["num_heads"]
        return self.attended(name, ("q_layer", "k_layer", "v_layer"), x, context, allowed, heads, "output_layer")

    def forward(self, layer, x):
        inner, own = f"{layer}.feed_forward.pwff_layer", self.model[layer.partition(".")[0]]
        function = FUNCTIONS[self.model["encoder"].get("activation", "relu")]
        return self.linear(f"{inner}.3", function(self.linear(f"{inner}.0", x, own["ff_size"])))

    def logits(self, x):
        return x @ self.table("decoder.output_layer.weight", "decoder").t()


class OpenNMT(Stacks):
    """Of versions 2 and 3; what its state calls the generator is saved beside it."""

    pre = True

    def __init__(self, opt, sizes, version):
        self.opt, self.d = opt, opt["hidden_size" if version == 3 else "enc_rnn_size"]
        self.biased = version < 3 or bool(opt.get("add_qkvbias"))
        self.output = "generator" if version == 3 else "generator.0"
        tables = [f"{stack}.embeddings.make_embedding.emb_luts.0.weight" for stack in OPENNMT_LAYERS]
        self.copies = {tables[1]: tables[0]} if opt["share_embeddings"] else {}
        if opt["share_decoder_embeddings"]:
            self.copies = self.copies | {f"{self.output}.weight": tables[1]}
        super().__init__(sizes)

    def layers(self, stack):
        return [f"{OPENNMT_LAYERS[stack]}.{i}" for i in range(self.opt[f"{stack[:3]}_layers"])]

    def embedded(self, stack, ids):
        table = self.table(f"{stack}.embeddings.make_embedding.emb_luts.0.weight", stack)
        apart = self.opt.get("position_encoding_type") == "SinusoidalConcat"
        return table[ids] * math.sqrt(self.d) + sines(torch.arange(ids.size(1)), self.d, apart=apart)

    def norm_name(self, layer, kind):
        own = "layer_norm" if layer.startswith("encoder") else "layer_norm_1"
        return f"{layer}.{ {'cross': 'layer_norm_2', 'ffn': 'feed_forward.layer_norm'}.get(kind, own) }"

    def attend(self, layer, kind, x, context, allowed):
        name, three = f"{layer}.{'context' if kind == 'cross' else 'self'}_attn", ("query", "keys", "values")
        three = [f"linear_{one}" for one in three]
        heads = self.opt["heads"]
        return self.attended(name, three, x, context, allowed, heads, "final_linear", bias=self.biased)

    def forward(self, layer, x):
        name, function = f"{layer}.feed_forward", self.opt["pos_ffn_activation_fn"]
        inner, bias = self.opt["transformer_ff"], self.opt.get("add_ffnbias", True)
        made = FUNCTIONS[function](self.linear(f"{name}.w_1", x, inner, bias=bias))
        if function in ("silu", "gated-gelu"):
            made = made * self.linear(f"{name}.w_3", x, inner, bias=bias)
        return self.linear(f"{name}.w_2", made, bias=bias)

    def logits(self, x):
        return self.linear(self.output, x, self.sizes["decoder"])


class Marian(Stacks):
    """Ids from `pad` on are no pieces: padding, and the vector of zeros."""

    pre = False

    def __init__(self, options, sizes, *, learned=False):
        self.options, self.d, self.pad, self.learned = options, options["dim-emb"], max(sizes), learned
        super().__init__(sizes)

    def layers(self, stack):
        return [f"{stack}_l{i + 1}" for i in range(self.options[f"{stack[:3]}-depth"])]

    def norm(self, name, x, end=""):
        return super().norm(name, x, (f"{{}}_ln_scale{end}", f"{{}}_ln_bias{end}"), (1,))

    def affine(self, x, name, what, out=None):
        out = out or self.d
        return x @ self.of(f"{name}_W{what}", x.size(-1), out) + self.of(f"{name}_b{what}", 1, out)

    def words(self, stack):
        one = self.options["tied-embeddings-all"] or self.options["tied-embeddings-src"]
        return self.table("Wemb" if one else f"{stack}_Wemb", stack)

    def embedded(self, stack, ids):
        table = self.words(stack)
        x = table[ids.clamp(max=len(table) - 1)] * (ids < self.pad)[..., None]
        if self.learned:  # they take the place of the scale
            x = x + self.of("Wpos", 1000, self.d)[: ids.size(1)]
        else:
            x = math.sqrt(self.d) * x + sines(torch.arange(ids.size(1)), self.d, apart=True)
        return self.norm(f"{stack}_emb", x, "_pre") if "n" in self.options["transformer-postprocess-emb"] else x

    def norm_name(self, layer, kind):
        return f"{layer}_{MARIAN_PLACES[kind]}_{'ffn' if kind == 'ffn' else 'Wo'}"

    def attend(self, layer, kind, x, context, allowed):
        name = f"{layer}_{MARIAN_PLACES[kind]}"
        heads = [self.affine(one, name, letter) for one, letter in ((x, "q"), (context, "k"), (context, "v"))]
        return self.affine(attention(*heads, allowed, self.options["transformer-heads"]), name, "o")

    def forward(self, layer, x):
        inner = self.affine(x, f"{layer}_ffn", "1", self.options["transformer-dim-ffn"])
        return self.affine(MARIAN_FUNCTIONS[self.options["transformer-ffn-activation"]](inner), f"{layer}_ffn", "2")

    def last(self, stack, x):
        return self.norm(f"{stack}_top", x) if "n" in self.options.get("transformer-postprocess-top", "") else x

    def logits(self, x):
        tied = self.options["tied-embeddings-all"] or self.options["tied-embeddings"]
        table = self.words("decoder") if tied else self.table("decoder_ff_logit_out_Wt", "decoder")
        return x @ table.t() + self.of("decoder_ff_logit_out_b", 1, len(table))
