"""How far a measurement is that is made in parts, and how to make all of its parts at once.

Knows no model.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Progress:
    """How far a measurement is."""

    done: int  # parts that are done
    whole: int  # of how many


def whole(measuring: Generator[Progress, None, _Result]) -> _Result:
    """Make all parts of a measurement, and return what it finds."""
    while True:
        try:
            next(measuring)
        except StopIteration as end:
            return end.value
