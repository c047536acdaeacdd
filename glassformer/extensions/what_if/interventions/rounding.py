"""Weights of 8 or 4 bits, and dropout while the model runs.

Source: Nagel et al., "A White Paper on Neural Network Quantization" (2021), section 2.2, for symmetric rounding with
a scale for each row; Srivastava et al., "Dropout" (2014), and Vaswani et al. (2017), section 5.4, for dropout.

Shapes: O outputs, I inputs, T tokens, D d_model.
"""

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

from transformer.i18n import say
from transformer.model.anatomy import anatomy
from transformer.model.linear import widened
from transformer.model.taps import Replacer, Rewirer, Visitor
from transformer.runs.interventions.base import Ground, Intervention
from transformer.runs.interventions.spelling import choice, number, whole
from transformer.runs.interventions.where import AtPlace

WIDTHS: Final = (8, 7, 6, 5, 4, 3, 2)
"""Bits of a weight."""
MOST_KEPT: Final = 2**28  # bytes of rounded matrices that a run keeps, so that not every step rounds them again


class RoundWeights(Intervention):
    # How many of them each weight has.
    bits: str = choice(say("Bits"), {str(n): say("{n} bits", n=n) for n in WIDTHS}, "8")

    word = "bits"
    group = "layers"
    title = say("Weights rounded to a few bits")
    about = say(
        "In each row of a matrix or embedding table, numbers are rounded to whole multiples of 1/127 of the row's "
        "largest absolute value (1/7 with 4 bits, 1 with 2); norms and biases stay unchanged (Nagel et al., 2021, "
        "section 2.2)."
    )

    def told(self) -> str:
        return say("All weights are rounded to {n} bits", n=self.bits)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Rounds matrices when they are used, and the rows of a table that are read: each row has its own scale."""
        rounding = partial(rounded, bits=int(self.bits))
        tables = ["types"] + (["positions"] if ground.config.positions == "learned" else [])
        once = _once(rounding)
        matrices: dict[str, Callable[[Any], Any]] = {
            "*proj.weight": once, "output_weight": once, "*.joined": lambda joined: None,
        }  # fmt: skip
        rows: dict[str, Callable[[Tensor], Tensor]] = {
            f"*.embedding.{name}": rounding for name in ("tokens", *tables)
        }
        return Rewirer(matrices), Replacer(rows, causal=True)


def rounded(rows: Tensor, *, bits: int) -> Tensor:
    """Rows [..., O, I], each rounded to multiples of its own scale, at most 2^(bits - 1) - 1 times it."""
    most = 2 ** (bits - 1) - 1
    rows = widened(rows)
    scale = rows.abs().amax(dim=-1, keepdim=True) / most
    return (rows / scale.masked_fill(scale == 0, 1.0)).round() * scale


def _once(change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The same change, whose results are kept for tensors that come again."""
    kept: dict[int, tuple[Tensor, Tensor]] = {}  # what was changed is kept, too: its id stays its own
    room = MOST_KEPT

    def changed(value: Tensor) -> Tensor:
        nonlocal room
        if id(value) in kept:
            return kept[id(value)][1]
        found = change(value)
        if found.nbytes <= room:
            room -= found.nbytes
            kept[id(value)] = value, found
        return found

    return changed


_BLOCK: Final = 32  # places whose numbers are drawn at once


class KeepDropout(Intervention):
    rate: float = number(say("Rate"), 0, 0.9, 0.1)  # the probability of each to be dropped
    # Says which. A token's own follow from the seed, from the site and from its place, and from nothing else, so that
    # it is the same however the run is computed.
    seed: int = whole(say("Seed"), 0, 2**31 - 1, 0)

    word = "dropout"
    group = "layers"
    title = say("Dropout as in training")
    about = say(
        "In the sum of embeddings and positions, and in every sub-layer's output, numbers are set to 0 at random. "
        "The rest are divided by 1 minus the rate, as in training. The effect is as if dropout had not been "
        "switched off (Srivastava et al., 2014; Vaswani et al., 2017, section 5.4)."
    )

    def told(self) -> str:
        return say("Dropout of {rate:g} as in training, seed {seed}", rate=self.rate, seed=self.seed)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        output = "output_norm" if ground.config.norm == "both" else "output"
        found = []
        for stack in anatomy(ground.config).stacks:
            names = [f"{layer}.{sub}.{output}" for layer in range(stack.n_layers) for sub in stack.sublayers]
            found += [f"{stack.name}.{name}" for name in ("embedding.output", *names)]
        return tuple(AtPlace(site, _Drop(site, self.rate, self.seed)) for site in found)


class _Drop:
    """Drops at one site; remembers what it drew for the run."""

    def __init__(self, site: str, rate: float, seed: int) -> None:
        self._site, self._rate, self._seed = site, rate, seed
        self._kept: dict[int, Tensor] = {}

    def __call__(self, value: Tensor, offset: int) -> Tensor:
        """[B, T, D] -> the same; its first token has this place."""
        first, end = offset // _BLOCK, (offset + value.size(-2) - 1) // _BLOCK + 1
        for block in range(first, end):
            if block not in self._kept:
                self._kept[block] = drawn(self._site, block, value.size(-1), self._seed) >= self._rate
        kept = torch.cat([self._kept[block] for block in range(first, end)])
        begin = offset - first * _BLOCK
        return value * kept[begin : begin + value.size(-2)].to(value) / (1 - self._rate)


def drawn(site: str, block: int, width: int, seed: int) -> Tensor:
    """Numbers from 0 to 1 for 32 places of a site, from place 32 times the block's number on, [32, width]."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"{seed} {site} {block}".encode()))
    return torch.rand(_BLOCK, width, dtype=torch.float64, generator=generator)
