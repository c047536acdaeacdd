"""Faults, each a small change of a healthy checkpoint, as programs that are written by hand come to have them.

A fault is planted into a copy. What a program would compute wrongly is changed where it is computed, in a class that
takes the place of the model's own; what a file would hold wrongly is changed in the parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import torch
from torch import Tensor

from tests.extensions.doctor.library.changed import changed
from tests.healthy import healthy
from transformer.analysis.losses import Variants
from transformer.checkpoint.load import Checkpoint
from transformer.model.attention import MultiHeadAttention
from transformer.model.module import Linear
from transformer.model.positions import FixedPositions
from transformer.model.taps import NO_TAP, Tap
from transformer.model.transformer import Embedding, Transformer

Plant = Callable[[Checkpoint], Checkpoint]
ALL = slice(None)


@dataclass(frozen=True)
class Fault:
    """A fault, and the tests of the doctor that find it."""

    name: str  # what is wrong
    plant: Plant  # puts it into a checkpoint
    bases: tuple[str, ...]  # the healthy ones that it is planted into: tests take the first two, a benchmark all
    finds: tuple[str, ...]  # the tests of the doctor that must find it
    sees: tuple[str, ...] = ()  # others that may, as they see what it does elsewhere
    wrecks: bool = True  # whether the model may write badly with it

    def planted(self, base: str) -> Checkpoint:
        """One of the healthy checkpoints with the fault."""
        made = self.plant(healthy(base))
        name = f"{base}: {self.name}"
        return replace(made, name=name, content_hash=sha256(name.encode()).hexdigest())


def of_class(kind: type[Transformer]) -> Plant:
    """The model computes as another class does."""
    return lambda checkpoint: changed(checkpoint, lambda model: setattr(model, "__class__", kind))


def told(**changes: object) -> Plant:
    """The same weights with another config."""

    def plant(checkpoint: Checkpoint) -> Checkpoint:
        variant = Variants(checkpoint).get(changes)
        assert variant is not None
        return replace(checkpoint, model=variant.model, config=variant.model.config)

    return plant


# What the model reads.


class BlindToSource(Transformer):
    """What the encoder made is lost on its way."""

    def encode(self, src_ids: Tensor, types: Tensor | None = None, *, tap: Tap = NO_TAP) -> Tensor:
        """Zeros."""
        return torch.zeros_like(super().encode(src_ids, types, tap=tap))


def _fill(linear: Linear, rows: slice, value: Linear | float, source: slice = ALL) -> None:
    """Put a number, or rows of a linear map, into rows of another one, and into its bias if it has one."""
    for name in ("weight", "bias"):
        if (own := getattr(linear, name)) is not None:
            own[rows] = getattr(value, name)[source] if isinstance(value, Linear) else value


def no_cross(model: Transformer) -> None:
    """Cross-attention adds nothing, in any layer."""
    for attention in model.attentions("cross"):
        _fill(attention.out_proj, ALL, 0.0)


def swapped_tokenizers(checkpoint: Checkpoint) -> Checkpoint:
    """Each side is split by the tokenizer of the other."""
    return replace(checkpoint, src_tokenizer=checkpoint.tgt_tokenizer, tgt_tokenizer=checkpoint.src_tokenizer)


# Parameters.


def _layer(model: Transformer, n: int) -> Any:
    """A layer of what writes, or else of what reads."""
    return (model.decoder if model.anatomy.writes else model.encoder).layers[n]


def not_a_number(model: Transformer) -> None:
    """One value of one matrix."""
    _layer(model, -1).ffn.up_proj.weight[3, 5] = torch.nan


def infinite(model: Transformer) -> None:
    """One value of one norm."""
    _layer(model, 0).ffn_residual.norm.weight[2] = torch.inf


def _first(model: Transformer) -> MultiHeadAttention:
    """The self-attention of the last layer of what writes, or else of what reads."""
    return model.attentions("decoder" if model.anatomy.writes else "encoder")[-1]


def values_dead(model: Transformer) -> None:
    """A head whose values are 0."""
    attention = _first(model)
    _fill(attention.v_proj, slice(attention.d_head, 2 * attention.d_head), 0.0)


def output_dead(model: Transformer) -> None:
    """A head that W_O does not read."""
    attention = _first(model)
    attention.out_proj.weight[:, : attention.d_head] = 0


def heads_equal(model: Transformer) -> None:
    """The second head is a copy of the first."""
    attention, d = _first(model), _first(model).d_head
    for projection in (attention.q_proj, attention.k_proj, attention.v_proj):
        _fill(projection, slice(d, 2 * d), projection, slice(d))


def untied(name: str, **told: Any) -> Plant:
    """The output or the target has a copy of the embeddings, which went on learning: it has drifted by a twentieth."""

    def plant(checkpoint: Checkpoint) -> Checkpoint:
        config, table = replace(checkpoint.config, **told), checkpoint.model.src_table
        noise = torch.randn(table.shape, generator=torch.Generator().manual_seed(0))
        model = Transformer(config)
        model.load_state_dict({**checkpoint.model.state_dict(), name: table + 0.05 * table.std() * noise})
        return replace(checkpoint, model=model.requires_grad_(False).eval(), config=config)

    return plant


def collapsed_table(model: Transformer) -> None:
    """All rows are nearly one."""
    mean = model.src_table.mean(dim=0)
    model.src_table.copy_(mean / mean.norm() * model.src_table.norm(dim=1).mean() + 0.02 * model.src_table)


def dead_neurons(model: Transformer) -> None:
    """Three of four neurons of a layer never fire."""
    up = _layer(model, 0).ffn.up_proj
    up.bias[: 3 * up.bias.numel() // 4] = -1000.0


def noisy_keys(model: Transformer) -> None:
    """Every matrix of keys has noise of twice its deviation."""
    draw = torch.Generator().manual_seed(0)
    for kind in model.anatomy.kinds:
        for attention in model.attentions(kind):
            weight = attention.k_proj.weight
            weight.add_(2 * weight.std() * torch.randn(weight.shape, generator=draw))


def drawn_layer(model: Transformer) -> None:
    """The matrices of one encoder layer are as some programs draw them before a training."""
    draw = torch.Generator().manual_seed(0)
    for parameter in model.encoder.layers[0].parameters():
        if parameter.dim() == 2:
            parameter.copy_(0.02 * torch.randn(parameter.shape, generator=draw))


# Positions.


def _embeddings(model: Transformer) -> list[Embedding]:
    """Those of the stacks that the model has."""
    return [module for module in model.modules() if isinstance(module, Embedding)]


def shifted(model: Transformer) -> None:
    """The positions of the last stack begin with the second one."""
    positions = _embeddings(model)[-1].positions
    assert positions is not None
    table = positions.table
    moved = torch.roll(table, -1, dims=0)
    if isinstance(positions, FixedPositions):
        positions.table = moved
    else:
        table.copy_(moved)


def no_positions(model: Transformer) -> None:
    """Nothing is added to the embeddings."""
    for embedding in _embeddings(model):
        embedding.positions = None


def other_norm(checkpoint: Checkpoint) -> Checkpoint:
    """Norms behind instead of in front, or in front instead of behind."""
    return told(norm="post" if checkpoint.config.norm == "pre" else "pre")(checkpoint)


def parameters(change: Callable[[Transformer], object]) -> Plant:
    """A change of the model's values."""
    return lambda checkpoint: changed(checkpoint, change)


