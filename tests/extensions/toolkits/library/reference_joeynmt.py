"""Joey NMT's Transformer written from its paper and its published code: what its state computes, in doubles.

Source: Kreutzer et al., "Joey NMT" (2019); Vaswani et al. (2017).
"""

import math

import torch
from torch.nn import functional as F

from tests.extensions.toolkits.library.plain import attention, causal, doubles, linear, norm, seen

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


class Reference:
    """Logits of a state."""

    def __init__(self, state, model, norms):
        self.state, self.model, self.norms = doubles(state), model, norms
        self.function = FUNCTIONS[model["encoder"].get("activation", "relu")]

    def embedded(self, side, ids, scale):
        table = self.state[f"{side}_embed.lut.weight"]
        d = table.size(1)
        angle = torch.arange(ids.size(1))[:, None] * torch.exp(
            torch.arange(0, d, 2, dtype=torch.float64) * -(math.log(10000) / d)
        )
        waves = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
        return table[ids] * (math.sqrt(d) if scale else 1) + waves

    def around(self, name, x, compute):
        if self.norms == "pre":
            return x + compute(norm(self.state, name, x, EPSILON))
        return norm(self.state, name, x + compute(x), EPSILON)

    def attend(self, name, x, context, allowed):
        three = [
            linear(self.state, f"{name}.{one}_layer", y) for one, y in zip("qkv", (x, context, context), strict=True)
        ]
        heads = attention(*three, allowed, self.model[name.partition(".")[0]]["num_heads"])
        return linear(self.state, f"{name}.output_layer", heads)

    def forward(self, name, x):
        inner = f"{name}.feed_forward"
        return self.around(
            f"{inner}.layer_norm",
            x,
            lambda h: linear(
                self.state, f"{inner}.pwff_layer.3", self.function(linear(self.state, f"{inner}.pwff_layer.0", h))
            ),
        )

    def last(self, stack, x):
        return norm(self.state, f"{stack}.layer_norm", x, EPSILON) if self.norms == "pre" else x

    def __call__(self, source, target):
        scale = self.model["encoder"]["embeddings"].get("scale", False)
        x, own = self.embedded("src", source, scale), seen(source, PAD, source.size(1))
        for i in range(self.model["encoder"]["num_layers"]):
            name = f"encoder.layers.{i}"
            x = self.around(f"{name}.layer_norm", x, lambda h, n=name: self.attend(f"{n}.src_src_att", h, h, own))
            x = self.forward(name, x)
        memory, cross = self.last("encoder", x), seen(source, PAD, target.size(1))
        x = self.embedded("trg", target, scale)
        for i in range(self.model["decoder"]["num_layers"]):
            name = f"decoder.layers.{i}"
            x = self.around(
                f"{name}.x_layer_norm", x, lambda h, n=name: self.attend(f"{n}.trg_trg_att", h, h, causal(target))
            )
            x = self.around(
                f"{name}.dec_layer_norm", x, lambda h, n=name: self.attend(f"{n}.src_trg_att", h, memory, cross)
            )
            x = self.forward(name, x)
        return self.last("decoder", x) @ self.state["decoder.output_layer.weight"].t()
