"""A model written once more from its definitions: slow, plain, and of nothing but a config and a table of tensors.

What it has in common with the model is torch's arithmetic and the names of the tensors.
"""

import math

import torch


def activation(name, x):
    inner = {
        "relu": lambda: x * (x > 0),
        "gelu": lambda: x * 0.5 * (1 + torch.erf(x / math.sqrt(2))),
        "gelu_tanh": lambda: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        "silu": lambda: x / (1 + torch.exp(-x)),
        "none": lambda: x,
        "quick_gelu": lambda: x / (1 + torch.exp(-1.702 * x)),
    }
    return inner[name]()


class Plain:
    """`Plain(model).logits(src, tgt)`; sources without padding."""

    def __init__(self, model):
        self.c, self.state = model.config, dict(model.state_dict())
        stacks = {name: getattr(model, name) for name in ("encoder", "decoder") if hasattr(model, name)}
        self.positions = {name: stack.embedding.positions.table for name, stack in stacks.items()}

    def linear(self, x, name):
        x = x @ self.state[f"{name}.weight"].T
        return x + self.state[f"{name}.bias"] if f"{name}.bias" in self.state else x

    def norm(self, x, name):
        if self.c.norm_kind == "none":
            return x
        gamma, beta = self.state[f"{name}.weight"], self.state.get(f"{name}.bias", torch.zeros(1))
        n, eps = x.size(-1), self.c.norm_eps
        mean = x.sum(-1, keepdim=True) / n
        squares = ((x - mean) ** 2).sum(-1, keepdim=True)
        if self.c.norm_kind == "rms":
            return gamma * x / ((x * x).sum(-1, keepdim=True) / n + eps) ** 0.5
        if self.c.norm_kind == "deviation":
            return gamma * (x - mean) / ((squares / (n - 1)) ** 0.5 + eps) + beta
        if self.c.norm_kind == "biased_deviation":
            return gamma * (x - mean) / ((squares / n) ** 0.5 + eps) + beta
        return gamma * (x - mean) / (squares / n + eps) ** 0.5 + beta

    def attention(self, x, context, name, *, causal):
        c = self.c
        q, k, v = (self.linear(y, f"{name}.{p}_proj") for y, p in ((x, "q"), (context, "k"), (context, "v")))
        heads = []
        for head in range(c.n_heads):
            own = slice(head * c.d_head, (head + 1) * c.d_head)
            group = head // (c.n_heads // c.n_kv_heads)
            shared = slice(group * c.d_head, (group + 1) * c.d_head)
            scores = q[..., own] @ k[..., shared].mT / c.d_head**0.5
            if causal:
                later = torch.ones_like(scores, dtype=torch.bool).triu(1)
                scores = scores.masked_fill(later, -torch.inf)
            heads.append(scores.softmax(-1) @ v[..., shared])
        return self.linear(torch.cat(heads, -1), f"{name}.out_proj")

    def feed_forward(self, x, name):
        if self.c.gated:
            inner = activation(self.c.activation, self.linear(x, f"{name}.gate_proj"))
            inner = inner * self.linear(x, f"{name}.up_proj")
        else:
            inner = activation(self.c.activation, self.linear(x, f"{name}.up_proj"))
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
        n_layers = self.c.n_encoder_layers if stack == "encoder" else self.c.n_decoder_layers
        for i in range(n_layers):
            name = f"{stack}.layers.{i}"
            causal = stack == "decoder"
            own = lambda y, name=name, causal=causal: self.attention(y, y, f"{name}.self_attn", causal=causal)  # noqa: E731
            feed = lambda y, name=name: self.feed_forward(y, f"{name}.ffn")  # noqa: E731
            if self.c.parallel_residual:
                x = x + self.sublayer(x, f"{name}.self_attn", own) + self.sublayer(x, f"{name}.ffn", feed)
                continue
            x = x + self.sublayer(x, f"{name}.self_attn", own)
            if causal and memory is not None:
                cross = lambda y, name=name: self.attention(y, memory, f"{name}.cross_attn", causal=False)  # noqa: E731
                x = x + self.sublayer(x, f"{name}.cross_attn", cross)
            x = x + self.sublayer(x, f"{name}.ffn", feed)
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
            x = self.norm(activation(c.mlm_activation, self.linear(x, "mlm_head.proj")), "mlm_head.norm")
        logits = (x * c.output_scale) @ self.state[table if c.tie_output else "output_table"].T
        logits = logits + self.state.get("output_bias", 0)
        return torch.tanh(logits / c.logit_cap) * c.logit_cap if c.logit_cap else logits
