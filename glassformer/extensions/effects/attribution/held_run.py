"""A step's run as linear maps: attention weights, sizes of norms and the activity of neurons held as they were.

Held so, everything from what was written into the stream to the logits is linear, up to constants:

    norms        γ (x - centre(x)) / size + β, size held
    attention    Σ α v, α held; queries and keys act through it alone
    neurons      f(z) = (f(z) / z) z, the ratio held: 0 or 1 for ReLU; with a gate, f(gate) is held

`reads` goes forward: what each part wrote, as each sub-layer reads it. `HeldRun.slopes` goes back: what the output owes
to each number that a sub-layer wrote. Biases, β among them, are one part of their own. All is computed in float64.

Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021).

Shapes: S parts that have written, T tokens, Q queries, K keys, H heads, G key-value heads, D d_model, d d_head, F d_ff.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from glassformer.extensions.effects.attribution.logit import Kind, LogitPart, is_changed
from glassformer.extensions.effects.attribution.target import AttributionTarget
from transformer.errors import QueryError
from transformer.i18n import say_n
from transformer.model.anatomy import StackName
from transformer.model.attention import share_heads
from transformer.model.layers import Around
from transformer.model.module import Linear, widened
from transformer.model.norms import Norm
from transformer.model.taps import Recorder

MOST_LAYERS: Final = 12  # of a stack
MOST_VALUES: Final = 2**26  # of what all parts write into a stack, or of the edges of a sub-layer: 512 MB
_NEAR_0: Final = 1e-6  # below it, the ratio of a neuron is taken further away

_EMBEDDED: Final[tuple[Kind, ...]] = ("tokens", "positions", "types")


@dataclass(frozen=True)
class Writer(LogitPart):
    """What writes into the stream at every token; also the output, which reads it."""

    stack: StackName | None = None  # where; None for the biases and the output

    @property
    def place(self) -> str:
        """The start of its sub-layer's sites."""
        return f"{self.stack}.{self.layer}.{self.sublayer}"


@dataclass(frozen=True)
class HeldNorm:
    """A norm whose size is held."""

    norm: Norm  # itself
    size: Tensor  # [T, 1]

    def forward(self, rows: Tensor) -> Tensor:
        """What becomes of each part of its input [S, T, D], the first of which has the biases."""
        read = _double(self.norm.weight) * (rows - self.norm.centre(rows)) / self.size
        if self.norm.bias is not None:
            read[0] += _double(self.norm.bias)
        return read

    def back(self, slopes: Tensor) -> Tensor:
        """Slopes by its output -> by its input [T, D]."""
        scaled = _double(self.norm.weight) * slopes / self.size
        return scaled - self.norm.centre(scaled)


def _double(values: Tensor) -> Tensor:
    return widened(values).cpu().double()


def _forward(norm: HeldNorm | None, rows: Tensor) -> Tensor:
    return rows if norm is None else norm.forward(rows)


def _back(norm: HeldNorm | None, slopes: Tensor) -> Tensor:
    return slopes if norm is None else norm.back(slopes)


@dataclass(frozen=True)
class HeldAttention:
    """Attention whose weights are held."""

    alpha: Tensor  # [H, Q, K]
    heads: Tensor  # what each head took [H, Q, d]
    into: Tensor  # W_V [G * d, D]
    into_bias: Tensor | float
    out: Tensor  # W_O [D, H * d]
    bias: Tensor | float

    def _by_heads(self, slopes: Tensor) -> Tensor:
        return (slopes @ self.out).unflatten(1, (len(self.alpha), -1))  # [Q, H, d]

    def back(self, slopes: Tensor) -> Tensor:
        """Slopes by its output [Q, D] -> by what its values are made of [K, D]."""
        values = torch.einsum("hqk,qhd->khd", self.alpha, self._by_heads(slopes))
        groups = len(self.into) // values.size(-1)
        return values.unflatten(1, (groups, -1)).sum(dim=2).flatten(1) @ self.into

    def edges(self, rows: Tensor, slopes: Tensor) -> Tensor:
        """What each head owes to each part at each key [S, K, D] -> [H, Q, S, K]."""
        values = rows @ self.into.T
        values[0] += self.into_bias
        values = values.unflatten(-1, (-1, self.heads.size(-1))).transpose(1, 2)  # [S, G, K, d]
        shared = share_heads(values, len(self.alpha))
        return torch.einsum("shkd,qhd->hqsk", shared, self._by_heads(slopes)) * self.alpha[:, :, None]

    def written(self) -> Tensor:
        """What each head adds [H, Q, D]."""
        return torch.einsum("hqd,mhd->hqm", self.heads, self.out.unflatten(1, (len(self.heads), -1)))


