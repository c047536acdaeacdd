"""Tables of positions that a file holds although a formula gives them.

Models that were trained in 16 bits hold them rounded, and their own program uses them so.
"""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from transformer.importers import keys
from transformer.importers.huggingface.renaming import FORMULA
from transformer.importers.huggingface.settings import Fields, inferred
from transformer.importers.keys import Match
from transformer.importers.weights import Weights
from transformer.model.positions import fairseq_table, halves_table, sinusoidal_table
from words import say

TABLES = ("encoder.embedding.positions.table", "decoder.embedding.positions.table")
FORMULAS: Mapping[str, Callable[[int, int], Tensor]] = {
    "interleaved": sinusoidal_table,
    "halves": halves_table,
    "tensor2tensor": partial(fairseq_table, first=0),
}
CLOSE, COARSE = 1e-5, 2**-23  # angles in float32 are this coarse for each position


def settle_sinusoids(found: Match, weights: Weights, said: Fields) -> tuple[Match, Fields]:
    """Leave stored sinusoids out if they are those of the formula, or use them as they are."""
    there = [name for name in TABLES if name in found.sources]
    if said["positions"].value != "sinusoidal" or not there:
        return found, {}
    taken, shapes = [found.sources[name] for name in there], keys.shapes(found, weights, {})
    stored = [one.reshape.apply([weights.read(one.sources[0])], {})[0] for one in taken]
    formula = FORMULAS[said["sinusoid_layout"].value]
    fits = all(shapes[name][1:] == (said["d_model"].value,) for name in there)
    most = max(_apart(table, formula(*table.shape)) for table in stored) if fits else torch.inf
    if most <= CLOSE:
        return found.without(there, FORMULA), {}
    why = say(
        "the file holds sinusoids that differ from the formula's by up to {most:.1g}, and they are used", most=most
    )
    return found, {"positions": inferred("learned", why), "sinusoid_layout": inferred("interleaved", why)}


def _apart(table: Tensor, formula: Tensor) -> float:
    """By how much two tables differ where rounding does not explain it, else how much at all."""
    differences = (table - formula).abs().amax(dim=1)  # [position]
    allowed = CLOSE + COARSE * torch.arange(len(table))
    return float(differences.max()) if (differences > allowed).any() else 0.0
