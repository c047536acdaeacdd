"""The way back from a logit to the embedding: in which direction the stream is read, and what lies in it.

`transformer.analysis.attribution.logit` has the equation and the sources. Every place where something is added is
passed once, the last first; what was added there is multiplied by the direction at that place.

Shapes: C pieces whose logits are looked at, H heads, D d_model, d d_head.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from transformer.analysis.attribution.parts import Part
from transformer.model.anatomy import Sublayer
from transformer.model.attention import MultiHeadAttention
from transformer.model.linear import Linear, widened
from transformer.model.norms import Norm
from transformer.model.transformer import Transformer

CHANGED = 1e-3  # further from the model's arithmetic than this share of the value, and it was changed


@dataclass
class Reading:
    """The way back from the output to the embedding.

    Attributes:
        model: The model.
        seen: What the step's row was at every site that is needed, float64.
        direction: In which the stream is read where the way back has come to [C, D].
        found: The parts that were passed, the last first, with what they add [C].
    """

    model: Transformer
    seen: dict[str, Tensor]
    direction: Tensor
    found: list[tuple[Part, Tensor]] = field(default_factory=list)

    def add(self, part: Part, vector: Tensor) -> None:
        """A part that stands for one vector [D]."""
        self.found.append((part, self.direction @ vector))

    def through(self, norm: Norm, read: Tensor, wrote: Tensor, part: Part) -> None:
        """Go back through a norm that read one vector and wrote another."""
        gamma = widened(norm.weight).double()
        beta = torch.zeros_like(gamma) if norm.bias is None else widened(norm.bias).double()
        centre, size = norm.centre(read), norm.size(read)
        self.changed(part, wrote, gamma * (read - centre) / size + beta)
        if norm.bias is not None:
            self.add(part, beta)
        scaled = gamma * self.direction / size
        self.direction = scaled - norm.centre(scaled)

    def changed(self, near: Part, value: Tensor, computed: Tensor) -> None:
        """A part for what stands in the stream and was not computed by the model."""
        if is_changed(value, computed):
            self.add(Part("changed", near.layer, near.sublayer), value - computed)


def is_changed(value: Tensor, computed: Tensor) -> bool:
    """Whether a value is further from what the model computes than rounding is."""
    return float((value - computed).abs().max()) > CHANGED * (1e-6 + float(computed.abs().max()))


def walk_back(reading: Reading) -> None:
    """Go back from the decoder's last vector to its embedding, and note every part that is passed."""
    decoder, seen = reading.model.decoder, reading.seen
    n_layers, final = len(decoder.layers), Part("final_norm")
    whole, wrote = seen[f"decoder.{n_layers - 1}.output"], seen["decoder.output"]
    if reading.model.config.final_norm:
        reading.through(_norm(decoder.final_norm), whole, wrote, final)
    else:
        reading.changed(final, wrote, whole)
    for layer in reversed(range(n_layers)):
        if not _layer(reading, layer):
            return  # nothing is carried past it: all else goes through what it computes
    _embedding(reading)


def _norm(module: object) -> Norm:
    """A final norm that is one."""
    assert isinstance(module, Norm)
    return module


def _layer(reading: Reading, layer: int) -> bool:
    """Go back through a layer; returns whether the stream goes on before it."""
    seen, parts = reading.seen, reading.model.anatomy.stack("decoder").sublayers
    after = "norm" if reading.model.config.norm == "post" else "residual"
    start = f"decoder.{layer - 1}.output" if layer else "decoder.embedding.output"
    before = [start, *(f"decoder.{layer}.{part}.{after}" for part in parts)]
    reading.changed(Part("changed", layer), seen[f"decoder.{layer}.output"], seen[before.pop()])
    return all(
        _sublayer(reading, layer, part, seen[site])
        for part, site in zip(reversed(parts), reversed(before), strict=True)
    )


def _sublayer(reading: Reading, layer: int, part: Sublayer, before: Tensor) -> bool:
    """Go back through a sub-layer and what stands around it; returns whether the stream goes on before it."""
    layers: Any = reading.model.decoder.layers
    around, module = getattr(layers[layer], f"{part}_residual"), getattr(layers[layer], part)
    seen, place, here = reading.seen, f"decoder.{layer}.{part}", Part("norm", layer, part)
    whole = seen[f"{place}.residual"]
    if around.post:
        reading.through(around.norm, whole, seen[f"{place}.norm"], here)
    output = seen[f"{place}.output"]
    made = output if around.output_norm is None else seen[f"{place}.output_norm"]
    reading.changed(here, whole, before + made if around.adds else made)
    stream = reading.direction
    if around.output_norm is not None:
        reading.through(around.output_norm, output, made, here)
    if part == "ffn":
        _feed_forward(reading, module.down_proj, layer)
    else:
        _attention(reading, module, layer, part)
    reading.direction = stream  # a norm of the output alone does not stand before what it is added to
    return bool(around.adds)


def _attention(reading: Reading, module: MultiHeadAttention, layer: int, part: Sublayer) -> None:
    """What each head adds, and the bias of W_O."""
    place = f"decoder.{layer}.{part}"
    heads, output = reading.seen[f"{place}.heads"], reading.seen[f"{place}.output"]  # [H, d], [D]
    if is_changed(output, _applied(module.out_proj, heads.flatten())):
        reading.add(Part("attention", layer, part), output)
        return
    if module.out_proj.bias is not None:
        reading.add(Part("attention_bias", layer, part), widened(module.out_proj.bias).double())
    columns = (reading.direction @ widened(module.out_proj.weight).double()).unflatten(1, heads.shape)  # [C, H, d]
    for head in reversed(range(module.n_heads)):
        reading.found.append((Part("head", layer, part, head), columns[:, head] @ heads[head]))


def _feed_forward(reading: Reading, down: Linear, layer: int) -> None:
    """What the feed-forward sub-layer adds, and its last bias by itself."""
    output = reading.seen[f"decoder.{layer}.ffn.output"]
    here = Part("ffn", layer, "ffn")
    bias = None if down.bias is None else widened(down.bias).double()
    if bias is None or is_changed(output, _applied(down, reading.seen[f"decoder.{layer}.ffn.activation"])):
        reading.add(here, output)
        return
    reading.add(Part("ffn_bias", layer, "ffn"), bias)
    reading.add(here, output - bias)


def _applied(module: Linear, x: Tensor) -> Tensor:
    """A linear map as the model applies it [I] -> [O]; rounded as it is there."""
    dtype = torch.float64 if module.weight.dtype == torch.float64 else torch.float32
    found: Tensor = module(x.to(dtype)[None])[0].double()
    return found


def _embedding(reading: Reading) -> None:
    """What the stream begins with."""
    seen, norm, here = reading.seen, reading.model.decoder.embedding.norm, Part("embedding_norm")
    tokens, positions = seen["decoder.embedding.tokens"], seen.get("decoder.embedding.positions")
    total, output = tokens if positions is None else tokens + positions, seen["decoder.embedding.output"]
    if norm is None:
        reading.changed(Part("changed"), output, total)
    else:
        reading.through(norm, seen["decoder.embedding.sum"], output, here)
        reading.changed(Part("changed"), seen["decoder.embedding.sum"], total)
    if positions is not None:
        reading.add(Part("positions"), positions)
    reading.add(Part("tokens"), tokens)