@dataclass(frozen=True)
class HeldFeedForward:
    """A feed-forward network whose neurons are held."""

    ratio: Tensor  # [T, F]
    activation: Tensor  # [T, F]
    into: Tensor  # W_up [F, D]
    into_bias: Tensor | float
    out: Tensor  # W_down [D, F]
    bias: Tensor | float

    def back(self, slopes: Tensor) -> Tensor:
        """Slopes by its output -> by its input [T, D]."""
        return (slopes @ self.out * self.ratio) @ self.into

    def edges(self, rows: Tensor, slopes: Tensor) -> Tensor:
        """What it owes to each part at its own token [S, T, D] -> [1, T, S, 1]."""
        found = torch.einsum("std,td->ts", rows, self.back(slopes))
        found[:, 0] += (slopes @ self.out * self.ratio * self.into_bias).sum(dim=-1)
        return found[None, :, :, None]

    def written(self) -> Tensor:
        """What it adds [1, T, D]."""
        return (self.activation @ self.out.T)[None]


@dataclass(frozen=True)
class HeldSublayer:
    """A sub-layer with what stands around it."""

    writers: tuple[Writer, ...]  # its heads, or itself
    around: Around
    map: HeldAttention | HeldFeedForward
    before: HeldNorm | None
    own: HeldNorm | None  # of its output alone
    after: HeldNorm | None
    parallel: bool  # reads what its layer read

    @property
    def place(self) -> str:
        """The start of its sites."""
        return self.writers[0].place


