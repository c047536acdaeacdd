"""What a run records, and whether it keeps its maps: those of a long text would be more than a server has room for.

A run that lets its maps go computes every attention as one that keeps them, so that all its other numbers are the
same to the last bit; `transformer.runs.by_layer` makes them again, one layer at a time.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig

WEIGHTS = "*_attn.weights"
_BYTES = 4  # of a weight, in float32


@dataclass(frozen=True)
class Sites:
    """The sites of one pass."""

    recorded: tuple[str, ...]  # names or patterns of what is kept
    passed: tuple[str, ...]  # of what is computed as if it were kept, looked at whether it is finite, and let go

    def kept(self, seen: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What an earlier pass recorded, without maps if this one lets them go."""
        return {site: value for site, value in seen.items() if not self.passed or not site.endswith(".weights")}


@dataclass(frozen=True)
class Keeping:
    """What a run records."""

    config: ModelConfig  # of the model
    maps: bool = True  # whether attention weights are computed at all
    # Most memory for the maps of one run; one with more keeps none. None: it keeps them all.
    most_bytes: int | None = None

    def sites(self, n_source: int, n_target: int) -> Sites:
        """The sites of a pass over so many tokens of the source and of the output; 0 where none are known yet."""
        own_masks = ["decoder.*.self_attn.mask"] * bool(self.config.windows)
        logits = ["logits"] * anatomy(self.config).writes
        always = ("*.0.*_attn.mask", *own_masks, *logits)
        if not self.maps:
            return Sites(always, ())
        if self.most_bytes is not None and map_bytes(self.config, n_source, n_target) > self.most_bytes:
            return Sites(always, (WEIGHTS,))
        return Sites((*always, WEIGHTS), ())


def map_bytes(config: ModelConfig, n_source: int, n_target: int) -> int:
    """Memory of all maps of one run, in bytes."""
    n_tokens = {"encoder": n_source, "decoder": n_target}
    return sum(
        _BYTES * one.n_layers * config.of(one.stack).n_heads * n_tokens[one.stack] * n_tokens[one.keys_from]
        for one in anatomy(config).attentions
    )
