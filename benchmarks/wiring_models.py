"""Trainings of tiny models whose hand-written code has a planted mistake, to check what recognises mistakes.

A training is a mistake in one architecture and takes about 20 s (`benchmarks.wirings` runs them). It gives a checkpoint
folder per task, whose config says what the code should have been, 50 unseen pairs of ids in `pairs.tsv`, and
`planted.json`, written last:

    mistake       the id; "" if there is none; "invented:..." if it is not in the catalogue of mistakes
    loss          of the pairs as one padded batch, read by the code that trained, in nats per token
    loss_as_said  read by the right code for the config; if it is not higher, the mistake cannot show in these pairs

The code is independent of `transformer.model`: functions of parameters named as in a checkpoint, with a leading axis E,
because all tasks are trained as one computation. The right code must give the logits of `Transformer`. A model that
learns too little, also in a second, longer training, is named in `not_learnt.txt` instead.

Shapes: E tasks, B pairs, T tokens, Q queries, K keys, H heads, d d_head, D d_model, L rows of positions, V vocabulary.
"""

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.extensions.tokenizers.options import Options
from glassformer.extensions.tokenizers.tokenizer_families import Vocabularies
from transformer.checkpoint.save import CheckpointContents, save
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer

PAD, START, END, FIRST = 0, 1, 2, 3
PLUS, EQUALS, SIZE = 13, 14, 15  # after ten letters; EQUALS ends the prompt of a decoder-only model
LENGTH, BATCH, POOL, N_PAIRS, IGNORED, CLOSED = 64, 50, 20_000, 50, -100, -1e9
RATE, WARMUP, STEPS, LONGER = 4e-3, 100, 600, 4
TWO, ALL, LETTERS = "pre post", "pre post gpt", ("copy", "reverse", "sort")

Row = list[int]
Step = Callable[..., Any]
Parameters = Mapping[str, Tensor]
Masked = tuple[Tensor, Tensor]  # vectors [E, B, T, D], and whether they are of real tokens [E, B, T]


def draw(task: str, rng: random.Random) -> tuple[Row, Row]:
    if task == "add":
        numbers = rng.randrange(100), rng.randrange(100)
        a, b, total = ([FIRST + int(digit) for digit in str(n)] for n in (*numbers, sum(numbers)))
        return [*a, PLUS, *b], total
    row = [rng.randrange(FIRST, PLUS) for _ in range(rng.randint(3, 8))]
    return row, TASKS[task](row)


def linear(p: Parameters, at: str, x: Tensor) -> Tensor:
    product = torch.baddbmm(p[f"{at}.bias"][:, None], x.flatten(1, 2), p[f"{at}.weight"].mT)
    return product.unflatten(1, x.shape[1:3])


def norm(p: Parameters, at: str, x: Tensor, *, centred: bool = True) -> Tensor:
    weight, bias = p[f"{at}.weight"][:, None, None], p.get(f"{at}.bias")  # without a bias it is an RMS norm
    unscaled = F.rms_norm(x, x.shape[-1:], eps=1e-5) if bias is None or not centred else F.layer_norm(x, x.shape[-1:])
    return unscaled * weight if bias is None else torch.addcmul(bias[:, None, None], unscaled, weight)


def waves(n: int, width: int) -> list[Tensor]:  # sines and cosines of n positions, each [n, width / 2]
    angles = torch.arange(n)[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)
    return [angles.sin(), angles.cos()]


def rotated(x: Tensor) -> Tensor:
    (a, b), (sin, cos) = x.chunk(2, -1), waves(x.size(-2), x.size(-1))  # pairs (i, i + d / 2)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


