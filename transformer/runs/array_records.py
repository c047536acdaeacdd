"""Base classes of results: `ArrayRecord` with read-only arrays, `MapTables` of attention maps; progress in parts."""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from transformer.errors import GlassformerError, QueryError

if TYPE_CHECKING:
    import pandas as pd


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


class MapTables:
    """What maps can be written as, of a class with `kinds`, `maps`, `mask` and `labels`."""

    def maps_frame(self: Any) -> "pd.DataFrame":
        """The maps as a long table: kind, layer, head, query and key, all from 0, their tokens, and the weight.

        Cells that the mask closes are left out. A QueryError if a run kept no maps.
        """
        import pandas as pd  # here, because it takes 70 MB and half a second

        parts = []
        for kind in self.kinds:
            weights, (queries, keys) = self.maps(kind), self.labels(kind)
            if weights.shape[2:] != (len(queries), len(keys)):
                raise QueryError("this run kept no maps, so there is no table of them; run it with maps.")
            is_open = np.stack([self.mask(kind, layer) for layer in range(len(weights))])[:, None]
            at = np.nonzero(np.broadcast_to(is_open, weights.shape))
            layer, head, query, key = (index.astype(np.int32) for index in at)
            tokens = {"query_token": np.array(queries, object)[query], "key_token": np.array(keys, object)[key]}
            places = {"layer": layer, "head": head, "query": query, "key": key}
            parts.append(pd.DataFrame({"kind": kind, **places, **tokens, "weight": weights[at]}))
        return pd.concat(parts, ignore_index=True)

    def to_parquet(self: Any, path: Path | str) -> None:
        """Write `maps_frame` as a Parquet file; errors as there, and an OSError."""
        try:
            self.maps_frame().to_parquet(path, index=False)
        except ImportError as error:
            raise GlassformerError(
                "Parquet files need {name}; `pip install {name}` brings it.", name="pyarrow"
            ) from error
