"""Config fields for attention beyond the paper: sinusoid layout, rotary, T5 buckets, scale, cap, QK norm, windows.

You need none of them to understand the model of the paper; read `transformer.model.config` first. It knows nothing of
torch. Equations are in `positions`, `attention_positions`, `attention_scores`, `masks` and `attention`, sources at each
field.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, Self, get_args

from transformer.errors import ConfigError, shown
from transformer.model.config_fields import (
    MAX_NUMBER,
    check_choice,
    check_number,
    check_scalar,
    check_whole,
    check_wholes,
)
from transformer.model.position_kinds import PositionKind

SinusoidLayout = Literal["interleaved", "halves", "fairseq", "tensor2tensor"]
RotaryScaling = Literal["none", "linear", "llama3", "yarn"]

MAX_WINDOW = 2**20
MAX_BUCKETS = 1024


@dataclass(frozen=True, kw_only=True)
class Rotary:
    """The settings of rotary positions: how fast each pair of dimensions of a query or key turns.

    Source: Su et al., "RoFormer" (2021); Chen et al., "Extending Context Window of Large Language Models via Position
    Interpolation" (2023) for "linear"; Peng et al., "YaRN" (2023); Llama team, "The Llama 3 Herd of Models" (2024).
    """

    base: float = 10_000.0  # pair i of n turns by base^(-i / n) radians from one token to the next
    # The same in layers that have a window, which are then not scaled; None: no difference.
    local_base: float | None = None
    share: float = 1.0  # share of d_head that turns, from the front; the rest stays unchanged
    # How the angles are changed for texts longer than those of the training: "none"; "linear", all are divided by
    # `factor`; "llama3" and "yarn", slow pairs are divided, fast ones are not, those between partly.
    scaling: RotaryScaling = "none"
    factor: float = 1.0  # the divisor
    original_len: int = 0  # tokens of the texts in training; 0 means `max_len`
    # A pair with at most `slow` turns in `original_len` tokens is divided; one with at least `fast` is not.
    slow: float = 1.0
    fast: float = 32.0
    rounded: bool = True  # "yarn" rounds to whole pairs where slow begins and fast ends
    # Queries and keys are multiplied by it; None means 0.1 ln(factor) + 1 for "yarn", otherwise 1.
    magnitude: float | None = None

    def __post_init__(self) -> None:
        check_number("rotary.base", self.base, least=1.0, above=True)
        check_number("rotary.local_base", self.local_base, least=1.0, above=True, optional=True)
        check_number("rotary.share", self.share, least=0.0, most=1.0, above=True)
        check_number("rotary.factor", self.factor, least=0.0, above=True)
        check_whole("rotary.original_len", self.original_len, least=0, most=MAX_WINDOW)
        check_number("rotary.slow", self.slow, least=0.0, above=True)
        check_number("rotary.fast", self.fast, least=self.slow, above=True)
        check_number("rotary.magnitude", self.magnitude, least=0.0, above=True, optional=True)
        check_scalar("rotary.rounded", self.rounded, bool)
        check_choice("rotary.scaling", self.scaling, get_args(RotaryScaling))

    @classmethod
    def from_mapping(cls, record: object) -> Self:
        """Read the JSON object; a ConfigError names the unknown key, the refused value, or what is not an object."""
        if not isinstance(record, Mapping):
            raise ConfigError(
                "rotary", "found {found}, expected an object whose values are numbers.", found=shown(record)
            )
        names = [field.name for field in fields(cls)]
        for key in record:
            if key not in names:  # an ignored number would leave out arithmetic
                raise ConfigError(
                    "rotary",
                    "the key {found} is unknown; the known keys are {names}.",
                    found=shown(key),
                    names=", ".join(names),
                )
        return cls(**record)

    def width(self, d_head: int) -> int:
        """Number of dimensions of a query or key that turn."""
        return int(d_head * self.share)


@dataclass(frozen=True, kw_only=True)
class AttentionFeatures:
    """The fields of `ModelConfig` about positions and attention that the paper does not have."""

    # The order of sines and cosines in the table: "interleaved", they alternate; "halves", the sines come before the
    # cosines; "tensor2tensor", halves with other frequencies; "fairseq", the same, from position `pad_id` + 1 on.
    sinusoid_layout: SinusoidLayout = "interleaved"
    rotary: Rotary | None = None  # the numbers of rotary positions; None without them
    relative_buckets: int = 32  # buckets of relative distances, each with a learned bias per head
    relative_distance: int = 128  # distances from this many tokens on are in the last bucket
    unplaced_layers: tuple[int, ...] = ()  # layers, from 0, whose attention ignores rotary positions
    score_scale: float | None = None  # What q . k is multiplied by; None: 1 / sqrt(d_head).
    # c, if scores become c tanh(score / c), between -c and c; None: they stay unchanged.
    score_cap: float | None = None
    # Queries and keys go through an RMS norm over d_head, one for each of the two in every attention.
    qk_norm: bool = False
    # Per decoder layer, how many keys a query sees: itself and those before it; 0: all. (): all see all.
    windows: tuple[int, ...] = ()
    # What closed scores are set to, such as -1e9, at most -1000; None: minus infinity. With a number, a row without
    # open keys has equal weights; with minus infinity its weights are 0.
    mask_fill: float | None = None

    def _settle_attention(self, positions: PositionKind) -> None:
        """Put in the place of what JSON has what it stands for."""
        if self.rotary is None and positions == "rotary":
            object.__setattr__(self, "rotary", Rotary())
        elif self.rotary is not None and not isinstance(self.rotary, Rotary):
            object.__setattr__(self, "rotary", Rotary.from_mapping(self.rotary))

    def _check_attention(self, positions: PositionKind, *, d_head: int, n_encoder: int, n_decoder: int) -> None:
        """Check the fields of this record; the arguments are fields of `ModelConfig`."""
        check_choice("sinusoid_layout", self.sinusoid_layout, get_args(SinusoidLayout))
        check_scalar("qk_norm", self.qk_norm, bool)
        check_number("score_scale", self.score_scale, least=0.0, above=True, optional=True)
        check_number("score_cap", self.score_cap, least=0.0, above=True, optional=True)
        check_number("mask_fill", self.mask_fill, least=-MAX_NUMBER, most=-1000.0, optional=True)
        check_whole("relative_buckets", self.relative_buckets, least=4, most=MAX_BUCKETS)
        check_whole("relative_distance", self.relative_distance, least=self.relative_buckets // 2 + 1, most=MAX_WINDOW)
        check_wholes("unplaced_layers", self.unplaced_layers, most=max(n_encoder, n_decoder) - 1)
        check_wholes("windows", self.windows, most=MAX_WINDOW)
        if self.windows and len(self.windows) != n_decoder:
            raise ConfigError(
                "windows",
                "found {found} numbers, expected one for each of {n} decoder layers, or none.",
                found=len(self.windows),
                n=n_decoder,
            )
        for name in ("rotary", "unplaced_layers"):
            if positions != "rotary" and getattr(self, name):
                raise ConfigError(
                    name,
                    "applies only to rotary positions, but this config has positions = {positions}.",
                    positions=positions,
                )
        if self.rotary and (self.rotary.width(d_head) % 2 or not self.rotary.width(d_head)):
            raise ConfigError(
                "rotary.share",
                "{share} of d_head = {d_head} is {width} dimensions, expected an even number of at least 2, "
                "because dimensions rotate in pairs.",
                share=self.rotary.share,
                d_head=d_head,
                width=self.rotary.width(d_head),
            )

    def window(self, layer: int) -> int:
        """How many keys a query of this decoder layer (counted from 0) sees; 0: all."""
        return self.windows[layer] if self.windows else 0
