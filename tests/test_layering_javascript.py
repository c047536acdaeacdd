"""JavaScript of a component imports its own modules and common ones, is type-checked, and says words by `say`.

Files are read line by line; how long one and its functions may be, eslint says.
"""

import os
import re
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
UNSAID = {BARE: "is shown without say", COMPUTED: "calls say with something other than a literal"}
IMPORT = re.compile(r'\b(?:from|import) ?\(?"(\.[^"]+)"')


def scripts(root):
    """The path and the text of every JavaScript file that the rules are for."""
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.js")):
            if "node_modules" not in file.parts:
                yield file.relative_to(root), file.read_text(encoding="utf-8")


def complaints(root):
    """Of scripts whose types nobody checks, that import another component's modules or say words without `say`."""
    for path, text in scripts(root):
        if path.parts[0] != "tools" and text.split("\n", 1)[0] != "// @ts-check":
            yield f"{path} does not begin with // @ts-check"
        if path.parts[0] != "glassformer" or "components" not in path.parts:
            continue
        for found in IMPORT.finditer(text) if path.parent.name != "bundle" else ():
            folder = Path(os.path.normpath(path.parent / found[1])).parent
            if folder not in (path.parent, COMMON):
                yield f"{at(path, text, found)} imports {found[1]}; what components share belongs in common"
        seen = re.sub(r"\$\{[^}]*\}", "", text)
        for pattern, why in (
            (BARE, "is shown without say"),
            (COMPUTED, "calls say with something other than a literal"),
        ):
            for found in pattern.finditer(seen) if path.name != "i18n.js" else ():
                yield f"{at(path, seen, found)} {why}: {found[0].strip()}"


def at(path, text, found):
    return f"{path}:{text.count(chr(10), 0, found.start()) + 1}"


def test_this_repository_keeps_the_rules():
    assert len(list(scripts(ROOT))) > 40
    found = list(complaints(ROOT))
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
    assert [*complaints(tmp_path)] == ["glassformer/components/flow/a.js does not begin with // @ts-check"]