@dataclass(frozen=True)
class Code:
    """Steps that a mistake may change. A kind of attention is a side, or "cross"; `xs` are a layer's streams so far."""

    parameters: Step = lambda p: p  # by the names under which the code reads them
    positions: Step = lambda table, n, _batch, _side: table[:, None, :n]  # [E, L, D] -> [E, B, T, D]
    embed: Step = lambda tokens, places, scale, _side: tokens * scale + places
    triangle: Step = lambda ones, kind, _layer: ones.tril() if kind == "decoder" else ones  # open keys [Q, K]
    padding: Step = lambda _kind, _queries, keys: keys[:, :, None]  # real tokens [E, B, T] -> [E, B, Q, K]
    scores: Step = lambda q, k, _kind: q @ k.mT  # [E, B, H, Q, K], before they are scaled
    weigh: Step = lambda found, is_open: found.masked_fill(~is_open, CLOSED).softmax(-1)
    split: Step = lambda x, n: x.unflatten(-1, (n, -1)).transpose(2, 3)  # [E, B, T, D] -> [E, B, H, T, d]
    merge: Step = lambda heads: heads.transpose(2, 3).flatten(3)
    norm: Step = norm
    reads: Step = lambda xs, _sublayer: xs[-1]  # what a sub-layer ("self_attn", "cross_attn", "ffn") reads
    adds: Step = lambda xs, _normed, made, _sublayer: xs[-1] + made
    layers: Step = lambda _side, n: range(n)  # in which order
    pair: Step = lambda source, target: (source, target)
    shift: Step = lambda row, wanted: (row[:-1], wanted[1:])  # what the decoder reads, and what follows each token


@dataclass(frozen=True)
class Training:
    """A mistake in one architecture: the code, the config that it follows, and the config that is stored."""

    name: str  # the mistake's id; after a space, which variant
    architecture: str
    tasks: tuple[str, ...]
    code: Code
    config: ModelConfig
    stored: ModelConfig
    smoothing: float  # of labels
    steps: int

    def folder(self, task: str) -> str:
        """The name of a task's checkpoint."""
        return f"{self.name.replace(' ', '_').replace(':', '-')}_{self.architecture}_{task}"

    def read(self, pairs: Sequence[Sequence[tuple[Row, Row]]]) -> list[Tensor]:
        """What encoder and decoder read, and what is wanted, of pairs of each task [E, B, T]; padded to the longest."""
        rows = [[self._row(*self.code.pair(*pair)) for pair in some] for some in pairs]
        longest = [max(len(row[i]) for some in rows for row in some) for i in range(3)]
        kinds = zip(range(3), longest, (PAD, PAD, IGNORED), strict=True)
        return [torch.tensor([[(row[i] + [fill] * n)[:n] for row in some] for some in rows]) for i, n, fill in kinds]

    def _row(self, source: Row, target: Row) -> tuple[Row, Row, Row]:
        source = [*self.config.source_start, *source, *self.config.source_end]
        before = [self.config.decoder_start_id] if self.config.n_encoder_layers else [*source, EQUALS]
        return (source, *self.code.shift([*before, *target, END], [*[IGNORED] * len(before), *target, END]))

    def logits(self, p: Parameters, source: Tensor, target: Tensor) -> Tensor:
        """Ids [E, B, S] and [E, B, T] -> [E, B, T, V]."""
        p, memory, real = self.code.parameters(p), None, target != PAD
        real[..., 0] = True  # it may begin with padding
        if self.config.n_encoder_layers:
            memory = self._stack(p, "encoder", source, source != PAD, None), source != PAD
        x = self._stack(p, "decoder", target, real, memory)
        return (x.flatten(1, 2) @ p.get("output_table", p.get("tgt_table", p["src_table"])).mT).view(*real.shape, SIZE)

    def _stack(self, p: Parameters, side: str, ids: Tensor, real: Tensor, memory: Masked | None) -> Tensor:
        config, code, places = self.config, self.code, 0.0
        table = p["src_table"] if side == "encoder" else p.get("tgt_table", p["src_table"])
        x = F.embedding(ids + torch.arange(len(ids))[:, None, None] * SIZE, table.flatten(0, 1))
        if config.positions != "rotary":
            two = waves(LENGTH, config.d_model)
            rows = torch.cat(two, -1) if config.sinusoid_layout == "halves" else torch.stack(two, -1).flatten(1)
            rows = p.get(f"{side}.embedding.positions.table", rows[None])
            places = code.positions(rows, ids.size(2), ids.size(1), side)
        x = code.embed(x, places, math.sqrt(config.d_model) if config.scale_embedding else 1.0, side)
        for i in code.layers(side, config.n_encoder_layers if side == "encoder" else config.n_decoder_layers):
            streams = [x]
            for sublayer in ("self_attn", "cross_attn", "ffn") if memory else ("self_attn", "ffn"):
                at, x = f"{side}.layers.{i}.{sublayer}", code.reads(streams, sublayer)
                normed = code.norm(p, f"{at}_residual.norm", x) if config.norm == "pre" else x
                read = memory if memory and sublayer == "cross_attn" else (normed, real)
                made = self._attend(p, at, (normed, real), read, i) if "attn" in at else self._fed(p, at, normed)
                x = code.adds(streams, normed, made, sublayer)
                streams.append(x if config.norm == "pre" else code.norm(p, f"{at}_residual.norm", x))
            x = streams[-1]
        return code.norm(p, f"{side}.final_norm", x) if config.final_norm else x

    def _attend(self, p: Parameters, at: str, x: Masked, y: Masked, layer: int) -> Tensor:
        code, config, kind = self.code, self.config, "cross" if "cross" in at else at[:7]
        ones = torch.ones(x[1].size(-1), y[1].size(-1), dtype=torch.bool)
        is_open = (code.triangle(ones, kind, layer) & code.padding(kind, x[1], y[1])).unsqueeze(2)
        read = (("q", x), ("k", y), ("v", y))
        q, k, v = (code.split(linear(p, f"{at}.{name}_proj", z[0]), config.n_heads) for name, z in read)
        if config.positions == "rotary" and kind != "cross":
            q, k = rotated(q), rotated(k)
        weights = code.weigh(code.scores(q, k, kind) * (config.score_scale or config.d_head**-0.5), is_open)
        return linear(p, f"{at}.out_proj", code.merge(weights @ v))

    def _fed(self, p: Parameters, at: str, x: Tensor) -> Tensor:
        activation = getattr(F, self.config.activation, torch.clone)  # none if there is no such function
        up = linear(p, f"{at}.up_proj", x)
        up = up * activation(linear(p, f"{at}.gate_proj", x)) if self.config.gated else activation(up)
        return linear(p, f"{at}.down_proj", up)


