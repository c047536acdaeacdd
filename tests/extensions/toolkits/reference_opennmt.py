"""OpenNMT-py's Transformer written from its paper and its published code: what its state computes, in doubles.

Source: Klein et al., "OpenNMT" (2017); Vaswani et al. (2017), with norms before sub-layers.
"""

import math

import torch
from torch.nn import functional as F

from tests.extensions.toolkits.plain import Stacks, attention, doubles, linear, norm

PAD = 1
FUNCTIONS = {"relu": torch.relu, "gelu": F.gelu, "silu": F.silu, "gated-gelu": F.gelu}
LAYERS = {"encoder": "encoder.transformer", "decoder": "decoder.transformer_layers"}
TABLE = "{}.embeddings.make_embedding.emb_luts.0.weight"
EPSILON = 1e-6


def shapes(opt, sizes, *, version):
    """Names and shapes of the state of a version, without its table of positions and its generator."""
    d, f = opt["hidden_size"] if version == 3 else opt["enc_rnn_size"], opt["transformer_ff"]
    made = {TABLE.format(stack): (size, d) for stack, size in zip(LAYERS, sizes, strict=True)}
    gated = opt["pos_ffn_activation_fn"] in ("silu", "gated-gelu")
    biased = version < 3 or opt.get("add_qkvbias")
    for stack, layers in LAYERS.items():
        made |= {f"{stack}.layer_norm.weight": (d,), f"{stack}.layer_norm.bias": (d,)}
        for i in range(opt["enc_layers" if stack == "encoder" else "dec_layers"]):
            name = f"{layers}.{i}"
            norms = ["layer_norm"] if stack == "encoder" else ["layer_norm_1", "layer_norm_2"]
            for one in [*norms, "feed_forward.layer_norm"]:
                made |= {f"{name}.{one}.weight": (d,), f"{name}.{one}.bias": (d,)}
            for kind in ["self_attn"] + ["context_attn"] * (stack == "decoder"):
                for one in ("linear_keys", "linear_values", "linear_query", "final_linear"):
                    made[f"{name}.{kind}.{one}.weight"] = (d, d)
                    made |= {f"{name}.{kind}.{one}.bias": (d,)} if biased else {}
            for one, shape in {"w_1": (f, d), "w_2": (d, f), **({"w_3": (f, d)} if gated else {})}.items():
                made[f"{name}.feed_forward.{one}.weight"] = shape
                if opt.get("add_ffnbias", True):
                    made[f"{name}.feed_forward.{one}.bias"] = shape[:1]
    return made


def positions(length, d, kind):
    """Float32, as its buffer is."""
    place = torch.arange(length, dtype=torch.float64)[:, None]
    if kind == "SinusoidalConcat":
        angle = place * torch.exp(torch.arange(d // 2) * -(math.log(10000) / (d // 2 - 1)))
        return torch.cat([angle.sin(), angle.cos()], dim=-1)
    table = torch.zeros(length, d, dtype=torch.float64)
    angle = place * torch.exp(torch.arange(0, d, 2) * -(math.log(10000) / d))
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


class Reference(Stacks):
    """Logits of a state and a generator."""

    pad = PAD

    def __init__(self, state, generator, opt):
        self.state, self.generator, self.opt = doubles(state), doubles(generator), opt

    def layers(self, stack):
        return [f"{LAYERS[stack]}.{i}" for i in range(self.opt[f"{stack[:3]}_layers"])]

    def embedded(self, stack, ids):
        table = self.state[TABLE.format(stack)]
        kind = self.opt.get("position_encoding_type", "SinusoidalInterleaved")
        return table[ids] * math.sqrt(table.size(1)) + positions(ids.size(1), table.size(1), kind)

    def around(self, layer, kind, x, compute):
        own = "layer_norm" if layer.startswith("encoder") else "layer_norm_1"
        name = {"cross": "layer_norm_2", "ffn": "feed_forward.layer_norm"}.get(kind, own)
        return x + compute(norm(self.state, f"{layer}.{name}", x, EPSILON))

    def attend(self, layer, kind, x, context, allowed):
        name = f"{layer}.{'context' if kind == 'cross' else 'self'}_attn"
        three = (("query", x), ("keys", context), ("values", context))
        heads = [linear(self.state, f"{name}.linear_{one}", y) for one, y in three]
        return linear(self.state, f"{name}.final_linear", attention(*heads, allowed, self.opt["heads"]))

    def forward(self, layer, x):
        name = f"{layer}.feed_forward"
        made = FUNCTIONS[self.opt["pos_ffn_activation_fn"]](linear(self.state, f"{name}.w_1", x))
        if f"{name}.w_3.weight" in self.state:
            made = made * linear(self.state, f"{name}.w_3", x)
        return linear(self.state, f"{name}.w_2", made)

    def last(self, stack, x):
        return norm(self.state, f"{stack}.layer_norm", x, EPSILON)

    def logits(self, x):
        place = "0." if "0.weight" in self.generator else ""
        return x @ self.generator[f"{place}weight"].t() + self.generator[f"{place}bias"]
