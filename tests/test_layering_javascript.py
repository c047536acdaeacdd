"""JavaScript of a component imports its own modules and common ones, is type-checked, and says words by `say`.

Files are read line by line; how long one and its functions may be, eslint says.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.source_code import ROOT
from tests.test_layering import write

FOLDERS = ("glassformer", "tools", "tests")
COMMON = Path("glassformer/components/common")
BARE = re.compile(
    r'(?:\b(?:textContent|title) = |"(?:aria-label|aria-valuetext|title)"[,:] |\b(?:title|placeholder): '
    r'|make(?:Button)?\("[^"]*", "[^"]*", )'
    r'["`][^"`]*[A-Za-z]{2}[^"`]*["`]'
)
COMPUTED = re.compile(r"\bsay(?:N|Nodes)?\((?!\s*\")[^)]*\)")
IMPORT = re.compile(r'\b(?:from|import) ?\(?"(\.[^"]+)"')


@dataclass(frozen=True)
class Script:
    """One JavaScript file."""

    path: Path
    lines: list[str]


def scripts(root: Path) -> list[Script]:
    """Every JavaScript file that the rules are for."""
    found = [file.relative_to(root) for folder in FOLDERS for file in sorted((root / folder).rglob("*.js"))]
    ours = [path for path in found if "node_modules" not in path.parts]
    return [Script(path, (root / path).read_text(encoding="utf-8").splitlines()) for path in ours]


def is_ours(script: Script) -> bool:
    """Whether it is of a component of the app or of an extension."""
    return script.path.parts[0] == "glassformer" and "components" in script.path.parts


def unchecked(script: Script) -> Iterator[str]:
    """Files whose types nobody checks."""
    if script.path.parts[0] != "tools" and script.lines[:1] != ["// @ts-check"]:
        yield f"{script.path} does not begin with // @ts-check"


def wrong_neighbours(script: Script) -> Iterator[str]:
    """Imports of one component's modules by another; a saved run is made of several."""
    if not is_ours(script) or script.path.parent.name == "bundle":
        return
    for number, line in enumerate(script.lines, start=1):
        for path in IMPORT.findall(line):
            folder = Path(os.path.normpath(script.path.parent / path)).parent
            if folder not in (script.path.parent, COMMON):
                yield f"{script.path}:{number} imports {path}; what components share belongs in common"


def unsaid(script: Script) -> Iterator[str]:
    """Words that a reader sees and no translation can: beside `say`, or put together before it is called."""
    if not is_ours(script) or script.path.name == "i18n.js":
        return
    text = re.sub(r"\$\{[^}]*\}", "", "\n".join(script.lines))
    for pattern, why in ((BARE, "is shown without say"), (COMPUTED, "calls say with something other than a literal")):
        for found in pattern.finditer(text):
            yield f"{script.path}:{text.count(chr(10), 0, found.start()) + 1} {why}: {found[0].strip()}"


RULES = [unchecked, wrong_neighbours, unsaid]


def complaints(root: Path) -> list[str]:
    return [line for script in scripts(root) for rule in RULES for line in rule(script)]


def test_this_repository_keeps_the_rules():
    assert len(scripts(ROOT)) > 40
    found = complaints(ROOT)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('import {\n  x,\n} from "../plotly/grid.js";\n', "belongs in common"),
        ('const x = import("../plotly/grid.js");\n', "belongs in common"),
        ('button.title = "Close it";\n', "without say"),
        ('make("p", "gf-x", "", { role: "img", "aria-label": "Heads" });\n', "without say"),
        ('x.append(make("span", "gf-x", "Heads"));\n', "without say"),
        ('x.title = say(\n  open ? "Close" : "Open");\n', "other than a literal"),
    ],
)
def test_a_file_that_breaks_a_rule_is_caught(tmp_path, text, expected):
    write(tmp_path, "glassformer/components/flow/a.js", f"// @ts-check\n{text}")
    assert expected in "\n".join(complaints(tmp_path))


def test_a_file_without_types_is_caught(tmp_path):
    write(tmp_path, "glassformer/components/flow/a.js", "f();\n")
    assert complaints(tmp_path) == ["glassformer/components/flow/a.js does not begin with // @ts-check"]