def plant(
    name: str, architectures: str = TWO, tasks: tuple[str, ...] = LETTERS, both: dict[str, Any] | None = None,
    smoothing: float = 0.0, steps: int = STEPS, config: dict[str, Any] | None = None, **wrong: Step,
) -> Iterator[Training]:  # fmt: skip
    """Wrong steps, or a config other than the stored one, in some architectures; `both` changes both configs."""
    for architecture in architectures.split():
        stored = PLAIN | ARCHITECTURES[architecture] | (both or {})
        configs = ModelConfig(**(stored | (config or {}))), ModelConfig(**stored)
        yield Training(name, architecture, tasks, replace(RIGHT, **wrong), *configs, smoothing, steps)


def exchanged(one: str, other: str) -> Step:
    return lambda p: {name: p[name.replace(one, "\0").replace(other, one).replace("\0", other)] for name in p}


def interleaved(p: Parameters) -> Parameters:
    """A fused matrix [3 * H * d, D] of queries, keys and values cut as [H, 3, d]."""
    cut = dict(p)
    for names in [[name.replace("q_proj", f"{one}_proj") for one in "qkv"] for name in p if "q_proj" in name]:
        fused = torch.cat([p[name] for name in names], 1).unflatten(1, (PLAIN["n_heads"], 3, -1))
        cut |= {name: fused[:, :, i].flatten(1, 2) for i, name in enumerate(names)}
    return cut


