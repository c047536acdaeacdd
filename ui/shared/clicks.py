"""What a click on a chart means, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ui.components.plotly.view import Click, last_click

_Meant = TypeVar("_Meant")


def on_click(
    key: str, read: Callable[[Click], _Meant | None], take: Callable[[_Meant], object]
) -> Callable[[], None]:
    """Callback of a chart. A session keeps it: neither function may hold a run.

    Args:
        key: Of the chart.
        read: What a click means; None: nothing.
        take: Called with that.
    """

    def go() -> None:
        click = last_click(key)
        meant = None if click is None else read(click)
        if meant is not None:
            take(meant)

    return go


def place_of(click: Click) -> int | None:
    """The place that a mark carries; None for what is no place."""
    place = click.customdata
    return place if isinstance(place, int) and not isinstance(place, bool) and place >= 0 else None


def cell_of(click: Click) -> tuple[int, int] | None:
    """Row and column of a cell of a map."""
    return (click.index[0], click.index[1]) if len(click.index) == 2 else None


def place_below(count: int) -> Callable[[Click], int | None]:
    """`place_of`, for charts of `count` things."""
    return lambda click: place if (place := place_of(click)) is not None and place < count else None
