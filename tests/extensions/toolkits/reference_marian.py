"""Marian's Transformer written from its paper and its published code: what its parameters compute, in doubles.

Source: Junczys-Dowmunt et al., "Marian" (2018), and its documentation of `--transformer-postprocess`.
"""

import math

import torch

from tests.extensions.toolkits.plain import Stacks, attention, doubles

KINDS = {"self": "self_Wo", "cross": "context_Wo", "ffn": "ffn_ffn"}
FUNCTIONS = {
    "relu": torch.relu,
    "swish": lambda x: x * torch.sigmoid(x),
    "gelu": lambda x: x * torch.sigmoid(1.702 * x),
}
EPSILON = 1e-6


def shapes(options, sizes):
    """Names and shapes of its parameters."""
    d, f = options["dim-emb"], options["transformer-dim-ffn"]
    made = {}
    if options.get("tied-embeddings-all") or options.get("tied-embeddings-src"):
        made["Wemb"] = (sizes[0], d)
    else:
        made |= {"encoder_Wemb": (sizes[0], d), "decoder_Wemb": (sizes[1], d)}
    for stack, depth in (("encoder", "enc-depth"), ("decoder", "dec-depth")):
        if "n" in options.get("transformer-postprocess-emb", "d"):
            made |= {f"{stack}_emb_ln_scale_pre": (1, d), f"{stack}_emb_ln_bias_pre": (1, d)}
        if "n" in options.get("transformer-postprocess-top", ""):
            made |= {f"{stack}_top_ln_scale": (1, d), f"{stack}_top_ln_bias": (1, d)}
        for i in range(1, options[depth] + 1):
            for kind in ["self"] + ["context"] * (stack == "decoder"):
                name = f"{stack}_l{i}_{kind}"
                for letter in "qkvo":
                    made |= {f"{name}_W{letter}": (d, d), f"{name}_b{letter}": (1, d)}
                made |= {f"{name}_Wo_ln_scale": (1, d), f"{name}_Wo_ln_bias": (1, d)}
            name = f"{stack}_l{i}_ffn"
            made |= {f"{name}_W1": (d, f), f"{name}_b1": (1, f), f"{name}_W2": (f, d), f"{name}_b2": (1, d)}
            made |= {f"{name}_ffn_ln_scale": (1, d), f"{name}_ffn_ln_bias": (1, d)}
    if not (options.get("tied-embeddings-all") or options.get("tied-embeddings")):
        made["decoder_ff_logit_out_Wt"] = (sizes[1], d)
    return made | {"decoder_ff_logit_out_b": (1, sizes[1])}


def positions(length, d):
    waves = torch.exp(torch.arange(d // 2, dtype=torch.float64) * -(math.log(10000) / (d / 2 - 1)))
    angle = torch.arange(length, dtype=torch.float64)[:, None] * waves
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


class Reference(Stacks):
    """Logits of a set of parameters; ids from `start` on are no pieces: padding, and the vector of zeros."""

    def __init__(self, state, options, start):
        self.state, self.options, self.start, self.pad = doubles(state), options, start, start

    def layers(self, stack):
        return [f"{stack}_l{i + 1}" for i in range(self.options[f"{stack[:3]}-depth"])]

    def norm(self, name, x, end=""):
        mean = x.mean(-1, keepdim=True)
        spread = ((x - mean) ** 2).mean(-1, keepdim=True)
        scale, bias = self.state[f"{name}_ln_scale{end}"], self.state[f"{name}_ln_bias{end}"]
        return scale * (x - mean) / (spread + EPSILON).sqrt() + bias

    def affine(self, x, name, what):
        return x @ self.state[f"{name}_W{what}"] + self.state[f"{name}_b{what}"]

    def table(self, stack):
        return self.state["Wemb"] if "Wemb" in self.state else self.state[f"{stack}_Wemb"]

    def embedded(self, stack, ids):
        table, d = self.table(stack), self.options["dim-emb"]
        x = table[ids.clamp(max=len(table) - 1)] * (ids < self.start)[..., None]
        if "Wpos" in self.state:
            x = x + self.state["Wpos"][: ids.size(1)]
        else:
            x = math.sqrt(d) * x + positions(ids.size(1), d)
        has_norm = "n" in self.options.get("transformer-postprocess-emb", "d")
        return self.norm(f"{stack}_emb", x, "_pre") if has_norm else x

    def around(self, layer, kind, x, compute):
        return self.norm(f"{layer}_{KINDS[kind]}", compute(x) + x)

    def attend(self, layer, kind, x, context, allowed):
        name = f"{layer}_{KINDS[kind].removesuffix('_Wo')}"
        heads = [self.affine(one, name, letter) for one, letter in ((x, "q"), (context, "k"), (context, "v"))]
        return self.affine(attention(*heads, allowed, self.options["transformer-heads"]), name, "o")

    def forward(self, layer, x):
        function = FUNCTIONS[self.options.get("transformer-ffn-activation", "swish")]
        return self.affine(function(self.affine(x, f"{layer}_ffn", "1")), f"{layer}_ffn", "2")

    def last(self, stack, x):
        return self.norm(f"{stack}_top", x) if "n" in self.options.get("transformer-postprocess-top", "") else x

    def logits(self, x):
        tied = self.options.get("tied-embeddings-all") or self.options.get("tied-embeddings")
        table = self.table("decoder") if tied else self.state["decoder_ff_logit_out_Wt"]
        return x @ table.t() + self.state["decoder_ff_logit_out_b"]
