"""The register of promises, `tests/PROMISES.md`, made of the first lines of all test modules.

    python -m tests.promises

Each promise is kept by tests of one layer; who adds one looks here first whether it is kept already.
"""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path
from textwrap import fill

from tests.source_code import of_library

ROOT = Path(__file__).resolve().parent
FILE = ROOT / "PROMISES.md"
LONGEST = 130  # characters of a promise
LAYERS = {
    "library": "without Streamlit",
    "app": "without a browser",
    "page": "a page's script, without a browser",
    "browser": "in a browser",
    "whole": "the repository as a whole",
}
HEAD = (
    "# What the tests promise\n\nWritten by `python -m tests.promises` from the first line of each test module; a test "
    "keeps it as it is. A promise is tested in one layer: {layers}. What pages tell their readers is kept by the "
    "`transcripts/` beside the tests of pages.\n"
)
ABOUT_ALL = ("tools", "benchmarks", "deploy")  # folders of tests of the repository
FLAT = ("browser", "pages", *ABOUT_ALL)  # folders that are one area, whatever is below


def modules():
    """Every test module, in the order of its path."""
    return sorted(ROOT.rglob("test_*.py"))


@cache
def promise(module):
    """The first line of a module's docstring."""
    said = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return said.partition("\n")[0].strip()


def layer(folders, module):
    """Where a module's tests are run."""
    if not folders or folders[0] in ABOUT_ALL:
        return "whole"
    if "browser" in folders:
        return "browser"
    if {"pages", "page"} & {*folders}:
        return "page"
    return "library" if of_library(module) else "app"


def register():
    """The text of `PROMISES.md`: by the library's and the app's folders, and by extension."""
    by_area = defaultdict(list)
    for path in modules():
        module = path.relative_to(ROOT)
        folders = module.parts[:-1]
        area = "/".join(folders[: 1 if folders and folders[0] in FLAT else 2]) or "The repository"
        by_area[area].append(f"| {promise(path)} | {layer(folders, module)} | `{module.as_posix()}` |")
    layers = ", ".join(f"{name} ({about})" for name, about in LAYERS.items())
    parts = ["\n".join(fill(part, 120) for part in HEAD.format(layers=layers).splitlines())]
    for name, rows in sorted(by_area.items()):
        parts += [f"\n## {name}\n", "| Promise | Layer | Tests |", "|---|---|---|", *rows]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    FILE.write_text(register(), encoding="utf-8")
