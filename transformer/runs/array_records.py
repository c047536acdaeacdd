"""Base class `ArrayRecord` of records with read-only arrays; the progress of a measurement in parts."""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np


class ArrayRecord:
    """A frozen record with read-only arrays, in its fields or in mappings in its fields, which are read-only, too."""

    def __post_init__(self) -> None:
        for field in fields(cast("Any", self)):
            if isinstance(value := getattr(self, field.name), Mapping):
                object.__setattr__(self, field.name, MappingProxyType(dict(value)))
        for array in _arrays(self):
            array.flags.writeable = False

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, in bytes."""
        return sum(array.nbytes for array in _arrays(self))


def _arrays(record: Any) -> Iterator[np.ndarray]:
    for field in fields(record):
        value = getattr(record, field.name)
        for part in value.values() if isinstance(value, Mapping) else (value,):
            if isinstance(part, np.ndarray):
                yield part
            elif isinstance(part, ArrayRecord):
                yield from _arrays(part)


_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Progress:
    """The progress of a measurement."""

    done: int  # parts that are done
    whole: int  # of how many


def whole(measuring: Generator[object, None, _Result]) -> _Result:
    """Run all parts of a measurement, and return its result."""
    while True:
        try:
            next(measuring)
        except StopIteration as end:
            return end.value
