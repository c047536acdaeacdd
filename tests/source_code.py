"""The repository's own Python, parsed: what the tests about its structure read.

Source is read with `ast` only; nothing is imported. What it does not see: imports whose name is computed at run time.
"""

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARY_ALONE = {"huggingface", "toolkits", "weight_files"}  # extensions that draw nothing
FOLDERS = ("pages", "glassformer", "transformer", "tools", "benchmarks", "tests")
SCRIPTS = ("app", "main")


@dataclass(frozen=True)
class Import:
    """One imported module, as a full dotted name, and where."""

    name: str
    line: int


@dataclass(frozen=True, eq=False)
class Source:
    """One Python file: its path in the repository and its text, parsed when it is asked for."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        tree = ast.parse(self.text, str(self.path))
        gc.freeze()  # a million nodes stay until the end; see tests/conftest.py
        return tree

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree: each rule goes through them."""
        return tuple(ast.walk(self.tree))

    @property
    def part(self) -> str:
        return self.path.parts[0].removesuffix(".py")

    @property
    def package(self) -> list[str]:
        return list(self.path.parent.parts)


def of_library(path: Path) -> bool:
    """Whether a module, or a test of it, is of the library or of what an extension adds to it."""
    return bool({"transformer", "library"} & {*path.parts}) or any(
        pair[0] == "extensions" and pair[1] in LIBRARY_ALONE for pair in pairwise(path.parts)
    )


def sources(root: Path) -> list[Source]:
    """Every Python file that the rules are for; those of this repository are read once a run."""
    return _repository() if root == ROOT else _read(root)


def _read(root: Path) -> list[Source]:
    files = [path for path in (root / f"{name}.py" for name in SCRIPTS) if path.exists()]
    files += [file for folder in FOLDERS for file in sorted((root / folder).rglob("*.py"))]
    return [Source(file.relative_to(root), file.read_text(encoding="utf-8")) for file in files]


@cache
def _repository() -> list[Source]:
    return _read(ROOT)


@cache
def imports(source: Source) -> tuple[Import, ...]:
    """Every import of a file, wherever it stands, with relative names resolved."""
    return tuple(_imports(source))


def _imports(source: Source) -> Iterator[Import]:
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(source, node)
            # `from a import b` may import the module a.b, so the longer name is what is judged.
            yield from (Import(f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node) in ("__import__", "import_module"):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield Import(first.value, node.lineno)


def _absolute(source: Source, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = source.package[: len(source.package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
