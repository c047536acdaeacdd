"""Chart clicks, and what they change in the view state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

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
    return lambda click: place if (place := place_of(click)) is not None and place < count else None


def into(field: str, mark: Callable[[Click], int | None], **also: int) -> Callable[[Click], dict[str, int] | None]:
    """What a mark means, as a field of the view, and what else is then looked at."""
    return lambda click: {field: place, **also} if (place := mark(click)) is not None else None


def row_below(count: int) -> Callable[[Click], int | None]:
    """The row of a cell, for maps with `count` rows that mean something."""
    return lambda click: cell[0] if (cell := cell_of(click)) is not None and cell[0] < count else None


def column_below(count: int) -> Callable[[Click], int | None]:
    """The column of a cell, for maps with `count` columns that mean something."""
    return lambda click: cell[1] if (cell := cell_of(click)) is not None and cell[1] < count else None
