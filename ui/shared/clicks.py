"""What follows from a click on a chart."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ui.components.plotly.view import last_click
from ui.state.click import Click

_Meant = TypeVar("_Meant")


def on_click(
    key: str, read: Callable[[Click], _Meant | None], take: Callable[[_Meant], object]
) -> Callable[[], None]:
    """Callback of a chart: `take` is called with what a click is read as, if that is something.

    A session keeps it: neither function may hold a run.
    """

    def go() -> None:
        click = last_click(key)
        meant = None if click is None else read(click)
        if meant is not None:
            take(meant)

    return go
