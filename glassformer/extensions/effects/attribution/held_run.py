"""A step's run as linear maps (attention, norms, neurons held): reads of each part forward, logit slopes backward.

Held so, everything from what was written into the stream to the logits is linear, up to constants:

    norms        γ (x - centre(x)) / size + β, size held; backwards J u = w - centre(w) with w = γ u / size
    attention    Σ α v, α held; queries and keys act through it alone
    neurons      f(z) = (f(z) / z) z, the ratio held: 0 or 1 for ReLU; with a gate, f(gate) is held

`reads` goes forward: what each part wrote, as each sub-layer reads it. `HeldRun.slopes` goes back: what the output owes
to each number that a sub-layer wrote. What a change to the model put in the place of a value is a constant, as biases
are. All is computed in float64.

Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021), section "Transformer Overview" for
the stream as a sum, and "Handling Layer Normalization".

Shapes: S parts that have written, T tokens, Q queries, K keys, H heads, G key-value heads, D d_model, d d_head, F d_ff.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

import torch
from torch import Tensor

from glassformer.extensions.effects.attribution.target import AttributionTarget
from transformer.model.anatomy import Kind as Attention
from transformer.model.anatomy import StackName, Sublayer
from transformer.model.attention import share_heads
from transformer.model.layers import Around
from transformer.model.module import Linear, widened
from transformer.model.norms import Norm
from transformer.model.taps import Recorder

Kind = Literal[
    "tokens", "positions", "types", "embedding_norm", "head", "attention", "attention_bias", "ffn", "ffn_bias", "norm",
    "changed", "final_norm", "output_bias", "bias", "logit",
]  # fmt: skip
"""What a part is. "norm", "embedding_norm" and "final_norm" stand for what a norm adds, its β; "attention" for all
heads together, where a change put something else in the place of what they write; "changed" for what a change put
into the stream; "bias" for all constants together; "logit" for what reads the last vector."""

CHANGED: Final = 1e-3  # further from the model's arithmetic than this share of the value, and it was changed
_NEAR_0: Final = 1e-6  # below it, the ratio of a neuron is taken further away
_STREAM = ("tokens", "positions", "types", "sum", "output", "heads", "activation", "output_norm", "residual", "norm")


@dataclass(frozen=True)
class LogitPart:
    """One part of a logit's sum."""

    kind: Kind  # what it is
    layer: int | None = None  # of which layer, from 0; None for what belongs to none
    sublayer: Sublayer | None = None  # of which sub-layer
    head: int | None = None  # which head, from 0
    stack: StackName | None = None  # of which stack; None for constants and the output

    @property
    def as_head(self) -> tuple[Attention, int, int] | None:
        """Attention, layer and head; None if it is not a head."""
        if self.kind != "head" or self.stack is None or self.layer is None or self.head is None:
            return None
        return "cross" if self.sublayer == "cross_attn" else self.stack, self.layer, self.head

    @property
    def place(self) -> str:
        """The start of the sites of its sub-layer."""
        return f"{self.stack}.{self.layer}.{self.sublayer}"

    @property
    def varies(self) -> bool:
        """Whether it depends on a token; if not, it is a constant."""
        return self.kind in ("tokens", "positions", "types", "head", "ffn")


def is_changed(value: Tensor, computed: Tensor) -> bool:
    """Whether a value differs from the model's own by more than rounding."""
    return float((value - computed).abs().max()) > CHANGED * (1e-6 + float(computed.abs().max()))


def double(values: Tensor) -> Tensor:
    """The same values in float64, on the CPU."""
    return widened(values).cpu().double()


@dataclass(frozen=True)
class HeldNorm:
    """A norm whose size is held."""

    norm: Norm  # itself
    size: Tensor  # [T, 1]

    def forward(self, rows: Tensor) -> Tensor:
        """What becomes of parts of its input [S, T, D], without β."""
        return double(self.norm.weight) * (rows - self.norm.centre(rows)) / self.size

    def back(self, slopes: Tensor) -> Tensor:
        """Slopes by its output -> by its input [T, D]."""
        scaled = double(self.norm.weight) * slopes / self.size
        return scaled - self.norm.centre(scaled)


def _back(norm: HeldNorm | None, slopes: Tensor) -> Tensor:
    return slopes if norm is None else norm.back(slopes)


