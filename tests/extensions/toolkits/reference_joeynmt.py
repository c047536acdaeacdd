"""Joey NMT's Transformer written from its paper and its published code: what its state computes, in doubles.

Source: Kreutzer et al., "Joey NMT" (2019); Vaswani et al. (2017).
"""

import math

import torch
from torch.nn import functional as F

from tests.extensions.toolkits.plain import Stacks, attention, doubles, linear, norm

PAD = 1
FUNCTIONS = {"relu": torch.relu, "gelu": F.gelu, "swish": F.silu}
EPSILON = 1e-6


def shapes(model, sizes, *, norms):
    """Names and shapes of the state; `norms` is where they stand."""
    d = model["encoder"]["hidden_size"]
    made = {"src_embed.lut.weight": (sizes[0], d), "trg_embed.lut.weight": (sizes[1], d)}
    for stack in ("encoder", "decoder"):
        f, own = model[stack]["ff_size"], ["layer_norm"] if norms == "pre" else []
        kinds, names = (
            (["src_src_att"], ["layer_norm"])
            if stack == "encoder"
            else (["trg_trg_att", "src_trg_att"], ["x_layer_norm", "dec_layer_norm"])
        )
        for i in range(model[stack]["num_layers"]):
            layer = f"layers.{i}"
            own += [f"{layer}.{one}" for one in [*names, "feed_forward.layer_norm"]]
            for kind in kinds:
                for one in ("k_layer", "v_layer", "q_layer", "output_layer"):
                    made[f"{stack}.{layer}.{kind}.{one}.weight"] = (d, d)
                    made[f"{stack}.{layer}.{kind}.{one}.bias"] = (d,)
            for number, shape in ((0, (f, d)), (3, (d, f))):
                made[f"{stack}.{layer}.feed_forward.pwff_layer.{number}.weight"] = shape
                made[f"{stack}.{layer}.feed_forward.pwff_layer.{number}.bias"] = shape[:1]
        for one in own:
            made |= {f"{stack}.{one}.weight": (d,), f"{stack}.{one}.bias": (d,)}
    return made | {"decoder.output_layer.weight": (sizes[1], d)}


class Reference(Stacks):
    """Logits of a state."""

    pad = PAD

    def __init__(self, state, model, norms):
        self.state, self.model, self.norms = doubles(state), model, norms
        self.function = FUNCTIONS[model["encoder"].get("activation", "relu")]

    def layers(self, stack):
        return [f"{stack}.layers.{i}" for i in range(self.model[stack]["num_layers"])]

    def embedded(self, stack, ids):
        table = self.state[f"{'src' if stack == 'encoder' else 'trg'}_embed.lut.weight"]
        d = table.size(1)
        rates = torch.exp(torch.arange(0, d, 2, dtype=torch.float64) * -(math.log(10000) / d))
        angle = torch.arange(ids.size(1))[:, None] * rates
        waves = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
        return table[ids] * (math.sqrt(d) if self.model["encoder"]["embeddings"].get("scale") else 1) + waves

    def around(self, layer, kind, x, compute):
        own = {"ffn": "feed_forward.layer_norm", "cross": "dec_layer_norm"}
        name = f"{layer}.{own.get(kind, 'layer_norm' if layer.startswith('encoder') else 'x_layer_norm')}"
        if self.norms == "pre":
            return x + compute(norm(self.state, name, x, EPSILON))
        return norm(self.state, name, x + compute(x), EPSILON)

    def attend(self, layer, kind, x, context, allowed):
        stack = layer.partition(".")[0]
        own = "src_src_att" if stack == "encoder" else "trg_trg_att"
        name = f"{layer}.{'src_trg_att' if kind == 'cross' else own}"
        three = zip("qkv", (x, context, context), strict=True)
        heads = [linear(self.state, f"{name}.{one}_layer", y) for one, y in three]
        made = attention(*heads, allowed, self.model[stack]["num_heads"])
        return linear(self.state, f"{name}.output_layer", made)

    def forward(self, layer, x):
        inner = f"{layer}.feed_forward.pwff_layer"
        return linear(self.state, f"{inner}.3", self.function(linear(self.state, f"{inner}.0", x)))

    def last(self, stack, x):
        return norm(self.state, f"{stack}.layer_norm", x, EPSILON) if self.norms == "pre" else x

    def logits(self, x):
        return x @ self.state["decoder.output_layer.weight"].t()
