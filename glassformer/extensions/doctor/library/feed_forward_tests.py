"""Neurons that never fire, and embeddings that say nothing.

A neuron is dead if it stays silent in every text, random ones included, and if what it reads is so far below the
point where it fires that no text will do: `FAR` of its own standard deviations. Rare neurons are not dead: in a
trained model most are silent at most tokens.

Source: Voita et al. (2023), "Neurons in Large Language Models: Dead, N-gram, Positional", section 3. Embeddings stand
in `extensions.doctor.library.embeddings`.

Shapes: B texts, T tokens, D d_model, F d_ff.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from glassformer.extensions.doctor.library.calibrated import at_most
from glassformer.extensions.doctor.library.findings import Measured, NotTested, Shown
from glassformer.extensions.doctor.library.patient import Patient, Test
from glassformer.extensions.doctor.library.rereading import own_texts, random_texts, read_again
from transformer.analysis.neurons import NEAR_ZERO, site
from transformer.i18n import Sentence, say, say_n
from transformer.model.anatomy import StackName
from transformer.model.linear import widened

FAR = 8.0
MANY_DEAD = 0.02
"""Share of a layer's neurons; single ones die in many trainings, and nobody notices."""
FEW_DEAD = 3
"""Fewer are single ones in a narrow layer, too."""
STILL = 1e-6
"""Share of the largest value of its layer below which a number does not move."""


@dataclass(eq=False)
class Spread:
    """How one value of every neuron of a layer is spread over tokens, each array [F] in float64."""

    n: int  # tokens
    total: Tensor  # sums over them
    squares: Tensor
    least: Tensor  # the extremes
    most: Tensor

    @staticmethod
    def of(width: int) -> Spread:
        """Of no token yet."""
        zero = torch.zeros(width, dtype=torch.float64)
        return Spread(0, zero.clone(), zero.clone(), zero + torch.inf, zero - torch.inf)

    def add(self, values: Tensor) -> None:
        """More tokens, [B, T, F]."""
        rows = values.flatten(0, 1).cpu().double()
        self.n += len(rows)
        self.total += rows.sum(dim=0)
        self.squares += rows.square().sum(dim=0)
        self.least = torch.minimum(self.least, rows.amin(dim=0))
        self.most = torch.maximum(self.most, rows.amax(dim=0))

    @property
    def mean(self) -> Tensor:
        """Of each neuron."""
        return self.total / self.n

    @property
    def deviation(self) -> Tensor:
        """Of each neuron."""
        return (self.squares / self.n - self.mean.square()).clamp_min(0).sqrt()

    @property
    def largest(self) -> float:
        """The value farthest from 0."""
        return float(torch.maximum(self.most, -self.least).max())

    @property
    def finite(self) -> bool:
        """Whether all values were."""
        return bool(self.squares.isfinite().all())


class _Visitor:
    """Sees what every neuron reads and what becomes of it."""

    causal = True

    def __init__(self, patient: Patient) -> None:
        self.seen = {
            site(stack.name, layer, name): Spread.of(patient.config.of(stack.name).d_ff)
            for stack in patient.anatomy.stacks
            for layer in range(stack.n_layers)
            for name in ("pre_activation", "activation")
        }

    def wants(self, site: str) -> bool:
        return site in self.seen

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        self.seen[site].add(value)
        return value