@dataclass(frozen=True)
class Read:
    """What each part wrote, as something reads it; its input is their sum."""

    parts: tuple[LogitPart, ...]
    rows: Tensor  # [S, T, D]

    def plus(self, parts: Sequence[LogitPart], rows: Tensor) -> Read:
        """With more parts [S, T, D], or with one that adds the same to each token [D]."""
        more = rows.expand(1, *self.rows.shape[1:]) if rows.dim() == 1 else rows
        return Read((*self.parts, *parts), torch.cat((self.rows, more)))

    def through(self, norm: HeldNorm | None, part: LogitPart) -> Read:
        """What a norm makes of it, with its β as one more part."""
        if norm is None:
            return self
        read = Read(self.parts, norm.forward(self.rows))
        return read if norm.norm.bias is None else read.plus([part], double(norm.norm.bias))

    def became(self, value: Tensor, near: LogitPart) -> Read:
        """With one more part, if a change put something else in the place of the sum [T, D]."""
        total = self.rows.sum(dim=0)
        return self.plus([replace(near, kind="changed")], (value - total)[None]) if is_changed(value, total) else self

    @property
    def merged(self) -> Read:
        """All constants as the first part."""
        varies = torch.tensor([part.varies for part in self.parts])
        kept = tuple(part for part in self.parts if part.varies)
        return Read((LogitPart("bias"), *kept), torch.cat((self.rows[~varies].sum(dim=0)[None], self.rows[varies])))


