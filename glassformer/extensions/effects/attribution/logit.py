"""Direct contributions to a logit: what each head, feed-forward layer, bias and embedding adds to it directly.

The stream at a token is a sum, and a logit is its product with the piece's row of the output table. So each part of the
sum has a share of the logit. Between the two are norms. A norm divides by a size that depends on the whole sum; with
that size held at its value in this run, a norm is linear, too:

    y = γ (x - centre(x)) / size + β,    u . y = (J u) . x + u . β    with J u = w - centre(w), w = γ u / size

The direction u in which the stream is read is carried backwards, from the output to the embedding, past every place of
addition once. A part's contribution is its product with the direction at its place. In a pre-norm model there is only
the final norm. In a post-norm model each norm rescales everything that was added before it. In a model without
residuals only the last sub-layer adds anything; everything else goes through it.

All contributions add up to the logit. The remainder is rounding, and the effect of a cap of the logits, if any, which
is not linear. A value that a change replaced is a separate part.

Indirect paths are not shown. Later layers also read a part's output, so a part with a contribution of 0 may still
decide the output, and the encoder acts only through cross-attention.

Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021), section "Transformer Overview" for
the stream as a sum, and "Handling Layer Normalization"; nostalgebraist (2020) for reading a stream by the output table.

Shapes: C pieces whose logits are explained, P parts, H heads, D d_model, d d_head, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from glassformer.extensions.effects.attribution.target import AttributionTarget
from transformer.model.anatomy import Kind as Attention
from transformer.model.anatomy import Sublayer
from transformer.model.layers import Around, Residual
from transformer.model.module import Linear, linear, widened
from transformer.model.norms import Norm
from transformer.model.taps import Observer, Tap
from transformer.model.transformer import Transformer
from transformer.runs.array_records import ArrayRecord

Kind = Literal[
    "tokens", "positions", "embedding_norm", "head", "attention", "attention_bias", "ffn", "ffn_bias", "norm",
    "changed", "final_norm", "output_bias", "types", "bias", "logit",
]  # fmt: skip
"""What a part is; the last three are only in `held_run`. "norm", "embedding_norm" and "final_norm" stand for what a
norm adds, its β; "attention" for all heads together, where a change put something else in the place of what they write;
"changed" for what a change put into the stream."""


@dataclass(frozen=True)
class LogitPart:
    """One part of a logit's sum."""

    kind: Kind  # what it is
    layer: int | None = None  # of which decoder layer, from 0; None for what belongs to none
    sublayer: Sublayer | None = None  # of which sub-layer
    head: int | None = None  # which head, from 0

    @property
    def stack_attention(self) -> Attention | None:
        """The attention of a head; None if it is not a head."""
        if self.kind != "head":
            return None
        return "cross" if self.sublayer == "cross_attn" else "decoder"


@dataclass(frozen=True, eq=False)
class Contributions(ArrayRecord):
    """The parts of one step's logits."""

    pieces: tuple[int, ...]  # whose logits, ids [C]
    parts: tuple[LogitPart, ...]  # in the order of the computation [P]
    values: np.ndarray  # what each part adds [C, P]
    logits: np.ndarray  # as the model computed them [C]
    # The exact sum of the parts, from the model's own last vector [C]; the logits themselves without a cap.
    before_cap: np.ndarray

    @property
    def remainder(self) -> np.ndarray:
        """The logits minus the sums of their parts [C]."""
        return np.asarray(self.logits - self.values.sum(axis=1))

    @property
    def capped(self) -> np.ndarray:
        """The part of the remainder that the cap took off the logits [C]; 0 without a cap."""
        return np.asarray(self.logits - self.before_cap)


CHANGED = 1e-3  # further from the model's arithmetic than this share of the value, and it was changed


