"""What the references of all toolkits are written with, and how a model of ours is compared with one of them."""

import copy
import math

import torch
from torch.nn import functional as F

LENGTHS = (7, 4)  # tokens of the rows of a batch; the second is padded


def linear(state, name, x, *, turned=False):
    weight = state[f"{name}.weight"]
    return F.linear(x, weight.t() if turned else weight, state.get(f"{name}.bias"))


def norm(state, name, x, eps):
    mean = x.mean(-1, keepdim=True)
    size = ((x - mean).square().mean(-1, keepdim=True) + eps).sqrt()
    return (x - mean) / size * state[f"{name}.weight"] + state[f"{name}.bias"]


def attention(queries, keys, values, allowed, n_heads):
    """Head after head, with -inf where it is not allowed [B, Q, K]."""
    made = []
    for q, k, v in zip(*(one.chunk(n_heads, dim=-1) for one in (queries, keys, values)), strict=True):
        scores = q @ k.transpose(1, 2) / math.sqrt(q.size(-1))
        made.append(scores.masked_fill(~allowed, -torch.inf).softmax(-1) @ v)
    return torch.cat(made, dim=-1)


def causal(ids):
    return torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).tril()[None].expand(len(ids), -1, -1)


class Stacks:
    """An encoder and a decoder, layer after layer; a toolkit says how it names, embeds, attends and norms."""

    def __call__(self, source, target):
        memory = self.through("encoder", source, self.seen(source, source.size(1)))
        cross = self.seen(source, target.size(1))
        return self.logits(self.through("decoder", target, causal(target), memory, cross))

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


def filled(shapes, *, seed=0):
    """Random values: norms around 1, all biases at random; doubles."""
    torch.manual_seed(seed)
    state = {}
    for name, shape in shapes.items():
        values = torch.randn(shape, dtype=torch.float64)
        one_row = len(shape) == 1 or shape[0] == 1
        scale = ("norm" in name and name.endswith("weight")) or "_ln_scale" in name
        state[name] = (1 + 0.3 * values if scale else 0.3 * values if one_row else values * shape[-1] ** -0.5).float()
    return state


def batch(size, *, least, pad, seed=1):
    torch.manual_seed(seed)
    rows = torch.full((len(LENGTHS), max(LENGTHS)), pad)
    for row, length in zip(rows, LENGTHS, strict=True):
        row[:length] = torch.randint(least, size, (length,))
    return rows


def doubles(state):
    return {name: value.double() if value.is_floating_point() else value for name, value in state.items()}


@torch.no_grad()
def check(checkpoint, reference, *, size, least, most=10):
    """Teacher forcing with padding in both precisions, and greedy decoding step by step; the largest difference.

    `reference(source, target)` gives doubles [B, T, V]; what columns the model has beyond them cannot be chosen.
    """
    config, model = checkpoint.model.config, checkpoint.model
    source, target = (batch(n, least=least, pad=config.pad_id, seed=seed) for n, seed in zip(size, (1, 2), strict=True))
    target[:, 0] = config.decoder_start_id
    inside = target != config.pad_id
    inside[:, 0] = True
    expected = reference(source, target)
    n_real = expected.size(-1)
    found = model(source, target)
    assert (found[..., n_real:] < -1000).all()
    most_apart = float((found[..., :n_real] - expected)[inside].abs().max())
    assert most_apart < 1e-5 * max(1.0, float(expected.abs().max()))
    doubled = copy.deepcopy(model).double()
    apart = (doubled(source, target)[..., :n_real] - expected)[inside].abs().max()
    assert apart < 1e-6  # the table of positions is float32
    ids = source[1, : LENGTHS[1]]
    text = " ".join(checkpoint.src_tokenizer.piece(int(i)) for i in ids)
    trace = checkpoint.run(checkpoint.query(text, max_new=most))
    end = [config.eos_id] * config.append_source_eos
    assert list(trace.src_ids) == [*ids.tolist(), *end]
    written = greedy(reference, torch.tensor([trace.src_ids]), config, most=most)
    assert list(trace.tgt_ids) == written
    steps = reference(torch.tensor([trace.src_ids]), torch.tensor([trace.read_ids]))[0].log_softmax(-1)
    close = torch.from_numpy(trace.log_probs.copy())[:, :n_real] - steps
    assert close.abs().max() < 1e-4
    return most_apart


def greedy(reference, source, config, *, most):
    """The likeliest piece step by step, each time all anew."""
    written = [config.decoder_start_id]
    while len(written) <= most and (len(written) == 1 or written[-1] != config.eos_id):
        logits = reference(source, torch.tensor([written]))[0, -1]
        logits[[i for i in config.never_written if i < len(logits)]] = -torch.inf
        written.append(int(logits.argmax()))
    return written[1:]
