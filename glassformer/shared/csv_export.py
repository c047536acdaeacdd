"""CSV export: the `Origin` of a table, its file name and columns; bytes safe against spreadsheet formulas.

The origin is in columns, not in comment lines: every program reads it, tables of several sentences can be
concatenated, and each row still says where it comes from.

The format equals that of `glassformer/components/common/save.js`, for tables that the browser makes: UTF-8 with a byte
order mark, RFC 4180, formulas neutralised, numbers that read back exactly.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from transformer.i18n import said, said_throughout, say
from transformer.runs.query import Greedy, Query
from transformer.text.cells import cell

if TYPE_CHECKING:
    import pandas as pd

Table = Callable[[], Mapping[str, Any]]
"""Makes the columns of a table by their names, which are sentences; called when it is saved, without a session."""

_MOST_BYTES: Final = {"checkpoint": 32, "sentence": 60, "decoding": 32, "chart": 72}  # 255 are a file name


@dataclass(frozen=True)
class Origin:
    """What a file is of; what is empty is not said."""

    checkpoint: str = ""  # its name
    sentence: str = ""  # the source
    decoding: str = ""  # how the output was made, if not as the model itself would have it
    chart: str = ""  # what is drawn: its title, which names layer and head
    rows: str = ""  # how the rows of maps were made, where a changed run leaves a choice

    def stem(self, key: str) -> str:
        """The file's name without its ending."""
        parts = [slug(getattr(self, name), most) for name, most in _MOST_BYTES.items()]
        return "_".join(filter(None, [*parts[:-1], slug(key, 40), parts[-1]]))

    def columns(self) -> dict[str, str]:
        """Name and value of the columns that say it."""
        named = {
            say("checkpoint"): self.checkpoint,
            say("sentence"): self.sentence,
            say("decoding"): self.decoding,
            say("chart"): self.chart,
            say("rows of maps"): self.rows,
        }
        return {name: value for name, value in named.items() if value}


def decoding_of(query: Query) -> str:
    """How an output was made, such as "sampling temperature=3 top_k=0 top_p=1 seed=7"; empty for greedy decoding."""
    kind = type(query.decoding).__name__.lower()
    parts = [] if isinstance(query.decoding, Greedy) else [kind]
    parts += [f"{name}={value:g}" for name, value in asdict(query.decoding).items()]
    parts += [f"hypothesis={query.hypothesis + 1}"] * bool(query.hypothesis)
    parts += [f"forced={'.'.join(map(str, query.forced))}"] * bool(query.forced)
    return " ".join([*parts, *map(str, query.interventions)])


@lru_cache(maxsize=1024)  # all charts of a page are of one sentence
def slug(text: str, most: int) -> str:
    """A text as a part of a file name: letters and numbers of any script; above `most` bytes cut, with a checksum."""
    letters = (c if unicodedata.category(c)[0] in "LMN" else "-" for c in unicodedata.normalize("NFC", text.lower()))
    whole = re.sub("-+", "-", "".join(letters)).strip("-")
    if len(whole.encode()) <= most:
        return whole
    kept = whole.encode()[: most - 9].decode(errors="ignore").rstrip("-")
    return f"{kept}-{zlib.crc32(text.encode('utf-8', 'replace')):08x}"


def csv_bytes(table: pd.DataFrame) -> bytes:
    """A table as CSV."""
    from pandas.api.types import is_numeric_dtype  # here, as `i18n.frame` says

    safe = table.rename(columns=_safe)
    for place in range(safe.shape[1]):
        column = safe.iloc[:, place]
        if not is_numeric_dtype(column):
            safe.isetitem(place, column.map(_safe).to_numpy())
    text: str = safe.replace([np.inf, -np.inf], np.nan).to_csv(index=False, lineterminator="\r\n")
    return b"\xef\xbb\xbf" + text.encode("utf-8", "replace")


def saved(make: Table, origin: Origin, language: str) -> Callable[[], bytes]:
    """What writes a table later, when somebody saves it, its columns named in a language; it must not hold a run."""
    return partial(_written, make, origin, language)


def _written(make: Table, origin: Origin, language: str) -> bytes:
    import pandas as pd

    columns = {name: _in_language(values, language) for name, values in make().items()}
    table = pd.DataFrame(said_throughout(columns, language))
    return csv_bytes(with_origin(table, origin, language))


def _in_language(values: Any, language: str) -> Any:
    """A column with its sentences, if it has some, in a language."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "O":
        return values
    return [said(value, language) if isinstance(value, str) else value for value in values]


def with_origin(table: pd.DataFrame, origin: Origin, language: str) -> pd.DataFrame:
    """A table with columns before its own that say what it is of."""
    import pandas as pd

    about = {said(name, language): value for name, value in origin.columns().items()}
    return pd.concat([pd.DataFrame(about, index=table.index), table], axis="columns")


def _safe(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe; anything else stays what it is."""
    return cell(value) if isinstance(value, str) else value
