"""Writer of a card: what a user answered about the names of one file, for other files of the same code.

    python -m transformer import runs/a.pt --out checkpoints/a --set q_proj=to_q --set n_heads=4 --save-card mine.toml
    python -m transformer import runs/b.pt --out checkpoints/b --card mine.toml

`cards` reads it. Numbers of layers become holes, so the second file may have another number of layers.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from glassformer.extensions.importers.library.cards import RESHAPES
from glassformer.extensions.importers.library.kept_answers import CONFIG_FIELDS
from glassformer.extensions.importers.library.keys import AS_IS, Match, MatchedTensor
from glassformer.extensions.importers.library.report import Imported
from transformer.errors import CheckpointError, shown

_LAYER = re.compile(r"(encoder|decoder)\.layers\.\d+\.")
_NUMBER = re.compile(r"(?<![^.])\d+(\.\D*)$")
_ENDS = (".weight", ".bias")
_WORDS = {reshape: word for word, reshapes in RESHAPES.items() for reshape in reshapes}


def write(imported: Imported, path: Path) -> None:
    """Write the card of an import; refuses a path that is taken, and models whose config says all of it."""
    if imported.named is None:
        raise CheckpointError("{label}: needs no card, as its settings are read.", label=imported.report.source)
    if path.exists():
        raise CheckpointError("{file} already exists; choose a new name.", file=str(path))
    answered = {one.name: one.value for one in imported.report.fields if one.how == "answered"}
    fields = {name: _plain(name, value) for name, value in answered.items() if name in CONFIG_FIELDS}
    record = dict(imported.card or _record(imported.named, Path(imported.report.source).stem))
    record["fields"] = {**record.get("fields", {}), **fields}
    record["fields"] = {name: value for name, value in record["fields"].items() if value is not None}
    path.write_text("\n".join(_lines(record)) + "\n", encoding="utf-8")


def _plain(name: str, value: Any) -> Any:
    """A value as TOML has it, which has no null."""
    return "none" if value is None and name.endswith("_id") else [*value] if isinstance(value, tuple) else value


def _record(found: Match, title: str) -> dict[str, Any]:
    ignored = [name for name in found.ignored if name.startswith(found.prefix)]
    return {
        "title": title,
        "names": dict(_pattern(one, found) for one in found.taken),
        "ignored": {_numbered(name, found.layer_of(name))[len(found.prefix) :]: "unused" for name in ignored},
    }


def _pattern(one: MatchedTensor, found: Match) -> tuple[str, Any]:
    source, targets = _numbered(one.source, found.layer_of(one.source)), list(one.targets)
    if source != one.source:
        targets = [_LAYER.sub(r"\1.layers.{n}.", name) for name in targets]
    end = next((end for end in _ENDS if all(name.endswith(end) for name in (source, *targets))), "")
    source, *targets = (f"{name.removesuffix(end)}.{{p}}" if end else name for name in (source, *targets))
    to: Any = targets if len(targets) > 1 else targets[0]
    return source[len(found.prefix) :], to if one.reshape is AS_IS else {_WORDS[one.reshape]: to}


def _numbered(name: str, layer: str) -> str:
    """A name with a hole for the number of its layer, the last one in what the layer's names begin with."""
    return _NUMBER.sub(r"{n}\1", layer) + name[len(layer) :] if layer else name


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    tables = {key: value for key, value in record.items() if isinstance(value, Mapping)}
    several = {
        key: value for key, value in record.items() if isinstance(value, list) and value and isinstance(value[0], dict)
    }
    yield from (f"{key} = {_value(value)}" for key, value in record.items() if key not in {*tables, *several})
    for key, table in tables.items():
        if table:
            yield from ("", f"[{key}]", *(f"{json.dumps(name)} = {_value(value)}" for name, value in table.items()))
    for key, tables_of_it in several.items():
        for one in tables_of_it:
            yield from ("", f"[[{key}]]", *(f"{json.dumps(name)} = {_value(value)}" for name, value in one.items()))


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(name)} = {_value(one)}' for name, one in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if not isinstance(value, str | int | float):
        raise CheckpointError("{found} cannot be written into a card.", found=shown(value))
    return json.dumps(str(value) if isinstance(value, str) else value)
