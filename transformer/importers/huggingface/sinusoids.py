"""Tables of positions that a file holds although a formula gives them.

Models that were trained in 16 bits hold them rounded, and their own program uses them so.
"""

import torch

from transformer.importers.huggingface.renaming import FORMULA
from transformer.importers.huggingface.settings import Fields, inferred
from transformer.importers.keys import Match
from transformer.importers.weights import Weights
from transformer.model.positions import halves_table
from words import say

TABLES = ("encoder.embedding.positions.table", "decoder.embedding.positions.table")
CLOSE = 1e-5  # angles of position 1,000 in float32 are this coarse


def settle_sinusoids(found: Match, weights: Weights, said: Fields) -> tuple[Match, Fields]:
    """Leave stored sinusoids out if they are those of the formula, or use them as they are."""
    there = [name for name in TABLES if name in found.sources]
    if said["positions"].value != "sinusoidal" or not there:
        return found, {}
    stored = [weights.read(found.sources[name].sources[0]) for name in there]
    fits = all(table.dim() == 2 for table in stored)
    most = max(float((table - halves_table(*table.shape)).abs().max()) for table in stored) if fits else torch.inf
    if most <= CLOSE:
        return found.without(there, FORMULA), {}
    why = say(
        "the file holds sinusoids that differ from the formula's by up to {most:.1g}, and they are used", most=most
    )
    return found, {"positions": inferred("learned", why), "sinusoid_layout": inferred("interleaved", why)}