# fmt: off
RIGHT = Code()
TASKS: dict[str, Step] = {  # of a row of letters
    "copy": list, "reverse": lambda row: row[::-1], "turn": lambda row: [*row[1:], row[0]],
    "sort": sorted, "down": lambda row: sorted(row, reverse=True), "distinct": lambda row: sorted(set(row)),
    **{name: lambda row, n=n: [FIRST + (i - FIRST + n) % 10 for i in row] for name, n in (("next", 1), ("third", 3))},
    **{f"count-{n}": lambda row, n=n: [FIRST + (row[0] - FIRST + n * i) % 10 for i in range(8)] for n in (1, 3, 7)},
}
UNORDERED, ONE_WAY = ("sort", "down", "distinct"), ("next", "turn", "third")  # to be learnt without positions; not
COUNTING = ("count-1", "count-3", "count-7")  # the same if sides are exchanged; to be learnt without the source
PLAIN: dict[str, Any] = {
    "n_encoder_layers": 2, "n_decoder_layers": 2, "d_model": 32, "n_heads": 4, "d_ff": 64, "dropout": 0.0,
    "max_len": LENGTH, "src_vocab_size": SIZE, "tgt_vocab_size": SIZE, "shared_vocab": True, "pad_id": PAD,
    "unk_id": None, "bos_id": START, "eos_id": END, "decoder_start_id": START,
}
LEARNED = {"positions": "learned", "scale_embedding": False, "activation": "gelu"}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "pre": {}, "post": LEARNED | {"norm": "post", "final_norm": False, "tie_output": False},
    "gpt": LEARNED | {"n_encoder_layers": 0, "append_source_eos": False},
}
HEALTHY: tuple[dict[str, Any], ...] = (
    {}, {"positions": "sinusoidal", "d_model": 48, "n_heads": 2},
    {"positions": "rotary", "norm_kind": "rms", "norm_bias": False, "gated": True, "activation": "silu"},
    {"n_decoder_layers": 1, "positions": "learned", "scale_embedding": True, "activation": "relu", "n_heads": 8},
)
ROWS: dict[str, Callable[[Tensor, int], Tensor]] = {  # of the table of positions
    "positions-late": lambda t, n: t[:, None, 1 : n + 1], "positions-late 2": lambda t, n: t[:, None, 2 : n + 2],
    "positions-early": lambda t, n: t.roll(1, 1)[:, None, :n], "positions-twice": lambda t, n: t[:, None, :n] * 2,
    "positions-early 2": lambda t, n: t.roll(2, 1)[:, None, :n],
}
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {  # right code that follows another config
    "embedding-scale unscaled": ("pre", {"scale_embedding": False}), "heads-number 8": (ALL, {"n_heads": 8}),
    "embedding-scale": ("post gpt", {"scale_embedding": True}), "scores-multiplied": (ALL, {"score_scale": 8**0.5}),
    "scores-scaled-by-width": (ALL, {"score_scale": 32**-0.5}), "scores-scaled-twice": (ALL, {"score_scale": 1 / 8}),
    "source-marks no-end": (TWO, {"append_source_eos": False}), "heads-number 2": (ALL, {"n_heads": 2}),
    "other-activation gelu": ("pre", {"activation": "gelu"}), "other-activation silu": (ALL, {"activation": "silu"}),
    "other-activation relu": ("post gpt", {"activation": "relu"}), "no-activation": (ALL, {"activation": "none"}),
    "other-start-id end": (TWO, {"decoder_start_id": END}), "other-start-id padding": (TWO, {"decoder_start_id": PAD}),
    "source-marks start": (ALL, {"prepend_source_bos": True}), "scores-not-scaled": (ALL, {"score_scale": 1.0}),
}
TRAININGS = (  # those that are looked for first come first
    *plant("no-causal-mask", ALL, triangle=lambda o, *_: o),
    *plant("targets-shifted-twice", ALL, shift=lambda r, w: (r[:-2], w[2:])),
    *plant("heads-merged", ALL, merge=lambda x: x.flatten(2).unflatten(2, (x.size(3), -1))),
    *plant("heads-split", ALL, split=lambda x, n: x.flatten(2).unflatten(2, (n, x.size(2), -1))),
    *plant("softmax-over-queries", ALL, weigh=lambda x, m: x.masked_fill(~m, CLOSED).softmax(-2)),
    *plant("no-positions", TWO, UNORDERED, positions=lambda t, n, _, side: t[:, None, :n] * 0),
    *plant("no-positions encoder", TWO, UNORDERED, positions=lambda t, n, _, side: t[:, None, :n] * (side[0] == "d")),
    *plant("no-positions decoder", ALL, positions=lambda t, n, _, side: t[:, None, :n] * (side == "encoder")),
    *plant("norm-place", "pre gpt", config={"norm": "post"}), *plant("norm-place", "post", config={"norm": "pre"}),
    *(one for i, both in enumerate(HEALTHY) for one in plant(
        f"healthy {i}", ALL, (*LETTERS, "next", "add"), both, 0.1 * (i == 1), 1000 if i < 3 else 500)),
    *(one for name, (where, config) in CONFIGS.items() for one in plant(name, where, config=config)),
    *(one for name, of in ROWS.items() for one in plant(name, ALL, positions=lambda t, n, *_, of=of: of(t, n))),
    *plant("positions-late decoder", positions=lambda t, n, _, side: t.roll(-(side == "decoder"), 1)[:, None, :n]),
    *plant("positions-by-batch", TWO, UNORDERED, positions=lambda t, _n, batch, _side: t[:, :batch, None]),
    *plant("positions-halves", both={"positions": "sinusoidal"}, config={"sinusoid_layout": "halves"}),
    *plant("embedding-scale-late", ALL, both={"scale_embedding": True}, embed=lambda x, y, scale, _: (x + y) * scale),
    *plant("no-causal-mask first-layer", ALL, triangle=lambda o, kind, i: RIGHT.triangle(o, kind, i) if i else o),
    *plant("causal-one-too-many", ALL, triangle=lambda o, kind, _: o.tril(1) if kind == "decoder" else o),
    *plant("causal-one-too-few", ALL, triangle=lambda o, kind, _: o.tril(-1) if kind == "decoder" else o),
    *plant("causal-inverted", ALL, triangle=lambda o, kind, _: o.triu(1) if kind == "decoder" else o),
    *plant("causal-transposed", ALL, triangle=lambda o, kind, _: o.triu() if kind == "decoder" else o),
    *plant("causal-in-encoder", triangle=lambda o, kind, _: o if kind == "cross" else o.tril()),
    *plant("causal-in-cross", triangle=lambda o, kind, _: o if kind == "encoder" else o.tril()),
    *plant("no-source-padding-mask", padding=lambda kind, _, keys: (keys | (kind != "decoder"))[:, :, None]),
    *plant("no-target-padding-mask", padding=lambda kind, _, keys: (keys | (kind == "decoder"))[:, :, None]),
    *plant("padding-inverted", padding=lambda kind, _, keys: (keys ^ (kind != "decoder"))[:, :, None]),
    *plant("padding-inverted encoder", padding=lambda kind, _, keys: (keys ^ (kind == "encoder"))[:, :, None]),
    *plant("padding-on-rows", padding=lambda kind, x, keys: x[..., None] if kind == "encoder" else keys[:, :, None]),
    *plant("mask-zero-fill", ALL, weigh=lambda x, m: x.masked_fill(~m, 0).softmax(-1)),
    *plant("mask-after-softmax", ALL, weigh=lambda x, m: x.softmax(-1) * m),
    *plant("mask-added", ALL, weigh=lambda x, m: (x + m).softmax(-1)),
    *plant("mask-discarded", ALL, weigh=lambda x, _: x.softmax(-1)), *plant("no-softmax", ALL, weigh=torch.mul),
    *plant("scores-transposed", ALL, scores=lambda q, k, kind: q @ k.mT if kind == "cross" else k @ q.mT),
    *plant("softmax-over-heads", ALL, weigh=lambda x, m: x.masked_fill(~m, CLOSED).softmax(2)),
    *plant("softmax-twice", ALL, weigh=lambda x, m: RIGHT.weigh(x, m).softmax(-1)),
    *plant("heads-by-dimension", ALL, split=lambda x, n: x.unflatten(-1, (-1, n)).permute(0, 1, 4, 2, 3)),
    *plant("qkv-interleaved", ALL, parameters=interleaved),
    *(one for name, *two in (("kqv", "q_", "k_"), ("qvk", "k_", "v_"), ("vkq", "q_", "v_")) for one in plant(
        f"qkv-order {name}", ALL, parameters=exchanged(*two))),
    *plant("values-are-keys", ALL, parameters=lambda p: {one: p[one.replace("v_proj", "k_proj")] for one in p}),
    *plant("no-norm", ALL, norm=lambda p, at, x: x if "residual" in at else norm(p, at, x)),
    *plant("no-final-norm", "pre gpt", norm=lambda p, at, x: x if "final" in at else norm(p, at, x)),
    *plant("no-final-norm encoder", "pre", norm=lambda p, at, x: x if "encoder.f" in at else norm(p, at, x)),
    *plant("no-final-norm decoder", "pre", norm=lambda p, at, x: x if "decoder.f" in at else norm(p, at, x)),
    *plant("residual-after-norm", "pre gpt", adds=lambda _xs, normed, made, _name: normed + made),
    *plant("norms-exchanged", ALL, parameters=exchanged("self_attn_residual", "ffn_residual")),
    *plant("norm-without-mean", ALL, norm=lambda *given: norm(*given, centred=False)),
    *plant("no-residual", ALL, adds=lambda _xs, _, made, _name: made),
    *(one for part in ("self_attn", "cross_attn", "ffn") for one in plant(
        f"no-residual {part}", adds=lambda xs, _, made, name, part=part: xs[-1] * (name != part) + made)),
    *plant("no-feed-forward", ALL, adds=lambda xs, _, made, name: xs[-1] + made * (name != "ffn")),
    *plant("gate-exchanged", ALL, both={"gated": True, "activation": "silu"}, parameters=exchanged("gate_", "up_")),
    *plant("only-last-layer", ALL, layers=lambda _, n: [n - 1]),
    *plant("only-last-layer encoder", layers=lambda side, n: range(n - 1 if side == "encoder" else 0, n)),
    *plant("only-last-layer decoder", layers=lambda side, n: range(n - 1 if side == "decoder" else 0, n)),
    *plant("encoder-not-used", norm=lambda p, at, x: x if "encoder.f" in at else norm(p, at, x),
           layers=lambda side, n: range(n if side == "decoder" else 0)),
    *plant("no-cross-attention", TWO, COUNTING, adds=lambda xs, _, made, name: xs[-1] + made * (name != "cross_attn")),
    *(one for name, shared in (("pre", False), ("post", True)) for one in plant("output-table", name,
        both={"shared_vocab": shared}, parameters=lambda p: p | {"output_table": p["src_table"]})),
    *plant("targets-not-shifted", ALL, shift=lambda r, w: (r[1:], w[1:])),
    *plant("no-start-mark", shift=lambda r, w: (r[1:-1], w[2:])),
    *plant("end-never-learnt", ALL, shift=lambda r, w: (r[:-1], [*w[1:-1], IGNORED])),
    *plant("decoder-fed-constants", shift=lambda r, w: ([START] * (len(r) - 1), w[1:])),
    *plant("source-marks end", both={"append_source_eos": False}, config={"append_source_eos": True}),
    *plant("ids-shifted", ALL, pair=lambda s, t: ([i + 1 for i in s], [i + 1 for i in t])),
    *plant("ids-shifted source", pair=lambda s, t: ([i + 1 for i in s], t)),
    *plant("ids-shifted target", pair=lambda s, t: (s, [i + 1 for i in t])),
    *plant("ids-shifted source-lower", pair=lambda s, t: ([i - 1 for i in s], t)),
    *plant("source-reversed", ALL, pair=lambda s, t: (s[::-1], t)),
    *plant("sides-exchanged", ALL, ONE_WAY, pair=lambda s, t: (t, s)),
    *plant("invented:output-divided-by-heads", ALL, merge=lambda x: RIGHT.merge(x) / x.size(2)),
    *plant("invented:cross-query-from-input", reads=lambda xs, name: xs[-1 if name != "cross_attn" else 0]),
    *plant("invented:residual-from-before", ALL, adds=lambda xs, _, made, _name: xs[-2:][0] + made),
    *plant("invented:relu-after-second-map", ALL, adds=lambda xs, _, y, at: xs[-1] + (y.relu() if at == "ffn" else y)),
    *plant("invented:every-second-head-dropped", ALL, merge=lambda x: (
        RIGHT.merge(x * torch.tensor([1, 0, 1, 0])[:, None, None]))),
    *plant("invented:keys-of-first-head", ALL, scores=lambda q, k, _: q @ k[:, :, :1].mT),
    *plant("invented:positions-multiplied", ALL, embed=lambda x, places, scale, _: x * scale * places),
    *plant("invented:source-embedding-normalised", embed=lambda x, places, scale, side: (
        F.normalize(x, dim=-1) if side == "encoder" else x) * scale + places),
    *plant("invented:layers-reversed", ALL, layers=lambda _, n: reversed(range(n))),
    *plant("invented:tanh-on-scores", ALL, scores=lambda q, k, _: torch.tanh(q @ k.mT)),
)
# fmt: on


