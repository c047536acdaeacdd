"""Attention maps as a long table (pandas) and as a Parquet file: one row per weight of an open cell."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transformer.errors import GlassformerError, QueryError

if TYPE_CHECKING:
    import pandas as pd


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
