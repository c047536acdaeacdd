"""Tables of positions that a file holds although a formula gives them.

Models that were trained in 16 bits hold them rounded, and their own program uses them so.
"""

import torch
from torch import Tensor

from transformer.importers import keys
from transformer.importers.huggingface.config_settings import Fields, inferred
from transformer.importers.huggingface.renaming import FORMULA
from transformer.importers.keys import Match
from transformer.importers.weights import Weights
from transformer.model.features import SinusoidLayout
from transformer.model.positions import table_of
from words import say

TABLES = ("encoder.embedding.positions.table", "decoder.embedding.positions.table")
CLOSE, COARSE = 1e-5, 2**-23  # angles in float32 are this coarse for each position


def settle_sinusoids(found: Match, weights: Weights, said: Fields) -> tuple[Match, Fields]:
    """Leave stored sinusoids out if they are those of the formula, or use them as they are."""
    there = [name for name in TABLES if name in found.sources]
    if said["positions"].value != "sinusoidal" or not there:
        return found, {}
    taken, shapes = [found.sources[name] for name in there], keys.shapes(found, weights, {})
    stored = [one.reshape.apply([weights.read(one.sources[0])], {})[0] for one in taken]
    fits = all(shapes[name][1:] == (said["d_model"].value,) for name in there)
    layout = said["sinusoid_layout"].value
    apart = torch.tensor([_apart(table, layout) for table in stored] if fits else [torch.inf])
    if not apart.any():
        return found.without(there, FORMULA), {}
    why = say(
        "the file holds sinusoids that differ from the formula's by up to {most:.1g}, and they are used",
        most=float(apart.max()),
    )
    return found, {"positions": inferred("learned", why), "sinusoid_layout": inferred("interleaved", why)}


def _apart(table: Tensor, layout: SinusoidLayout) -> float:
    """By how much a table differs from the formula's; 0 where rounding explains it, NaN where it holds one."""
    if table.dim() != 2:
        return torch.inf
    differences = (table - table_of(layout, *table.shape)).abs().amax(dim=1)  # [position]
    allowed = CLOSE + COARSE * torch.arange(len(table))
    return 0.0 if (differences <= allowed).all() else float(differences.max())
