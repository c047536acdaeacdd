"""View state: what the user looks at (step, layer, head, part, ...), for each slot; clicks that change it.

A field is declared once: `layer: int | None = place("layer", MAX_LAYER)` has its default, its query parameter, and how
that is read and written. `View` has the fields that several pages share. A page or extension declares its own fields
in its folder, in a `Look`: `view.of(MasksLook).mask`. Names are unique across all of them, as in
`session.replace(slot, mask="cross")`. The session keeps the view; `glassformer.shared.controls` draws the controls.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Literal, TypeVar

from glassformer.state.fields import (
    MAX_LAYER,
    MAX_PLACE,
    MAX_STEP,
    Declared,
    Look,
    Reader,
    choice,
    declared,
    either,
    flag,
    place,
    read_fields,
    write_fields,
)
from transformer.extensions import imported, provided
from transformer.runs.trace import Kind

Aggregate = Literal["mean", "max", "rollout"]
Side = Literal["source", "target"]

Slot = Literal["", "b-"]
"""Where a page draws a run: begins the keys of all that is drawn there. Each slot has a view of its own."""

MAIN: Final[Slot] = ""
"""The slot of a page that draws one run. Its view alone stands in the address; its keys are the bare names."""

SECOND: Final[Slot] = "b-"
"""The slot beside it, where a page compares two runs."""

LOOKS: Final = (
    "glassformer.step:StepLook", "glassformer.attention:AttentionLook", "glassformer.positions:PositionsLook",
    "glassformer.masks:MasksLook", "glassformer.inside:InsideLook", "glassformer.glossary:GlossaryLook",
    "glassformer.forcing:ForcingLook", "glassformer.search:SearchLook",
)  # fmt: skip
"""What single pages look at; extensions name theirs in their records."""

ORDER: Final = (
    "step layer head query key guess show unsure log own words hide cosine fold apart kind heads follow together panel "
    "positions side shift dims masks mask sentence inside neuron pads measure changed drawn tokens tile tile_keys "
    "block norm depths lens near piece hidden doctor training steps matters mistake effect effect_at tensor tensors "
    "names against counts line listed order holding corpus run over sought bound below looked_at rank loss in leaf "
    "spot lit lit_piece points run2 begin rival term at ends compare"
)
"""How addresses have always ordered their parameters, and still do; what is not named here comes after, by look."""

_Look = TypeVar("_Look", bound=Look)


@dataclass(frozen=True, kw_only=True)
class View:
    """What is looked at: what several pages share, and what is one page's own."""

    step: int = place("step", MAX_STEP, 0)  # the decoding step, from 0
    layer: int | None = place("layer", MAX_LAYER)  # layer from 0, None for all layers together
    head: int | None = place("head", MAX_LAYER)  # head from 0, None for all heads together
    # The selected cell, row and column from 0; None if none was chosen.
    query: int | None = place("query", MAX_PLACE)
    key: int | None = place("key", MAX_PLACE)
    guess: bool = flag("guess")  # hide what comes next until it was guessed
    log_scale: bool | None = either("log")  # colours go by the logarithm of the weight; None where that helps
    own_scale: bool = flag("own")  # colours go from 0 to the largest weight of each head instead of to 1
    words: bool = flag("words")  # pieces are merged to words
    hide_special: bool = flag("hide")  # special pieces are left out
    kind: Kind = choice("kind", "cross")  # which attention
    aggregate: Aggregate = choice("together", "mean")  # what stands for all heads together
    side: Side = choice("side", "source")  # whose positions and embeddings

    looks: tuple[Look, ...] = ()  # of single pages, but for those with all fields at their defaults

    def of(self, look: type[_Look]) -> _Look:
        """What one page or extension alone looks at."""
        return next((one for one in self.looks if isinstance(one, look)), None) or look()

    def get(self, name: str) -> Any:
        """A field by its name, of `View` or of a `Look`."""
        record = all_fields()[name].record
        return getattr(self.of(record) if issubclass(record, Look) else self, name)

    def but(self, **changes: Any) -> "View":
        """The same, but for fields by their names; a name that nobody declares, as a deleted extension, is let be."""
        by: dict[type, dict[str, Any]] = {}
        for name in all_fields().keys() & changes:
            by.setdefault(all_fields()[name].record, {})[name] = changes[name]
        own = by.pop(View, {})
        looks = {type(one): one for one in self.looks}
        looks |= {look: replace(self.of(look), **theirs) for look, theirs in by.items()}
        kept = sorted((one for look, one in looks.items() if one != look()), key=repr)
        return replace(self, **own, looks=tuple(kept))


