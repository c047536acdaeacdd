"""fairseq's Transformer written from its paper and its published code: what its state computes, in doubles.

Source: Ott et al., "fairseq" (2019); Vaswani et al. (2017); positions as in tensor2tensor, counted behind padding.
"""

import math

import torch
from torch.nn import functional as F

from tests.extensions.toolkits.plain import Stacks, attention, doubles, linear, norm

PAD, END = 1, 2
KINDS = {"self": "self_attn", "cross": "encoder_attn", "ffn": "final"}
FUNCTIONS = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "gelu_accurate": lambda x: F.gelu(x, approximate="tanh"),
    "linear": lambda x: x,
}


def shapes(args, sizes):
    """Names and shapes of the state that it saves."""
    d, made = args["encoder_embed_dim"], {}
    for stack, size in zip(("encoder", "decoder"), sizes, strict=True):
        f = args[f"{stack}_ffn_embed_dim"]
        made[f"{stack}.embed_tokens.weight"] = (size, d)
        if args.get("encoder_learned_pos"):
            most = args[f"max_{'source' if stack == 'encoder' else 'target'}_positions"]
            made[f"{stack}.embed_positions.weight"] = (most + PAD + 1, d)
        norms = ["layernorm_embedding"] * bool(args.get("layernorm_embedding"))
        norms += ["layer_norm"] * bool(args.get("encoder_normalize_before"))
        for i in range(args[f"{stack}_layers"]):
            layer = f"layers.{i}"
            kinds = ["self_attn"] + ["encoder_attn"] * (stack == "decoder")
            norms += [f"{layer}.{kind}_layer_norm" for kind in kinds] + [f"{layer}.final_layer_norm"]
            for kind in kinds:
                for one in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    made[f"{stack}.{layer}.{kind}.{one}.weight"] = (d, d)
                    made[f"{stack}.{layer}.{kind}.{one}.bias"] = (d,)
            made |= {f"{stack}.{layer}.fc1.weight": (f, d), f"{stack}.{layer}.fc1.bias": (f,)}
            made |= {f"{stack}.{layer}.fc2.weight": (d, f), f"{stack}.{layer}.fc2.bias": (d,)}
        for name in norms:
            made |= {f"{stack}.{name}.weight": (d,), f"{stack}.{name}.bias": (d,)}
    return made | {"decoder.output_projection.weight": (sizes[1], d)}


def sinusoids(positions, d):
    half = d // 2
    waves = torch.exp(torch.arange(half, dtype=torch.float64) * -(math.log(10000) / (half - 1)))
    angle = positions[..., None] * waves
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


class Reference(Stacks):
    """Logits of a state."""

    pad = PAD

    def __init__(self, state, args):
        self.state, self.args, self.pre = doubles(state), args, args.get("encoder_normalize_before")

    def layers(self, stack):
        return [f"{stack}.layers.{i}" for i in range(self.args[f"{stack}_layers"])]

    def embedded(self, stack, ids):
        args, state = self.args, self.state
        d = args["encoder_embed_dim"]
        x = state[f"{stack}.embed_tokens.weight"][ids]
        x = x if args.get("no_scale_embedding") else x * math.sqrt(d)
        real = ids != PAD
        positions = real.cumsum(1) * real + PAD
        if args.get("encoder_learned_pos"):
            x = x + state[f"{stack}.embed_positions.weight"][positions]
        elif not args.get("no_token_positional_embeddings"):
            x = x + sinusoids(positions.double(), d) * real[..., None]
        return norm(state, f"{stack}.layernorm_embedding", x, 1e-5) if args.get("layernorm_embedding") else x

    def around(self, layer, kind, x, compute):
        name = f"{layer}.{KINDS[kind]}_layer_norm"
        if self.pre:
            return x + compute(norm(self.state, name, x, 1e-5))
        return norm(self.state, name, x + compute(x), 1e-5)

    def attend(self, layer, kind, x, context, allowed):
        name = f"{layer}.{KINDS[kind]}"
        q, k, v = (linear(self.state, f"{name}.{one}_proj", y) for one, y in (("q", x), ("k", context), ("v", context)))
        heads = attention(q, k, v, allowed, self.args[f"{layer.partition('.')[0]}_attention_heads"])
        return linear(self.state, f"{name}.out_proj", heads)

    def forward(self, layer, x):
        function = FUNCTIONS[self.args.get("activation_fn", "relu")]
        return linear(self.state, f"{layer}.fc2", function(linear(self.state, f"{layer}.fc1", x)))

    def last(self, stack, x):
        return norm(self.state, f"{stack}.layer_norm", x, 1e-5) if self.pre else x

    def logits(self, x):
        return x @ self.state["decoder.output_projection.weight"].t()
