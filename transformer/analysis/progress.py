"""The progress of a measurement made in parts, and how to run all its parts at once.

Knows no model.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Progress:
    """The progress of a measurement."""

    done: int  # parts that are done
    whole: int  # of how many


def whole(measuring: Generator[Progress, None, _Result]) -> _Result:
    """Run all parts of a measurement, and return its result."""
    while True:
        try:
            next(measuring)
        except StopIteration as end:
            return end.value
