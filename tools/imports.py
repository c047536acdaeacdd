"""What a module needs: the lines that its imports reach, arrows from the kernel to extensions, and circles.

    python -m tools.imports                      # every page's script, every part of a page, `import transformer`;
                                                 # then what is wrong
    python -m tools.imports pages.explore.masks  # the modules that one needs as well, the longest first

Read with `ast` alone: every import counts, wherever it stands, but those for types. What is imported by a name that a
program puts together at run time, as extensions are, is not followed; parts of pages are named by their `PartEntry`.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS, SCRIPTS = ("pages", "glassformer", "transformer"), ("app", "main")
EXTENSIONS = "glassformer.extensions."
Graph = Mapping[str, frozenset[str]]


def files(root: Path = ROOT, suffix: str = ".py") -> dict[str, Path]:
    """Every module of the product by its name; with the suffix ".pyi" their stubs."""
    found = [root / f"{name}{suffix}" for name in SCRIPTS]
    found += [file for folder in FOLDERS for file in sorted((root / folder).rglob(f"*{suffix}"))]
    return {
        ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): file
        for file in found
        if file.is_file()
    }


@cache
def lines(file: Path) -> int:
    """How long a file is."""
    return len(file.read_text(encoding="utf-8").splitlines())


def graph(modules: Mapping[str, Path], stubs: Mapping[str, Path] | None = None) -> dict[str, frozenset[str]]:
    """What each module imports of the product; with stubs, what each of those does."""
    read = modules if stubs is None else stubs
    return {name: frozenset(_imported(name, file, modules)) - {name} for name, file in read.items()}


def _imported(name: str, file: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    package = name if file.stem == "__init__" else name.rpartition(".")[0]
    for node in _statements(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in modules)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            found = (full if (full := f"{base}.{one.name}") in modules else base for one in node.names)
            yield from (one for one in found if one in modules)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements but what is for types."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):  # most nodes, and none of them holds a statement
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield other
                yield from _statements(other)
        else:
            yield child
            yield from _statements(child)


def closure(name: str, imported: Graph) -> set[str]:
    """A module, all that it imports, and the packages that are imported on the way."""
    seen: set[str] = set()
    left = [name]
    while left:
        one = left.pop()
        if one and one not in seen:
            left += [*imported.get(one, ()), one.rpartition(".")[0]]
            seen.add(one)
    return seen & imported.keys()


def parts(modules: Mapping[str, Path]) -> set[str]:
    """The modules that draw parts of pages, which are imported when they draw."""
    found: set[str] = set()
    for text in (file.read_text(encoding="utf-8") for file in modules.values()):
        for call in ast.walk(ast.parse(text)) if "PartEntry(" in text else ():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "PartEntry":
                given = [*call.args, *(one.value for one in call.keywords)]
                words = (str(one.value) for one in given if isinstance(one, ast.Constant))
                found |= {word.partition(":")[0] for word in words if ":" in word}
    return found & modules.keys()


def entries(modules: Mapping[str, Path]) -> list[str]:
    """What a reader begins at: scripts, parts of pages, and the library."""
    drawn, scripts = parts(modules), (*SCRIPTS, "pages")

    def begins(name: str) -> bool:
        return name == "transformer" or name.split(".")[0] in scripts or ".pages." in name or name in drawn

    return [name for name in modules if begins(name)]


def extension(name: str) -> str:
    """The extension that a module belongs to; empty for the kernel."""
    return name.removeprefix(EXTENSIONS).split(".")[0] if name.startswith(EXTENSIONS) else ""


def arrows(imported: Graph) -> list[tuple[str, str]]:
    """Imports from the kernel to an extension."""
    return [(a, b) for a in imported if not extension(a) for b in sorted(imported[a]) if extension(b)]


def circles(imported: Graph) -> list[list[str]]:
    """Groups of names that reach each other."""
    reached = {name: _reached(name, imported) for name in imported}
    groups = {tuple(sorted(b for b in reached[a] if a in reached[b])) for a in imported}
    return sorted(list(group) for group in groups if len(group) > 1)


def _reached(name: str, imported: Graph) -> set[str]:
    seen = {name}
    left = list(imported[name])
    while left:
        one = left.pop()
        if one not in seen:
            seen.add(one)
            left += imported[one]
    return seen


def folders(imported: Graph) -> dict[str, frozenset[str]]:
    """The graph of folders; a module that is beside folders is one by itself."""
    packages = {name.rpartition(".")[0] for name in imported}
    mixed = {name.rpartition(".")[0] for name in imported if name in packages}  # folders that hold folders

    def unit(name: str) -> str:
        if name in packages:
            return f"{name}.__init__" if name in mixed else name
        folder = name.rpartition(".")[0]
        return name if folder in mixed or not folder else folder

    joined: dict[str, set[str]] = {}
    for name, others in imported.items():
        joined.setdefault(unit(name), set()).update(unit(other) for other in others)
    return {name: frozenset(others - {name}) for name, others in joined.items()}


def main(names: Iterable[str] = ()) -> int:
    """Print it; 1 if something is wrong."""
    modules = files()
    imported = graph(modules)
    for name in names:
        for one in sorted(closure(name, imported), key=lambda one: -lines(modules[one])):
            print(f"{lines(modules[one]):6,}  {one}")
    for name in entries(modules):
        needed = closure(name, imported)
        print(f"{sum(lines(modules[one]) for one in needed):7,} lines in {len(needed):3} modules: {name}")
    stubs = graph(modules, files(suffix=".pyi"))
    wrong = [f"{a} imports {b}" for a, b in arrows(imported) + arrows(stubs)]
    wrong += [f"circle: {', '.join(group)}" for group in circles(imported) + circles(folders(imported))]
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="MODULE")
    raise SystemExit(main(parser.parse_args().names))
