"""Writer of a card: what a user answered about the names of one file, for other files of the same code.

    python -m transformer import runs/a.pt --out checkpoints/a --set q_proj=to_q --set n_heads=4 --save-card mine.toml
    python -m transformer import runs/b.pt --out checkpoints/b --card mine.toml

`cards` reads it. Numbers of layers become holes, so the second file may have another number of layers.
"""

import json
import re
from collections.abc import Mapping
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
    """Write the card of an import; refuses a path that is taken, and models of whose names a card or config knows."""
    found, source = imported.named, imported.report.source
    if found is None:
        raise CheckpointError("{label}: its names are known, so they need no card.", label=source)
    if path.exists():
        raise CheckpointError("{file} already exists; choose a new name.", file=str(path))
    answered = {one.name: one.value for one in imported.report.fields if one.how == "answered"}
    fields = {name: _plain(name, value) for name, value in answered.items() if name in CONFIG_FIELDS}
    ignored = [name for name in found.ignored if name.startswith(found.prefix)]
    tables = {
        "names": dict(_pattern(one, found) for one in found.taken),
        "ignored": {_numbered(name, found): "unused" for name in ignored},
        "fields": {name: value for name, value in fields.items() if value is not None},
    }
    lines = [f"title = {json.dumps(Path(source).stem)}"]
    for key, table in tables.items():
        lines += ["", f"[{key}]", *(f"{json.dumps(name)} = {_value(value)}" for name, value in table.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _plain(name: str, value: Any) -> Any:
    """A value as TOML has it, which has no null."""
    return "none" if value is None and name.endswith("_id") else [*value] if isinstance(value, tuple) else value


def _pattern(one: MatchedTensor, found: Match) -> tuple[str, Any]:
    source, targets = _numbered(one.source, found), list(one.targets)
    if "{n}" in source:
        targets = [_LAYER.sub(r"\1.layers.{n}.", name) for name in targets]
    end = next((end for end in _ENDS if all(name.endswith(end) for name in (source, *targets))), "")
    source, *targets = (f"{name.removesuffix(end)}.{{p}}" if end else name for name in (source, *targets))
    to: Any = targets if len(targets) > 1 else targets[0]
    return source, to if one.reshape is AS_IS else {_WORDS[one.reshape]: to}


def _numbered(name: str, found: Match) -> str:
    """A name with a hole for the number of its layer, the last one in what the layer's names begin with."""
    layer = found.layer_of(name)
    return (_NUMBER.sub(r"{n}\1", layer) + name[len(layer) :]).removeprefix(found.prefix)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(name)} = {_value(one)}' for name, one in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if not isinstance(value, str | int | float):
        raise CheckpointError("{found} cannot be written into a card.", found=shown(value))
    return json.dumps(str(value) if isinstance(value, str) else value)
