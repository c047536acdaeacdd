"""What records of arrays have in common: many sessions share one, and a cache asks for its size."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np


class Arrays:
    """A frozen record with read-only arrays, in its fields or in mappings in its fields."""

    def __post_init__(self) -> None:
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
            elif isinstance(part, Arrays):
                yield from _arrays(part)
