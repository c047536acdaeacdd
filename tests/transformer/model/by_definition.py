"""A model written once more from its definitions: slow, plain, and of nothing but a config and a table of tensors.

What it has in common with the model is torch's arithmetic and the names of the tensors.
"""

import math
from functools import partial

import torch

ACTIVATIONS = {
    "relu": lambda x: x * (x > 0),
    "gelu": lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + torch.exp(-x)),
    "none": lambda x: x,
    "quick_gelu": lambda x: x / (1 + torch.exp(-1.702 * x)),
}


class Plain:
    """`Plain(model).logits(src, tgt)`; sources without padding."""

    def __init__(self, model):
        self.c, self.state = model.config, dict(model.state_dict())
        stacks = {name: getattr(model, name) for name in ("encoder", "decoder") if hasattr(model, name)}
        self.positions = {name: stack.embedding.positions.table for name, stack in stacks.items()}

    def linear(self, x, name):
        return x @ self.state[f"{name}.weight"].T + self.state.get(f"{name}.bias", 0)

    def norm(self, x, name):
        if self.c.norm_kind == "none":
            return x
        n, eps, centred = x.size(-1), self.c.norm_eps, x - x.sum(-1, keepdim=True) / x.size(-1)
        squares = (centred**2).sum(-1, keepdim=True)
        scaled = {
            "layer": lambda: centred / (squares / n + eps) ** 0.5,
            "rms": lambda: x / ((x * x).sum(-1, keepdim=True) / n + eps) ** 0.5,
            "deviation": lambda: centred / ((squares / (n - 1)) ** 0.5 + eps),
            "biased_deviation": lambda: centred / ((squares / n) ** 0.5 + eps),
        }
        return self.state[f"{name}.weight"] * scaled[self.c.norm_kind]() + self.state.get(f"{name}.bias", 0)

    def attention(self, x, context, name, *, causal):
        c = self.c
        q, k, v = (self.linear(y, f"{name}.{p}_proj") for y, p in ((x, "q"), (context, "k"), (context, "v")))
        heads = []
        for head in range(c.n_heads):
            group = head // (c.n_heads // c.n_kv_heads)
            own, shared = (slice(n * c.d_head, (n + 1) * c.d_head) for n in (head, group))
            scores = q[..., own] @ k[..., shared].mT / c.d_head**0.5
            if causal:
                later = torch.ones_like(scores, dtype=torch.bool).triu(1)
                scores = scores.masked_fill(later, -torch.inf)
            heads.append(scores.softmax(-1) @ v[..., shared])
        return self.linear(torch.cat(heads, -1), f"{name}.out_proj")

    def feed_forward(self, x, name):
        up, curve = self.linear(x, f"{name}.up_proj"), ACTIVATIONS[self.c.activation]
        inner = curve(self.linear(x, f"{name}.gate_proj")) * up if self.c.gated else curve(up)
        return self.linear(inner, f"{name}.down_proj")

    def sublayer(self, x, name, function):
        """What is added to the stream; only after "post" the stream itself."""
        residual, kept = f"{name}_residual", x if self.c.residual else torch.zeros(1)
        if self.c.norm == "post":
            return self.norm(kept + function(x), f"{residual}.norm") - x
        added = function(self.norm(x, f"{residual}.norm"))
        added = self.norm(added, f"{residual}.output_norm") if self.c.norm == "both" else added
        return added - x + kept

    def embed(self, ids, table, stack, types):
        c = self.c
        x = self.state[table][ids] * (c.d_model**0.5 if c.scale_embedding else 1)
        x = x + self.positions[stack][: ids.size(1)]
        if stack == "encoder" and c.n_token_types:
            x = x + self.state["encoder.embedding.types.table"][types]
        return self.norm(x, f"{stack}.embedding.norm") if c.embedding_norm else x

    def stack(self, stack, x, memory):
        for i in range(self.c.n_encoder_layers if stack == "encoder" else self.c.n_decoder_layers):
            parts = {
                "self_attn": lambda y, name: self.attention(y, y, name, causal=stack == "decoder"),
                "cross_attn": lambda y, name: self.attention(y, memory, name, causal=False),
                "ffn": self.feed_forward,
            }
            read = x
            for part, function in parts.items():
                if part != "cross_attn" or (memory is not None and stack == "decoder"):
                    name = f"{stack}.layers.{i}.{part}"
                    x = x + self.sublayer(read, name, partial(function, name=name))
                    read = read if self.c.parallel_residual else x
        return self.norm(x, f"{stack}.final_norm") if self.c.final_norm else x

    def logits(self, src, tgt, types=0):
        """Of a decoder, or of an encoder's MLM head; without both the encoder's vectors."""
        c, memory = self.c, None
        if c.n_encoder_layers:
            memory = self.stack("encoder", self.embed(src, "src_table", "encoder", types), None)
        table = "src_table" if c.shared_vocab else "tgt_table"
        x = memory
        if c.n_decoder_layers:
            x = self.stack("decoder", self.embed(tgt, table, "decoder", types), memory)
        elif not c.mlm_head:
            return x
        if c.mlm_head:
            x = self.norm(ACTIVATIONS[c.mlm_activation](self.linear(x, "mlm_head.proj")), "mlm_head.norm")
        logits = (x * c.output_scale) @ self.state[table if c.tie_output else "output_table"].T
        logits = logits + self.state.get("output_bias", 0)
        return torch.tanh(logits / c.logit_cap) * c.logit_cap if c.logit_cap else logits