@dataclass
class LogitReading:
    """The way back from the output to the embedding."""

    model: Transformer  # the model
    tap: Tap  # what the run was made with: it says by which settings the model went
    seen: dict[str, Tensor]  # what the step's row was at every site that is needed, float64
    direction: Tensor  # in which the stream is read where the way back has come to [C, D]
    # The parts passed, the last first, with their contributions [C].
    found: list[tuple[LogitPart, Tensor]] = field(default_factory=list)

    def add(self, part: LogitPart, vector: Tensor) -> None:
        """A part for one vector [D]."""
        self.found.append((part, self.direction @ vector))

    def through(self, norm: Norm, read: Tensor, wrote: Tensor, part: LogitPart) -> None:
        """Go back through a norm that read one vector and wrote another."""
        gamma = widened(norm.weight).cpu().double()
        beta = torch.zeros_like(gamma) if norm.bias is None else widened(norm.bias).cpu().double()
        centre, size = norm.centre(read), norm.size(read)
        self.changed(part, wrote, gamma * (read - centre) / size + beta)
        if norm.bias is not None:
            self.add(part, beta)
        scaled = gamma * self.direction / size
        self.direction = scaled - norm.centre(scaled)

    def changed(self, near: LogitPart, value: Tensor, computed: Tensor) -> None:
        """A part for what is in the stream but was not computed by the model."""
        if is_changed(value, computed):
            self.add(LogitPart("changed", near.layer, near.sublayer), value - computed)


def is_changed(value: Tensor, computed: Tensor) -> bool:
    """Whether a value differs from the model's own by more than rounding."""
    return float((value - computed).abs().max()) > CHANGED * (1e-6 + float(computed.abs().max()))


def walk_back(reading: LogitReading) -> None:
    """Go back from the decoder's last vector to its embedding, and record every part on the way."""
    decoder, seen = reading.model.decoder, reading.seen
    n_layers, final = len(decoder.layers), LogitPart("final_norm")
    whole, wrote = seen[f"decoder.{n_layers - 1}.output"], seen["decoder.output"]
    norm = reading.tap.child("decoder").setting("final_norm", decoder.final_norm)
    if isinstance(norm, Norm):
        reading.through(norm, whole, wrote, final)
    else:
        reading.changed(final, wrote, whole)
    for layer in reversed(range(n_layers)):
        if not _layer(reading, layer):
            return  # nothing is carried past it: all else goes through what it computes
    _embedding(reading)


def _layer(reading: LogitReading, layer: int) -> bool:
    """Go back through a layer; returns whether the stream goes on before it."""
    seen, parts = reading.seen, reading.model.anatomy.stack("decoder").sublayers
    start = f"decoder.{layer - 1}.output" if layer else "decoder.embedding.output"
    before = [start, *(f"decoder.{layer}.{part}.{_after(reading, layer, part)}" for part in parts)]
    reading.changed(LogitPart("changed", layer), seen[f"decoder.{layer}.output"], seen[before.pop()])
    return all(
        _sublayer(reading, layer, part, seen[site])
        for part, site in zip(reversed(parts), reversed(before), strict=True)
    )


def _layers(reading: LogitReading) -> Any:
    """The decoder's layers, whose parts are found by name."""
    return reading.model.decoder.layers


def _around(reading: LogitReading, layer: int, part: Sublayer) -> Around:
    """What stands around a sub-layer in this run."""
    module: Residual = getattr(_layers(reading)[layer], f"{part}_residual")
    return reading.tap.child("decoder", layer, part).setting("around", module.around)


def _after(reading: LogitReading, layer: int, part: Sublayer) -> str:
    """The site of the stream after a sub-layer."""
    return "norm" if _around(reading, layer, part).post else "residual"


def _sublayer(reading: LogitReading, layer: int, part: Sublayer, before: Tensor) -> bool:
    """Go back through a sub-layer and what stands around it; returns whether the stream goes on before it."""
    module: Residual = getattr(_layers(reading)[layer], f"{part}_residual")
    how, seen, place = _around(reading, layer, part), reading.seen, f"decoder.{layer}.{part}"
    here, whole = LogitPart("norm", layer, part), seen[f"{place}.residual"]
    if how.post and how.norms and not how.skips:
        reading.through(module.norm, whole, seen[f"{place}.norm"], here)
    elif how.post:
        reading.changed(here, seen[f"{place}.norm"], whole)
    if how.skips:
        reading.changed(here, whole, before)
        return True
    output, own = seen[f"{place}.output"], None if how.post else module.output_norm
    made = output if own is None else seen[f"{place}.output_norm"]
    reading.changed(here, whole, before + made if how.adds else made)
    stream = reading.direction
    if own is not None and how.norms:
        reading.through(own, output, made, here)
    elif own is not None:
        reading.changed(here, made, output)
    (_feed_forward if part == "ffn" else _attention)(reading, layer, part)
    reading.direction = stream  # a norm of the output alone does not affect what it is added to
    return how.adds