class HeldMap:
    """What attention or a feed-forward network does to what it reads."""

    def __init__(self, held: HeldRun, near: LogitPart, module: Any) -> None:
        self.held, self.near, self.module = held, near, module
        name = "down_proj" if near.sublayer == "ffn" else "out_proj"
        self.out, self.out_bias = held.weight(getattr(module, name), near.place, name)
        written, bias = self._written(), torch.zeros(len(self.out)) if self.out_bias is None else self.out_bias
        output = held.value(f"{near.place}.output")
        self.changed = is_changed(output, written.sum(dim=0) + bias)
        heads = [None] if near.sublayer == "ffn" else [None] if self.changed else range(len(written))
        kind: Kind = "ffn" if near.sublayer == "ffn" else "attention" if self.changed else "head"
        self.writers = tuple(replace(near, kind=kind, head=head) for head in heads)
        self.written = output[None] if self.changed else written  # [H, T, D]

    def _written(self) -> Tensor:
        if self.near.sublayer == "ffn":
            return (self.held.value(f"{self.near.place}.activation") @ self.out.T)[None]
        heads = self.held.value(f"{self.near.place}.heads")
        return torch.einsum("hqd,mhd->hqm", heads, self.out.unflatten(1, (len(heads), -1)))

    @property
    def read(self) -> Read:
        """What it adds to the stream, its bias as a part of its own."""
        own = Read(self.writers, self.written)
        if self.out_bias is None or self.changed:
            return own
        kind: Kind = "ffn_bias" if self.near.sublayer == "ffn" else "attention_bias"
        return own.plus([replace(self.near, kind=kind)], self.out_bias)

    @cached_property
    def _into(self) -> tuple[Tensor, Tensor]:
        name = "up_proj" if self.near.sublayer == "ffn" else "v_proj"
        weight, bias = self.held.weight(getattr(self.module, name), self.near.place, name)
        return weight, weight.new_zeros(len(weight)) if bias is None else bias

    @cached_property
    def _live(self) -> Tensor:
        """0 for a head or a network whose result a change replaced, and which then depends on nothing; else 1 [H]."""
        value, place = self.held.value, self.near.place
        if self.near.sublayer == "ffn":
            linear = value(f"{place}.{'linear' if self.module.gated else 'pre_activation'}")
            pairs = [(value(f"{place}.activation"), self._ratio * linear)]
        else:
            values = share_heads(value(f"{place}.values")[None], len(self._alpha))[0]
            pairs = list(zip(value(f"{place}.heads"), self._alpha @ values, strict=True))
        return torch.tensor([not (self.changed or is_changed(*pair)) for pair in pairs], dtype=torch.float64)

    @cached_property
    def _ratio(self) -> Tensor:
        """What each neuron multiplies by [T, F]."""
        read = self.held.value(f"{self.near.place}.pre_activation")
        act = self.held.asked.tap.child(*self.near.place.split(".")).setting("function", self.module.activation)
        return torch.as_tensor(act(read)) if self.module.gated else ratio_of(act, read)

    @cached_property
    def _alpha(self) -> Tensor:
        return self.held.value(f"{self.near.place}.weights")  # [H, Q, K]

    def _inner(self, slopes: Tensor) -> Tensor:
        """Slopes by the output -> by what each head took [Q, H, d], or each neuron read [T, F]."""
        inner = slopes @ self.out
        if self.near.sublayer == "ffn":
            return inner * self._ratio * self._live
        return inner.unflatten(1, (len(self._alpha), -1)) * self._live[:, None]

    def back(self, slopes: Tensor) -> Tensor:
        """Slopes by its output [Q, D] -> by its input, of attention by what its values are made of [K, D]."""
        inner, (weight, _) = self._inner(slopes), self._into
        if self.near.sublayer != "ffn":
            values = torch.einsum("hqk,qhd->khd", self._alpha, inner)
            inner = values.unflatten(1, (len(weight) // values.size(-1), -1)).sum(dim=2).flatten(1)  # [K, G * d]
        return inner @ weight

    def edges(self, rows: Tensor, slopes: Tensor) -> Tensor:
        """What the logit owes to its reading of each part [S, K, D], the constants first -> [H, Q, S, K].

        A feed-forward network is one head with one key for each query, its own token. What a change replaced is a
        constant.
        """
        inner, (weight, bias) = self._inner(slopes), self._into
        if self.near.sublayer == "ffn":
            found = torch.einsum("std,td->ts", rows, inner @ weight)[None, :, :, None]
            found[0, :, 0, 0] += inner @ bias
        else:
            values = rows @ weight.T
            values[0] += bias
            values = values.unflatten(-1, (-1, inner.size(-1))).transpose(1, 2)  # [S, G, K, d]
            found = torch.einsum("shkd,qhd->hqsk", share_heads(values, len(self._alpha)), inner)
            found *= self._alpha[:, :, None]
        found[:, :, 0, 0] += (self.written * slopes).sum(dim=-1) * (1 - self._live)[:, None]
        return found


def ratio_of(act: Any, read: Tensor) -> Tensor:
    """f(z) / z; next to 0 what it is a little below, where ReLU is off."""
    apart = torch.where(read.abs() < _NEAR_0, -100 * _NEAR_0, read)
    return torch.as_tensor(act(apart) / apart)


@dataclass(frozen=True)
class HeldSublayer:
    """A sub-layer with what stands around it."""

    map: HeldMap
    around: Around
    before: HeldNorm | None
    own: HeldNorm | None  # of its output alone
    after: HeldNorm | None
    parallel: bool  # reads what its layer read


class HeldRun:
    """What a step computed, and the linear maps that it consists of with the rest held.

    With `last`, only the last token of the decoder, which is enough for what the output reads directly.
    """

    def __init__(self, asked: AttributionTarget, *, last: bool = False) -> None:
        self.asked, self.model, self._last = asked, asked.model, last
        self.stacks: list[StackName] = ["decoder"] if last else [one.name for one in self.model.anatomy.stacks]
        recorder = Recorder(["logits", *(f"decoder*.{name}" for name in _STREAM)] if last else ["*"])
        with torch.inference_mode():
            self.logits = asked.logits(tap=asked.tap.also(recorder))[0].cpu().double()
        self.seen = recorder.values
        self.sublayers = {stack: list(self._held(stack)) for stack in self.stacks}

    def value(self, site: str) -> Tensor:
        """What the run had at a site, in float64, without the axis of the batch."""
        found = self.seen[site].double()
        found = found if site.endswith("embedding.positions") else found[0]
        return found[..., -1:, :] if self._last else found

    def norm(self, norm: Any, site: str) -> HeldNorm | None:
        """A norm that read a site; None where there is none."""
        return HeldNorm(norm, norm.size(self.value(site))) if isinstance(norm, Norm) else None

    def weight(self, module: Linear, place: str, name: str) -> tuple[Tensor, Tensor | None]:
        """The matrix and the bias that a linear map went by."""
        tap = self.asked.tap.child(*place.split("."), name)
        bias = tap.setting("bias", module.bias)
        return double(tap.setting("weight", module.weight)), None if bias is None else double(bias)

    def final(self, stack: StackName) -> HeldNorm | None:
        """The norm after the last layer."""
        module = self.model.stack(stack)
        norm = self.asked.tap.child(stack).setting("final_norm", module.final_norm)
        return self.norm(norm, f"{stack}.{len(module.layers) - 1}.output")

    def _held(self, stack: StackName) -> Iterator[HeldSublayer]:
        stream, parallel = f"{stack}.embedding.output", self.model.config.parallel_residual
        for n, layer in enumerate(self.model.stack(stack).layers):
            start = stream
            for part in self.model.anatomy.stack(stack).sublayers:
                near, module = LogitPart("norm", n, part, stack=stack), getattr(layer, f"{part}_residual")
                how = self.asked.tap.child(*near.place.split(".")).setting("around", module.around)
                norms, post = how.norms and not how.skips, how.post
                yield HeldSublayer(
                    HeldMap(self, near, getattr(layer, part)),
                    how,
                    before=self.norm(module.norm, start if parallel else stream) if norms and not post else None,
                    own=self.norm(module.output_norm, f"{near.place}.output") if norms and not post else None,
                    after=self.norm(module.norm, f"{near.place}.residual") if norms and post else None,
                    parallel=parallel and part == "ffn",
                )
                stream = f"{near.place}.{'norm' if post else 'residual'}"
            stream = f"{stack}.{n}.output"

    def output(self, pieces: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The directions in which the pieces' logits read the last vector [C, D], and what they add to it [C]."""
        model, ids = self.model, list(pieces)
        rows = double(self.asked.tap.setting("output_weight", model.output_weight)[ids]) * model.config.output_scale
        bias = rows.new_zeros(len(ids)) if model.output_bias is None else double(model.output_bias[ids])
        if (head := model.mlm_head) is None:
            return rows, bias
        if (norm := self.norm(head.norm, "mlm_head.activation")) is not None:
            bias = bias if norm.norm.bias is None else bias + rows @ double(norm.norm.bias)
            rows = norm.back(rows)
        rows = rows * ratio_of(head.activation, self.value("mlm_head.pre_activation"))
        weight, constant = self.weight(head.proj, "mlm_head", "proj")
        return rows @ weight, bias if constant is None else bias + rows @ constant

    def slopes(self, row: Tensor) -> dict[str, Tensor]:
        """Of the logit, which reads the last vector by `row` [D], by what each sub-layer wrote, by its place [T, D]."""
        found: dict[str, Tensor] = {}
        tokens = {stack: self.value(f"{stack}.embedding.tokens") for stack in self.stacks}
        ends = {stack: torch.zeros_like(some) for stack, some in tokens.items()}
        ends[self.stacks[-1]][self.asked.row] = row
        for stack in reversed(self.stacks):
            stream = _back(self.final(stack), ends[stack])
            waiting = torch.zeros_like(stream)  # for the start of a layer whose sub-layers are parallel
            for one in reversed(self.sublayers[stack]):
                stream = _back(one.after, stream)
                found[one.map.near.place] = slopes = _back(one.own, stream) * (not one.around.skips)
                read = one.map.back(slopes)
                stream = stream * (one.around.adds or one.around.skips)
                if one.map.near.sublayer == "cross_attn":
                    ends["encoder"] += read
                elif one.parallel:
                    waiting = _back(one.before, read)
                else:
                    stream, waiting = stream + _back(one.before, read) + waiting, torch.zeros_like(stream)
        return found


def reads(held: HeldRun) -> Iterator[tuple[HeldMap | None, Read, Read]]:
    """What each sub-layer reads, by its queries and by its keys, in the order of the computation; last, the output."""
    memory: Read | None = None
    for stack in held.stacks:
        stream = start = _begin(held, stack)
        for one in held.sublayers[stack]:
            near = one.map.near
            start = stream if near.sublayer == "self_attn" else start
            own = (start if one.parallel else stream).through(one.before, near)
            yield one.map, own, memory if memory and near.sublayer == "cross_attn" else own
            stream = _past(held, one, stream)
            if near.sublayer == "ffn":
                site = f"{stack}.{near.layer}.output"
                stream = stream.became(held.value(site), LogitPart("changed", near.layer, stack=stack))
        last = LogitPart("final_norm", stack=stack)
        memory = stream.through(held.final(stack), last).became(held.value(f"{stack}.output"), last)
    assert memory is not None
    yield None, memory, memory


def _begin(held: HeldRun, stack: StackName) -> Read:
    """What a stack's stream begins with."""
    kinds: tuple[Kind, ...] = ("tokens", "positions", "types")
    sites = {kind: site for kind in kinds if (site := f"{stack}.embedding.{kind}") in held.seen}
    tokens = held.value(sites["tokens"])
    begun = Read(
        tuple(LogitPart(kind, stack=stack) for kind in sites),
        torch.stack([held.value(site).expand_as(tokens) for site in sites.values()]),
    )
    near, site = LogitPart("embedding_norm", stack=stack), f"{stack}.embedding.sum"
    if (norm := held.model.stack(stack).embedding.norm) is not None:
        begun = begun.became(held.value(site), near).through(held.norm(norm, site), near)
    return begun.became(held.value(f"{stack}.embedding.output"), near)


def _past(held: HeldRun, one: HeldSublayer, stream: Read) -> Read:
    """The stream after a sub-layer."""
    near, place, how = one.map.near, one.map.near.place, one.around
    if not how.skips:
        made = one.map.read.through(one.own, near)
        if f"{place}.output_norm" in held.seen:
            made = made.became(held.value(f"{place}.output_norm"), near)
        stream = stream.plus(made.parts, made.rows) if how.adds else made
    stream = stream.became(held.value(f"{place}.residual"), near)
    return stream.through(one.after, near).became(held.value(f"{place}.norm"), near) if how.post else stream
