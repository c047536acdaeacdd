"""An encoder and a decoder of torch's simplest operations, under the names that another program gives their parts."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F

WIDTH, HIDDEN, HEADS, LAYERS, LENGTH, VOCABS = 16, 24, 4, 2, 32, (17, 19)
ACTS = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu,
        "linear": lambda x: x}  # fmt: skip


class State(dict):
    """Parameters by name; those that are asked for the first time are drawn. They may be computed with in doubles."""

    in_doubles = False

    def of(self, name, *shape, around=0.0):
        if name not in self:
            self[name] = around + torch.randn(shape) * (0.3 if len(shape) > 1 else 0.2)
        return self[name].double() if self.in_doubles else self[name]

    def linear(self, x, name, out, bias=True):
        weight = self.of(f"{name}.weight", out, x.size(-1))
        return F.linear(x, weight, self.of(f"{name}.bias", out) if bias else None)


def attention(q, k, v, mask, heads=HEADS, divisor=None):
    """[B, T, H d] each: heads are consecutive dimensions."""
    q, k, v = (x.view(*x.shape[:2], heads, -1).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(-2, -1) / (divisor or math.sqrt(q.size(-1)))
    return (scores.masked_fill(~mask, -1e9).softmax(-1) @ v).transpose(1, 2).flatten(2)


def causal(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


def waves(exponent=lambda i: 2 * (i // 2) / WIDTH):
    """Sines in even columns, cosines in odd ones, of p / 10000^exponent."""
    rows = [[p / 10000 ** exponent(i) for i in range(WIDTH)] for p in range(LENGTH)]
    return torch.tensor([[math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(row)] for row in rows])


def within(places, parts):
    """The names of the parts of each attention, which is at a place in a layer."""
    return tuple(" ".join(f"{place}.{part}" for part in parts.split()) for place in places.split())


def of_sides(name, sides="encoder decoder"):
    return tuple(name.format(side) for side in sides.split())


@dataclass(frozen=True)
class Recipe:
    """An encoder and a decoder, or one stack alone; of names in a layer those of a stack are words of one text."""

    tables: tuple[str, ...]
    output: str
    attention: tuple[str, ...]  # of the first stack, of the second, across: queries, keys, values, output
    ffn: tuple[str, ...]  # up and down, of both stacks or of each
    norms: tuple[str, ...] = ("- -", "- - -")  # in the order of the sub-layers
    layers: tuple[str, ...] = ("encoder.layers.{n}.", "decoder.layers.{n}.")  # or {m}, from 1
    last: tuple[str, ...] = ()  # norms behind the stacks, where others stand before the sub-layers
    ends: Mapping = field(default_factory=dict)  # of norms: names, epsilon, standard deviation
    scaled: bool = False
    positions: tuple[str, ...] = ()  # names of the tables that are saved
    shape: tuple[int, ...] = (LENGTH, WIDTH)  # of these
    sines: torch.Tensor | None = field(default_factory=waves)  # None where positions are learned
    embedding_norms: tuple[str, ...] = ()
    biases: tuple[bool, bool] = (True, True)  # of the three maps of an attention, and of its output
    ffn_bias: bool = True
    output_bias: bool = True
    act: str = "relu"
    hidden: int = HIDDEN
    heads: int = HEADS
    decoder_hidden: int | None = None  # None: as the encoder has it
    decoder_heads: int | None = None
    depths: tuple[int, int] = (LAYERS, LAYERS)
    d: int = WIDTH
    width: int | None = None  # of all heads together, if it is another
    copies: Mapping[str, str] = field(default_factory=dict)  # names of tables that are others
    buffers: Mapping[str, torch.Tensor] = field(default_factory=dict)  # masks that each layer has
    output_scale: float = 1.0
    sizes: tuple[int, ...] = VOCABS
    pad: int = 1
    before: bool = True
    end: str = ".weight"  # of the names of tables

    def __call__(self, s, src, tgt):
        for name, size in zip(self.tables, self.sizes, strict=True):
            if name not in self.copies:
                s.of(f"{name}{self.end}", size, self.d)
        for name, own in self.copies.items():
            s.setdefault(f"{name}.weight", s[f"{own}.weight"])
        future = causal(tgt.size(1))  # behind a text is only padding
        if src is None:
            x = self.stack(s, 0, tgt, future)
        else:
            seen = (src != self.pad)[:, None, None]
            decoder = replace(self, hidden=self.decoder_hidden or self.hidden, heads=self.decoder_heads or self.heads)
            x = decoder.stack(s, 1, tgt, future, self.stack(s, 0, src, seen), seen)
        return self.logits(s, x)

    def logits(self, s, x):
        return s.linear(x, self.output, self.sizes[-1], self.output_bias) * self.output_scale

    def stack(self, s, i, ids, mask, memory=None, seen=None):
        x = self.embedded(s, i, ids)
        for n in range(self.depths[i]):
            at = self.layers[i].format(n=n, m=n + 1)
            own, across, ffn = (
                [f"{at}{name}" for name in names[place % len(names)].split()]
                for names, place in ((self.attention, i), (self.attention, -1), (self.ffn, i))
            )
            steps = [lambda z, own=own: self.attend(s, z, z, mask, own)]
            if memory is not None:
                steps.append(lambda z, across=across: self.attend(s, z, memory, seen, across))
            steps.append(lambda z, ffn=ffn: self.network(s, z, ffn))
            for norm, step in zip(self.norms[i].split(), steps, strict=True):
                x = self.around(s, x, f"{at}{norm}", step)
            for name, table in self.buffers.items():
                s.setdefault(f"{at}{name}", table)
        return self.norm(s, x, self.last[i]) if self.last else x

    def embedded(self, s, i, ids):
        x = s.of(f"{self.tables[i]}{self.end}")[ids] * (math.sqrt(self.d) if self.scaled else 1)
        x = x + self.places(s, i, ids.size(1))
        return self.norm(s, x, self.embedding_norms[i]) if self.embedding_norms else x

    def places(self, s, i, n):
        if self.sines is None:
            return s.of(self.positions[i], LENGTH, self.d)[:n] if self.positions else 0
        if self.positions:
            s.setdefault(self.positions[i], self.sines.view(self.shape))
        return self.sines[:n]

    def around(self, s, x, norm, step):
        return x + step(self.norm(s, x, norm)) if self.last and self.before else self.norm(s, step(x) + x, norm)

    def norm(self, s, x, name):
        how = {"eps": 1e-5, "names": "weight bias", "deviation": False} | self.ends
        scale, shift = (name if name.endswith("-") else f"{name}.{one}" for one in how["names"].split())
        centred = x - x.mean(-1, keepdim=True)
        if how["deviation"]:
            centred = centred / (x.std(-1, keepdim=True) + how["eps"])
        else:
            centred = centred / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + how["eps"])
        if name.endswith("-"):
            return centred
        return s.of(scale, self.d, around=1.0) * centred + (s.of(shift, self.d) if how.get("shifted", True) else 0)

    def attend(self, s, x, y, mask, names):
        q, k, v = (
            s.linear(z, name, self.width or self.d, self.biases[0])
            for z, name in zip((x, y, y), names[:3], strict=True)
        )
        return s.linear(attention(q, k, v, mask, self.heads), names[3], self.d, self.biases[1])

    def network(self, s, x, names):
        up, down, *gate = names
        made = ACTS[self.act](s.linear(x, up, self.hidden, self.ffn_bias))
        for name in gate:
            made = made * s.linear(x, name, self.hidden, self.ffn_bias)
        return s.linear(made, down, self.d, self.ffn_bias)