def _weight(reading: LogitReading, module: Linear, place: str, name: str) -> Tensor:
    """The matrix that a linear map went by in this run."""
    return reading.tap.child(*place.split("."), name).setting("weight", module.weight)


def _attention(reading: LogitReading, layer: int, part: Sublayer) -> None:
    """What each head adds, and the bias of W_O."""
    place, layers = f"decoder.{layer}.{part}", _layers(reading)
    out: Linear = getattr(layers[layer], part).out_proj
    weight = _weight(reading, out, place, "out_proj")  # [D, H * d]
    heads, output = reading.seen[f"{place}.heads"], reading.seen[f"{place}.output"]  # [H, d], [D]
    if is_changed(output, _applied(weight, out.bias, heads.flatten())):
        reading.add(LogitPart("attention", layer, part), output)
        return
    if out.bias is not None:
        reading.add(LogitPart("attention_bias", layer, part), widened(out.bias).cpu().double())
    columns = (reading.direction @ widened(weight).cpu().double()).unflatten(1, heads.shape)  # [C, H, d]
    for head in reversed(range(len(heads))):
        reading.found.append((LogitPart("head", layer, part, head), columns[:, head] @ heads[head]))


def _feed_forward(reading: LogitReading, layer: int, part: Sublayer) -> None:
    """What the feed-forward sub-layer adds, and its last bias by itself."""
    place, here = f"decoder.{layer}.{part}", LogitPart("ffn", layer, part)
    down: Linear = _layers(reading)[layer].ffn.down_proj
    output, weight = reading.seen[f"{place}.output"], _weight(reading, down, place, "down_proj")
    bias = None if down.bias is None else widened(down.bias).cpu().double()
    if bias is None or is_changed(output, _applied(weight, down.bias, reading.seen[f"{place}.activation"])):
        reading.add(here, output)
        return
    reading.add(LogitPart("ffn_bias", layer, part), bias)
    reading.add(here, output - bias)


def _applied(weight: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
    """A linear map as the model applies it [I] -> [O]; rounded as it is there."""
    dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
    return linear(x.to(weight.device, dtype)[None], weight, bias)[0].cpu().double()


def _embedding(reading: LogitReading) -> None:
    """What the stream begins with."""
    seen, norm, here = reading.seen, reading.model.decoder.embedding.norm, LogitPart("embedding_norm")
    tokens, positions = seen["decoder.embedding.tokens"], seen.get("decoder.embedding.positions")
    total, output = tokens if positions is None else tokens + positions, seen["decoder.embedding.output"]
    if norm is None:
        reading.changed(LogitPart("changed"), output, total)
    else:
        reading.through(norm, seen["decoder.embedding.sum"], output, here)
        reading.changed(LogitPart("changed"), seen["decoder.embedding.sum"], total)
    if positions is not None:
        reading.add(LogitPart("positions"), positions)
    reading.add(LogitPart("tokens"), tokens)


_NAMES = ("tokens", "positions", "sum", "output", "heads", "activation", "output_norm", "residual", "norm")
_NEEDED = ("logits", *(f"decoder*.{name}" for name in _NAMES))


@torch.inference_mode()
def contributions(asked: AttributionTarget, pieces: Sequence[int] = ()) -> Contributions:
    """The parts of a step's logits, for its own piece and others; a difference has the differences of parts."""
    model, ids = asked.model, (asked.piece, *pieces)
    seen: dict[str, Tensor] = {}  # the last token's row of each site, in float64

    def keep(site: str, value: Tensor) -> None:
        rows = value if site.endswith("embedding.positions") else value[0]
        seen[site] = rows[..., -1, :].cpu().double()

    asked.logits(tap=asked.tap.also(Observer(_NEEDED, keep)))
    table = widened(asked.tap.setting("output_weight", model.output_weight)[list(ids)]).cpu().double()  # [C, D]
    reading = LogitReading(model, asked.tap, seen, table * model.config.output_scale)
    before_cap = reading.direction @ seen["decoder.output"]
    if model.output_bias is not None:
        bias = widened(model.output_bias)[list(ids)].cpu().double()
        reading.found.append((LogitPart("output_bias"), bias))
        before_cap = before_cap + bias
    walk_back(reading)
    parts, values = zip(*reversed(reading.found), strict=True)
    logits = seen["logits"][list(ids)]
    before_cap = logits if model.config.logit_cap is None else before_cap
    return Contributions(ids, parts, torch.stack(values, dim=1).numpy(), logits.numpy(), before_cap.numpy())