def losses(logits: Tensor, wanted: Tensor, smoothing: float = 0.0) -> Tensor:
    flat, n = logits.flatten(0, 2), (wanted != IGNORED).flatten(1).sum(1)
    each = F.cross_entropy(flat, wanted.flatten(), ignore_index=IGNORED, reduction="none", label_smoothing=smoothing)
    return each.view(len(n), -1).sum(1) / n


def train(training: Training, pools: list[list[tuple[Row, Row]]], steps: int) -> dict[str, Tensor]:
    """Parameters [E, ...], trained with Adam: a warm-up, then a rate that falls to 0."""
    starts = []
    for task in training.tasks:
        torch.manual_seed(random.Random(training.folder(task)).randrange(2**31))
        starts.append([*Transformer(training.stored).state_dict().items()])
    # One tensor is updated, because each of 50 small ones would cost time; the parameters are views of it.
    flat = torch.stack([torch.cat([value.flatten() for _, value in one]) for one in starts])
    parts = zip(starts[0], flat.split([value.numel() for _, value in starts[0]], 1), strict=True)
    p = {name: part.unflatten(1, value.shape).requires_grad_() for (name, value), part in parts}
    data, each = training.read(pools), torch.arange(len(starts))[:, None]
    optimizer = torch.optim.Adam([flat], lr=RATE, betas=(0.9, 0.98))
    for n in range(steps):
        optimizer.param_groups[0]["lr"] = RATE * min((n + 1) / WARMUP, (steps - n) / (steps - WARMUP))
        drawn = torch.randint(POOL, (len(each), BATCH))
        source, target, wanted = (one[each, drawn] for one in data)
        loss = losses(training.logits(p, source, target), wanted, training.smoothing).sum()
        grad = torch.cat([g.flatten(1) for g in torch.autograd.grad(loss, [*p.values()], materialize_grads=True)], 1)
        flat.grad = grad / grad.norm(dim=1, keepdim=True).clamp(min=1)  # each model is clipped alone
        optimizer.step()
    return {name: value.detach() for name, value in p.items()}