@Test(
    "feed_forward",
    say("Neurons fire"),
    threshold=MANY_DEAD,
    causes=say(
        "The learning rate was so high that biases were pushed far below 0 (with ReLU, such neurons no longer get "
        "a gradient), an import filled a bias or a row of W_up with wrong values, or the activation function "
        "differs from training. Look at the layer's pre-activations. If you train again, use a lower learning rate "
        "or a longer warm-up."
    ),
    finds=("dead-neurons",),
    sees=("collapsed-embeddings",),
)
def dead_neurons(patient: Patient) -> Measured:
    """Neurons that say nothing, whatever is read."""
    visitor = _Visitor(patient)
    read_again(patient, [*own_texts(patient), *random_texts(patient)], visitor)
    if not all(one.finite for one in visitor.seen.values()):
        raise NotTested("This model computes NaN or infinite values, so nothing is known about its neurons.")
    found = {
        (stack.name, layer): _dead(patient, stack.name, layer, visitor.seen)
        for stack in patient.anatomy.stacks
        for layer in range(stack.n_layers)
    }
    (stack, layer), neurons = max(found.items(), key=lambda item: int(item[1].sum()))
    n_dead, share = int(sum(one.sum() for one in found.values())), float(neurons.double().mean())
    why = say(
        "A neuron counts as dead if it does not fire at any of {n:,} tokens, most of them random, and its mean "
        "input is at least {far:g} standard deviations below the point where it would fire. In the shipped "
        "checkpoints, no neuron is more than {most:g} standard deviations below that point. A few neurons die in "
        "many training runs, so the threshold is {share:.0%} of a layer.",
        n=next(iter(visitor.seen.values())).n, far=FAR, share=MANY_DEAD, most=at_most("dead_neurons.beside"),
    )  # fmt: skip
    if share <= MANY_DEAD or int(neurons.sum()) < FEW_DEAD:
        said = say_n("{n:,} neuron is dead.", "{n:,} neurons are dead.", n_dead)
        return Measured(verdict="well", number=share, beside=_farthest(visitor.seen), said=said, why=why)
    whole = bool(neurons.all())
    return Measured(
        verdict="broken" if whole else "look",
        number=share,
        said=_where(stack, layer, n_dead, share),
        why=why,
        meaning=_WHOLE if whole else _SOME,
        places=tuple(f"{stack}.{layer + 1}.{int(i) + 1}" for i in neurons.nonzero()[:, 0]),
        shown=Shown(page="inside", panel="ffn", kind=stack, layer=layer, source=patient.first_source),
    )


def _dead(patient: Patient, stack: StackName, layer: int, seen: dict[str, Spread]) -> Tensor:
    """Which neurons of a layer are dead, bool [F]."""
    read, made = (seen[site(stack, layer, name)] for name in ("pre_activation", "activation"))
    fixed = read.most - read.least <= STILL * read.largest
    far = read.mean + FAR * read.deviation < 0
    moved = made.most - made.least
    smooth = patient.config.activation != "relu"
    silent = (moved <= STILL * made.largest) | ((moved < NEAR_ZERO) & smooth)
    blind = silent & (fixed | (far if patient.config.activation != "none" else torch.zeros_like(far)))
    cut = moved <= STILL * made.largest if patient.config.gated else torch.zeros_like(blind)
    layers: Any = patient.model.stack(stack).layers
    written = widened(layers[layer].ffn.down_proj.weight.detach()).norm(dim=0).cpu().double()  # [F]
    return blind | cut & ~far | (written <= STILL * written.median())


def _farthest(seen: dict[str, Spread]) -> float:
    """How many of its standard deviations a neuron's mean input is below 0, that of the farthest neuron."""
    read = (one for name, one in seen.items() if name.endswith("pre_activation"))
    return max(float((-one.mean / one.deviation)[one.deviation > 0].max()) for one in read)


def _where(stack: StackName, layer: int, n_dead: int, share: float) -> Sentence:
    if stack == "encoder":
        return say_n("{n:,} neuron is dead. The layer with the most dead neurons is encoder layer {layer}, where "
                     "{share:.0%} are dead.",
                     "{n:,} neurons are dead. The layer with the most dead neurons is encoder layer {layer}, where "
                     "{share:.0%} are dead.", n_dead, layer=layer + 1, share=share)  # fmt: skip
    return say_n("{n:,} neuron is dead. The layer with the most dead neurons is decoder layer {layer}, where "
                 "{share:.0%} are dead.",
                 "{n:,} neurons are dead. The layer with the most dead neurons is decoder layer {layer}, where "
                 "{share:.0%} are dead.", n_dead, layer=layer + 1, share=share)  # fmt: skip


_SOME: Sentence = say(
    "Each of these neurons adds the same vector at every token, so the feed-forward network is effectively "
    "narrower than the config says."
)
_WHOLE: Sentence = say(
    "In one feed-forward network, each neuron adds the same vector at every token, so the network only adds a "
    "constant vector."
)


TESTS = (dead_neurons,)
