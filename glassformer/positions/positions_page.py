"""Record of the Positions page; its scenes `PositionTable` and `PositionScene` (rotations, bias by distance)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import stroke
from glassformer.charts.marks import Places, Scale, Series, lines
from glassformer.positions import PositionsLook
from glassformer.runs.map_axes import STACKS, fit_parts
from glassformer.runs.picture import Page, PartEntry
from glassformer.runs.viewed_run import ModelAccess, ViewedRun
from glassformer.state.view import Slot, View
from transformer.analysis import positions as study
from transformer.analysis.positions import DistanceBias, Turning, distance_bias, own_table, turnings
from transformer.i18n import joined, say
from transformer.model.anatomy import StackName, anatomy
from transformer.model.config import ModelConfig
from transformer.runs.recording_pass import not_finite

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

LOOKED_AT = stroke(theme.NEUTRAL_COLOR, 2.5, size=5)

PAGE = Page(
    "positions",
    say("Positions"),
    panel="positions_panel",
    entries=(
        PartEntry("table", say("Table"), "glassformer.positions.position_panels:table"),
        PartEntry("similarity", say("Similarity"), "glassformer.positions.position_panels:table"),
        PartEntry("shift", say("Shift"), "glassformer.positions.position_panels:table"),
        PartEntry("sentence", say("Sentence"), "glassformer.positions.position_panels:in_sentence"),
        PartEntry("rotations", say("Rotations"), "glassformer.positions.position_panels:in_attention"),
        PartEntry("pair", say("One pair"), "glassformer.positions.position_panels:in_attention"),
        PartEntry("distance", say("Score by distance"), "glassformer.positions.position_panels:in_attention"),
    ),
)
DEFAULT_COUNT = 64
DISTANCE_AXIS = say("Distance: key's position − query's position (tokens)")
MOST_CELLS = 32_768  # 128 positions of 256 dimensions: 130 kB
MOST_SHIFTED = 512  # positions that a shift is measured on
FOLLOWS = 1e-3
"""A table nearer to the formula than this is the formula, rounded."""


@dataclass(frozen=True)
class PositionTable:
    """The table of one stack, and what of it is looked at."""

    checkpoint: Checkpoint  # whose
    values: np.ndarray  # [position, d_model]
    only: bool  # whether the model has no other stack
    alone: bool  # whether the other side's table has other values
    whose: str  # in a few words, for titles
    view: View  # what is looked at; its side is the table's
    count: int  # how many positions are drawn
    d_model: int  # number of dimensions
    difference: float  # the largest difference of any value from the formula
    follows: bool  # whether it is the formula's, rounded
    measured: np.ndarray  # the first positions, which a shift is measured on [position, d_model]
    slot: Slot  # where it is drawn
    work: ModelAccess

    @property
    def look(self) -> PositionsLook:
        """What of it is looked at."""
        return self.view.of(PositionsLook)

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions whose curves are drawn: those chosen, else a few spread over the table."""
        return self.look.dims or spread(self.d_model)

    @property
    def pair(self) -> int:
        """The pair of dimensions that is followed through a shift; -1 if there is none."""
        return min(self.look.dims[0] // 2 if self.look.dims else 0, self.d_model // 2 - 1)

    @property
    def most_shift(self) -> int:
        """The largest shift that leaves two positions to look at."""
        return most_shift(len(self.values))

    @property
    def shift(self) -> int:
        """The selected shift."""
        return min(self.look.shift, self.most_shift)

    @property
    def shifts(self) -> bool:
        """Whether there are positions and dimensions enough to look at a shift."""
        return self.most_shift >= 1 and self.pair >= 0

    @cached_property
    def fit(self) -> study.ShiftFit:
        """The best linear map of the shift."""
        return study.fit_shift(self.measured, self.shift)

    @cached_property
    def similar(self) -> np.ndarray:
        """How much each position that is drawn resembles each other."""
        return study.similarity(self.values[: self.count], cosine=self.look.cosine)

    @cached_property
    def by_distance(self) -> study.ByDistance:
        """The same by distance."""
        return study.by_distance(self.similar)

    @property
    def measure(self) -> str:
        """What resemblance is."""
        return say("cosine") if self.look.cosine else "p·q"


def most_shift(n_positions: int) -> int:
    """The largest shift that leaves two of so many positions to look at."""
    return min(n_positions, MOST_SHIFTED) - 2


def count_of(view: View, most: int) -> int:
    """How many of `most` positions are drawn."""
    return min(view.of(PositionsLook).drawn or DEFAULT_COUNT, most)


def spread(d_model: int) -> tuple[int, ...]:
    """A few dimensions: a sine and its cosine, two of longer waves, and the last."""
    return tuple(sorted({0, min(1, d_model - 1), d_model // 8, d_model // 4, d_model - 1}))


def stack_of(checkpoint: Checkpoint, stack: StackName) -> str:
    """A stack in a few words, for titles."""
    if stack == "encoder":
        return say("{name}, encoder", name=checkpoint.name)
    return say("{name}, decoder", name=checkpoint.name)


def open_table(checkpoint: Checkpoint, view: View, slot: Slot, work: ModelAccess) -> PositionTable | None:
    """The selected side's table, for any sentence; None for a model that adds none. QueryError if it is not finite."""
    if checkpoint.config.placing.adds != "table":
        return None
    parts = anatomy(checkpoint.config)
    view, _ = fit_parts(view, parts)
    first, *others = (own_table(checkpoint.model, stack.name) for stack in parts.stacks)
    values = own_table(checkpoint.model, STACKS[view.side])
    looks_at_all = view.of(PositionsLook).positions_panel != "sentence"  # that part looks at its own rows only
    if looks_at_all and not np.isfinite(values).all():
        raise not_finite(f"{STACKS[view.side]}.embedding.positions")
    difference = work.compute(
        ("positions", checkpoint.content_hash, view.side, "formula"),
        lambda: study.difference_from_formula(values),
        nbytes=lambda _: 8,
    )
    alone, d_model = not all(np.array_equal(first, other) for other in others), int(values.shape[1])
    whose = stack_of(checkpoint, STACKS[view.side]) if alone else checkpoint.name
    view = view.but(dims=tuple(dim for dim in view.of(PositionsLook).dims if dim < d_model))
    return PositionTable(
        checkpoint, values, not others, alone, whose, view, count_of(view, len(values)), d_model, difference,
        difference < FOLLOWS, values[:MOST_SHIFTED], slot, work,
    )  # fmt: skip


def table_of_run(run: ViewedRun) -> PositionTable | None:
    """The same of a run."""
    return open_table(run.checkpoint, run.view, run.slot, run.work)


def left_out(n: int, count: int, fewer: str) -> str:
    """What a map of the first n positions has no room for, with what is said of its columns; "" if it has all."""
    said: list[str] = [say("the first {n} of {all:,} positions", n=n, all=count)] if n < count else []
    said += [fewer] if fewer else []
    return say("Drawn: {parts}.", parts=joined("; ", said)) if said else ""


def height_of(n: int) -> int:
    """How high a map of so many positions is, in pixels."""
    return int(np.clip(170 + 8 * n, 280, 560))


# ------------------------------------------------------------------------------------------------ inside attention


@dataclass(frozen=True)
class PositionScene:
    """What of a model's positions is looked at."""

    checkpoint: Checkpoint  # the model
    config: ModelConfig  # its features
    view: View  # what is looked at
    slot: Slot  # where it is drawn
    stack: StackName  # whose attentions; its self-attention is called by it
    whose: str  # the stack in a few words, for titles
    causal: bool  # whether no key comes after its query
    count: int  # how many positions are drawn, or how far a distance goes

    @cached_property
    def turnings(self) -> tuple[Turning, ...]:
        """The ways in which layers turn; none where positions are a bias."""
        return () if self.config.rotary is None else tuple(turnings(self.config, self.stack))

    @property
    def turning(self) -> Turning | None:
        """How the chosen layers turn, else the first that do; None where positions are a bias."""
        found = self.turnings
        own = next((one for one in found if self.view.layer in one.layers), None)
        return own or next((one for one in found if one.n_pairs), next(iter(found), None))

    @property
    def turns(self) -> Turning | None:
        """The same, if something turns there."""
        return self.turning if self.turning is not None and self.turning.n_pairs else None

    @property
    def pair(self) -> int:
        """The pair that is followed: that of the first dimension chosen."""
        n, dims = 0 if self.turns is None else self.turns.n_pairs, self.view.of(PositionsLook).dims
        return dims[0] % n if dims and dims[0] < 2 * n else 0

    @property
    def distances(self) -> np.ndarray:
        """The distances that are drawn: up to as many tokens as positions are; in a decoder no key comes later."""
        return np.arange(-(self.count - 1), 1 if self.causal else self.count)

    @cached_property
    def bias(self) -> DistanceBias:
        """What distance adds to scores."""
        return distance_bias(self.checkpoint.model, self.stack, most=self.count - 1)

    @property
    def head(self) -> int:
        """The selected head."""
        return min(self.view.head or 0, len(self.bias.bias) - 1)


def open_shown(checkpoint: Checkpoint, view: View, slot: Slot) -> PositionScene | None:
    """What is looked at, whatever the sentence; None for a model whose positions do not act inside attention."""
    if checkpoint.config.placing.adds in ("table", "nothing"):
        return None
    config, parts = checkpoint.config, anatomy(checkpoint.config)
    view, _ = fit_parts(view, parts)
    stack = STACKS[view.side]
    whose = stack_of(checkpoint, stack) if len(parts.stacks) > 1 else checkpoint.name
    causal, count = parts.attention(stack).causal, count_of(view, config.max_len)
    return PositionScene(checkpoint, config, view, slot, stack, whose, causal, count)


def shown_of_run(run: ViewedRun) -> PositionScene | None:
    """The same of a run."""
    return open_shown(run.checkpoint, run.view, run.slot)


def layers_said(turning: Turning, *, most: int = 6) -> str:
    """The numbers of the layers; after the first few an ellipsis."""
    numbers = [str(layer + 1) for layer in turning.layers]
    return joined(", ", numbers if len(numbers) <= most else [*numbers[:most], "…"])


def by_distance(
    title: str, distances: np.ndarray, value_name: str, series: Sequence[Series], **more: Any
) -> dict[str, Any]:
    """A chart of something by the distance between query and key: the key's position minus the query's."""
    across = Places(DISTANCE_AXIS, distances, say("distance {distance}", distance="%{x}"), {"nticks": 12})
    return lines(title, across, Scale(value_name, {"nticks": 7, "zeroline": True}), series, height=440, **more)