def as_it_is(checkpoint: Checkpoint) -> Checkpoint:
    """The fault is in how it was trained."""
    return checkpoint


FAULTS = (
    Fault("NaN in one tensor", parameters(not_a_number), ("gpt2", "bert", "reverse"), ("finite",), wrecks=False),
    Fault("infinite norm", parameters(infinite), ("s4", "llama"), ("finite",), wrecks=False),
    Fault("too few heads", told(n_heads=2), ("s4", "gpt2"), ("wiring",)),
    Fault("too many heads", told(n_heads=8), ("reverse", "marian"), ("wiring",)),
    Fault("head without values", parameters(values_dead), ("gpt2", "reverse"), ("dead_heads",), wrecks=False),
    Fault("head that is not read", parameters(output_dead), ("s4", "bert"), ("dead_heads",), wrecks=False),
    Fault("two equal heads", parameters(heads_equal), ("gpt2", "bert", "reverse"), ("equal_heads",), wrecks=False),
    Fault(
        "source is lost", of_class(BlindToSource), ("marian", "reverse"), ("source", "variety"),
        ("dead_heads", "uniform_heads"),
    ),
    Fault(
        "no cross-attention", parameters(no_cross), ("s4", "torch"), ("source", "constant"),
        ("dead_heads", "uniform_heads"),
    ),
    Fault(
        "swapped tokenizers", swapped_tokenizers, ("marian", "zh-en"), ("wiring",),
        ("vocabulary_sizes", "unknown_pieces"),
    ),
    Fault("untied output", untied("output_table", tie_output=False), ("gpt2", "reverse"), ("copies",), wrecks=False),
    Fault("untied sides", untied("tgt_table", shared_vocab=False), ("reverse",), ("copies",), wrecks=False),
    Fault("positions shifted", parameters(shifted), ("s4", "reverse"), ("wiring",)),
    Fault("positions missing", parameters(no_positions), ("gpt2", "bert", "reverse", "s4"), ("positions",)),
    Fault(
        "collapsed embeddings", parameters(collapsed_table), ("s4", "gpt2", "reverse"), ("collapsed_embeddings",),
        ("source", "dead_neurons"),
    ),
    Fault("dead neurons", parameters(dead_neurons), ("reverse", "bert", "gpt2"), ("dead_neurons",)),
    Fault("norms swapped", other_norm, ("s4", "gpt2", "reverse"), ("wiring",)),
    Fault("one head", told(n_heads=1), ("reverse", "s4", "zh-en"), ("wiring",)),
    Fault("scores not scaled", told(score_scale=1.0), ("s4", "reverse", "gpt2"), ("wiring",)),
    Fault("scores scaled by width", told(score_scale=32**-0.5), ("s4",), ("wiring",), wrecks=False),
    Fault("keys drowned in noise", parameters(noisy_keys), ("s4", "reverse", "zh-en"), ("balance",)),
    Fault("layer as it was drawn", parameters(drawn_layer), ("reverse", "s4", "zh-en"), (), ("drawn_layers",)),
    Fault("trained on a leak", as_it_is, ("leak",), ("wiring",)),
)  # fmt: skip