class HeldRun:
    """What a step computed, and the linear maps that it consists of with the rest held."""

    def __init__(self, asked: AttributionTarget) -> None:
        self.asked, self.model = asked, asked.model
        self.stacks: list[StackName] = [stack.name for stack in self.model.anatomy.stacks]
        self._check_size()
        recorder = Recorder(["*"])
        self.logits = asked.logits(tap=asked.tap.also(recorder))[0].cpu().double()
        self.seen = recorder.values
        self.n_tokens = {stack: len(self.value(f"{stack}.embedding.tokens")) for stack in self.stacks}
        self.sublayers = {stack: list(self._held(stack)) for stack in self.stacks}
        self.final = {stack: self._final(stack) for stack in self.stacks}

    def _check_size(self) -> None:
        config, stacks = self.model.config, self.model.anatomy.stacks
        if (deepest := max(stack.n_layers for stack in stacks)) > MOST_LAYERS:
            raise QueryError(
                "this model has {n} layers; the graph of a logit is computed for at most {most} in a stack.",
                n=deepest,
                most=MOST_LAYERS,
            )
        parts = max(stack.n_layers * (2 * config.of(stack.name).n_heads + 1) for stack in stacks)
        most = min(MOST_VALUES // (parts * config.d_model), int((MOST_VALUES / (parts * config.n_heads)) ** 0.5))
        if (n := max(self.asked.read_ids.size(1), self.asked.src_ids.size(1))) > most:
            raise QueryError(
                say_n(
                    "{n:,} token is too long for the graph of a logit: for this model the limit is {most:,}.",
                    "{n:,} tokens are too long for the graph of a logit: for this model the limit is {most:,}.",
                    n,
                    most=most,
                )
            )

    def check(self, was: Tensor, parts: Tensor, site: str) -> None:
        """Check that parts add up to what the run had; a QueryError if a change to the model is in the way."""
        if is_changed(was, parts):
            raise QueryError(
                "this run is changed at {site}, so its parts do not add up there; remove the change to see the graph.",
                site=site,
            )

    def value(self, site: str) -> Tensor:
        """What the run had at a site, without the axis of the batch."""
        found = self.seen[site].double()
        return found if site.endswith("embedding.positions") else found[0]

    def norm(self, norm: Any, site: str) -> HeldNorm | None:
        """A norm that read a site; None where there is none."""
        return HeldNorm(norm, norm.size(self.value(site))) if isinstance(norm, Norm) else None

    def weight(self, module: Linear, place: str, name: str) -> tuple[Tensor, Tensor | float]:
        """The matrix and the bias that a linear map went by."""
        tap = self.asked.tap.child(*place.split("."), name)
        bias = tap.setting("bias", module.bias)
        return _double(tap.setting("weight", module.weight)), 0.0 if bias is None else _double(bias)

    def _final(self, stack: StackName) -> HeldNorm | None:
        module = self.model.stack(stack)
        return self.norm(module.final_norm, f"{stack}.{len(module.layers) - 1}.output")

    def _held(self, stack: StackName) -> Iterator[HeldSublayer]:
        stream, parallel = f"{stack}.embedding.output", self.model.config.parallel_residual
        for n, layer in enumerate(self.model.stack(stack).layers):
            start = stream
            for part in self.model.anatomy.stack(stack).sublayers:
                place, module = f"{stack}.{n}.{part}", getattr(layer, f"{part}_residual")
                post, site = module.around.post, start if parallel else stream
                heads = range(self.seen[f"{place}.heads"].size(1)) if part != "ffn" else (None,)
                yield HeldSublayer(
                    tuple(Writer("ffn" if part == "ffn" else "head", n, part, head, stack) for head in heads),
                    module.around,
                    (self._feed_forward if part == "ffn" else self._attention)(getattr(layer, part), place),
                    before=None if post else self.norm(module.norm, site),
                    own=None if post else self.norm(module.output_norm, f"{place}.output"),
                    after=self.norm(module.norm, f"{place}.residual") if post else None,
                    parallel=parallel and part == "ffn",
                )
                stream = f"{place}.norm" if post else f"{place}.residual"

    def _attention(self, module: Any, place: str) -> HeldAttention:
        into, out = self.weight(module.v_proj, place, "v_proj"), self.weight(module.out_proj, place, "out_proj")
        return HeldAttention(self.value(f"{place}.weights"), self.value(f"{place}.heads"), *into, *out)

    def _feed_forward(self, module: Any, place: str) -> HeldFeedForward:
        into, out = self.weight(module.up_proj, place, "up_proj"), self.weight(module.down_proj, place, "down_proj")
        act = self.asked.tap.child(*place.split(".")).setting("function", module.activation)
        read = self.value(f"{place}.pre_activation")
        ratio = act(read) if module.gated else ratio_of(act, read)
        return HeldFeedForward(ratio, self.value(f"{place}.activation"), *into, *out)

    def output(self, rival: int | None) -> tuple[Tensor, float]:
        """The direction in which the logit, minus a rival's, reads the last vector [D], and what it adds."""
        model, ids = self.model, [self.asked.piece, *([] if rival is None else [rival])]
        signs = torch.tensor([1.0, -1.0], dtype=torch.float64)[: len(ids)]
        table = _double(self.asked.tap.setting("output_weight", model.output_weight)[ids])
        row = signs @ table * model.config.output_scale
        bias = 0.0 if model.output_bias is None else float(signs @ _double(model.output_bias[ids]))
        if (head := model.mlm_head) is None:
            return row, bias
        if (norm := self.norm(head.norm, "mlm_head.activation")) is not None:
            bias += float(norm.forward(torch.zeros(1, 1, len(row), dtype=row.dtype))[0, 0] @ row)
            row = norm.back(row)[0]
        row = row * ratio_of(head.activation, self.value("mlm_head.pre_activation"))[0]
        weight, constant = self.weight(head.proj, "mlm_head", "proj")
        return row @ weight, bias + float((row * constant).sum())

    def slopes(self, row: Tensor) -> dict[str, Tensor]:
        """Of the logit, which reads the last vector by `row` [D], by what each sub-layer wrote, by its place [T, D]."""
        found: dict[str, Tensor] = {}
        ends = {stack: torch.zeros(n, len(row), dtype=row.dtype) for stack, n in self.n_tokens.items()}
        ends[self.stacks[-1]][self.asked.row] = row
        for stack in reversed(self.stacks):
            stream = _back(self.final[stack], ends[stack])
            waiting = torch.zeros_like(stream)  # for the start of a layer whose sub-layers are parallel
            for one in reversed(self.sublayers[stack]):
                stream = _back(one.after, stream)
                found[one.place] = _back(one.own, stream)
                read = one.map.back(found[one.place])
                stream = stream if one.around.adds else torch.zeros_like(stream)
                if one.place.endswith("cross_attn"):
                    ends["encoder"] += read
                elif one.parallel:
                    waiting = _back(one.before, read)
                else:
                    stream, waiting = stream + _back(one.before, read) + waiting, torch.zeros_like(stream)
        return found


def ratio_of(act: Any, read: Tensor) -> Tensor:
    """f(z) / z; next to 0 what it is a little below, where ReLU is off."""
    apart = torch.where(read.abs() < _NEAR_0, -100 * _NEAR_0, read)
    return torch.as_tensor(act(apart) / apart)


@dataclass(frozen=True)
class Read:
    """What each part wrote, as something reads it: the biases first."""

    parts: tuple[Writer, ...]
    rows: Tensor  # [S, T, D]


def reads(held: HeldRun) -> Iterator[tuple[HeldSublayer | None, Read, Read]]:
    """What each sub-layer reads, by its queries and by its keys, in the order of the computation; last, the output.

    A QueryError if a change to the model put something else where the parts have to add up.
    """
    memory: Read | None = None
    for stack in held.stacks:
        stream = start = _begin(held, stack)
        for one in held.sublayers[stack]:
            start = stream if one.writers[0].sublayer == "self_attn" else start
            seen = start if one.parallel else stream
            own = Read(seen.parts, _forward(one.before, seen.rows))
            yield one, own, memory if memory and one.place.endswith("cross_attn") else own
            stream = _past(held, one, stream)
        memory = Read(stream.parts, _forward(held.final[stack], stream.rows))
        held.check(held.value(f"{stack}.output"), memory.rows.sum(dim=0), f"{stack}.output")
    assert memory is not None
    yield None, memory, memory


def _begin(held: HeldRun, stack: StackName) -> Read:
    """What a stack's stream begins with."""
    sites = {kind: site for kind in _EMBEDDED if (site := f"{stack}.embedding.{kind}") in held.seen}
    tokens = held.value(sites["tokens"])
    rows = torch.stack([torch.zeros_like(tokens), *(held.value(site).expand_as(tokens) for site in sites.values())])
    norm = held.norm(held.model.stack(stack).embedding.norm, f"{stack}.embedding.sum")
    begun = Read((Writer("bias"), *(Writer(kind, stack=stack) for kind in sites)), _forward(norm, rows))
    held.check(held.value(f"{stack}.embedding.output"), begun.rows.sum(dim=0), f"{stack}.embedding.output")
    return begun


def _past(held: HeldRun, one: HeldSublayer, stream: Read) -> Read:
    """The stream after a sub-layer."""
    written = one.map.written()
    written = _forward(one.own, torch.cat((torch.zeros_like(written[:1]) + one.map.bias, written)))
    before = stream.rows if one.around.adds else torch.zeros_like(stream.rows)
    rows = torch.cat((before[:1] + written[:1], before[1:], written[1:]))
    after = Read((*stream.parts, *one.writers), _forward(one.after, rows))
    site = f"{one.place}.{'norm' if one.around.post else 'residual'}"
    held.check(held.value(site), after.rows.sum(dim=0), site)
    return after