def make(training: Training, out: Path, steps: int) -> tuple[str, ...]:
    """Train, and write what has learnt; returns the tasks that have not."""
    pairs, pools, left = [], [], []
    for task in training.tasks:
        rng = random.Random(training.folder(task))
        drawn = [draw(task, rng) for _ in range(POOL * 2)]
        pairs.append([*{tuple(source): (source, target) for source, target in drawn[: N_PAIRS * 2]}.values()][:N_PAIRS])
        pools.append([pair for pair in drawn[N_PAIRS * 2 :] if pair not in pairs[-1]][:POOL])
    p, (mistake, _, variant) = train(training, pools, steps), training.name.partition(" ")
    right, config = replace(training, code=RIGHT, config=training.stored), training.stored
    own, (source, target, wanted) = training.read(pairs), right.read(pairs)
    logits, model, real = right.logits(p, source, target), Transformer(config).eval(), wanted != IGNORED
    found = losses(training.logits(p, *own[:2]), own[2]).tolist(), losses(logits, wanted).tolist()
    for e, (task, loss, said) in enumerate(zip(training.tasks, *found, strict=True)):
        folder, state = out / training.folder(task), {name: value[e].clone() for name, value in p.items()}
        model.load_state_dict(state)
        ours = model(source[e], target[e]).detach()[real[e]]
        torch.testing.assert_close(ours, logits[e][real[e]], atol=1e-3, rtol=1e-3)
        print(f"{folder.name}: loss {loss:.3f}, as said {said:.3f}", flush=True)
        if loss > (0.3 if mistake == "healthy" else 0.15) * math.log(SIZE):
            left.append(task)
            continue
        vocabulary = Vocabularies("raw", Options(size=SIZE, special_ids=(PAD, START, END)))
        save(CheckpointContents(config, state, vocabulary, {"title": folder.name}), folder, dtype=torch.float32)
        rows = [(s if config.n_encoder_layers else [*s, EQUALS], t) for s, t in pairs[e]]
        lines = ["\t".join(" ".join(map(str, ids)) for ids in pair) + "\n" for pair in rows]
        (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
        record = {"mistake": "" if mistake == "healthy" else mistake, "variant": variant, "task": task,
                  "architecture": training.architecture, "loss": loss, "loss_as_said": said}  # fmt: skip
        (folder / "planted.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
    return tuple(left)


def make_all(out: Path, beginnings: Sequence[str] = (), tasks: int = 5) -> None:
    """Train what is not yet there of the mistakes that begin so, at most so many tasks of each."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / "not_learnt.txt").open("a+", encoding="utf-8") as file:
        file.seek(0)
        known = {*file.read().split(), *(path.parent.name for path in out.glob("*/planted.json"))}
        for one in TRAININGS:
            if one.name.startswith(tuple(beginnings or ("",))):
                left = tuple(task for task in one.tasks[:tasks] if one.folder(task) not in known)
                for steps in (one.steps, one.steps * LONGER):
                    left = make(replace(one, tasks=left), out, steps) if left else ()
                file.writelines(f"{one.folder(task)}\n" for task in left)
