"""Sentences that stand in data: a TOML file, in which a table says what its texts are.

    [sentences]
    name = { about = "glossary" }   # each text under `name` is a sentence; `about` as for `say`
    text = {}
    code = { note = "…" }           # `note` is for translators

All under other keys stays as it is. `tools/catalogues.py` collects them from every such file in `ui/`.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer.i18n.sentence import Template


def read_table(file: Path) -> dict[str, Any]:
    """What a file holds, its sentences said."""
    found = tomllib.loads(file.read_text(encoding="utf-8"))
    kinds = found.pop("sentences", {})
    said: dict[str, Any] = _said(found, kinds, "")
    return said


def _said(found: Any, kinds: Mapping[str, Mapping[str, str]], key: str) -> Any:
    if isinstance(found, dict):
        return {name: _said(one, kinds, name) for name, one in found.items()}
    if isinstance(found, list):
        return [_said(one, kinds, key) for one in found]
    if isinstance(found, str) and key in kinds:
        return Template(found, None, kinds[key].get("about", ""), {})
    return found