@cache
def all_fields() -> Mapping[str, Declared]:
    """Every field of the view and of each `Look` by its name, in the order of a URL."""
    found = [one for record in (View, *map(imported, LOOKS), *provided("looks")) for one in declared(record)]
    names = Counter(name for one in found for name in {("field", one.name), ("parameter", one.spelling.name)})
    if twice := [f"{kind} {name}" for (kind, name), n in names.items() if n > 1]:
        raise TypeError(f"several looks declare the {', '.join(twice)}")
    order = {name: place for place, name in enumerate(ORDER.split())}
    return {one.name: one for one in sorted(found, key=lambda one: order.get(one.spelling.name, len(order)))}


def parameters() -> tuple[str, ...]:
    """The query parameters of all fields, in the order of an address."""
    return tuple(one.spelling.name for one in all_fields().values())


def read_view(reader: Reader) -> View:
    """The view that an address says."""
    return View().but(**read_fields(all_fields().values(), reader))


def write_view(view: View) -> dict[str, object]:
    """The query parameters of a view; fields at their defaults may be left out."""
    whose = {type(one): one for one in (view, *view.looks)}
    return write_fields(
        (one, getattr(whose[one.record], one.name)) for one in all_fields().values() if one.record in whose
    )


# ------------------------------------------------------------------------------------------------ clicks

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Click:
    """One click on a mark of a chart."""

    curve: int  # which trace of the figure
    index: tuple[int, ...]  # place of the mark in its trace: `(row, column)` in a heat map, `(i,)` elsewhere
    customdata: Any  # what the figure attached to the mark, else None
    step: int | None = None  # at which the picture stood, from 0; None where nothing is stepped through


def place_of(click: Click) -> int | None:
    """The place that a mark carries; None if it has none."""
    place = click.customdata
    return place if isinstance(place, int) and not isinstance(place, bool) and place >= 0 else None


def cell_of(click: Click) -> tuple[int, int] | None:
    """Row and column of a cell of a map."""
    return (click.index[0], click.index[1]) if len(click.index) == 2 else None


def fields(
    read: Callable[[Click], _Found | None], of: Callable[[_Found], Mapping[str, Any]]
) -> Callable[[Click], Mapping[str, Any] | None]:
    """What a click means as fields of the view; nothing, where nothing is read. What says it must not hold a run."""
    return lambda click: None if (found := read(click)) is None else of(found)


def place_below(count: int) -> Callable[[Click], int | None]:
    """`place_of`, for charts of `count` things."""
    return lambda click: mark if (mark := place_of(click)) is not None and mark < count else None


def into(field: str, mark: Callable[[Click], int | None], **also: int) -> Callable[[Click], dict[str, int] | None]:
    """What a mark means, as a field of the view, and what else is then looked at."""
    return lambda click: {field: at, **also} if (at := mark(click)) is not None else None


def row_below(count: int) -> Callable[[Click], int | None]:
    """The row of a cell, for maps with `count` rows that mean something."""
    return lambda click: cell[0] if (cell := cell_of(click)) is not None and cell[0] < count else None


def column_below(count: int) -> Callable[[Click], int | None]:
    """The column of a cell, for maps with `count` columns that mean something."""
    return lambda click: cell[1] if (cell := cell_of(click)) is not None and cell[1] < count else None
