"""The size that the code may have: it grew fast, and what is added has to make room for itself.

The limits are what there was when they were set, and may only fall. Whoever needs more says why in the commit.
"""

from functools import cache

import pytest

from tests.source_code import ROOT
from tools import imports

PRODUCT = ("pages", "glassformer", "transformer")
SUFFIXES = {".py", ".pyi", ".js", ".css", ".ts", ".toml"}
EXTENSIONS = "glassformer/extensions/"
CODE = (".py", ".js", ".css", ".ts")  # of an extension; texts of lessons and cards are data


@cache
def files():
    """Path and number of lines of each file of the product."""
    found = [ROOT / "app.py", ROOT / "main.py"]
    found += [path for folder in PRODUCT for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return {path.relative_to(ROOT).as_posix(): path.read_bytes().count(b"\n") for path in found}


def is_kernel(path):
    """Whether a reader of any page may need it."""
    return not path.startswith(EXTENSIONS)


@pytest.mark.parametrize(
    ("name", "counts", "limit"), [("product", lambda path: True, 115_500), ("kernel", is_kernel, 53_300)]
)
def test_lines(name, counts, limit):
    lines = sum(n for path, n in files().items() if counts(path))
    assert lines <= limit, f"the {name} has {lines:,} lines; its budget is {limit:,}"


@pytest.mark.parametrize("name", sorted({path.split("/")[2] for path in files() if path.startswith(EXTENSIONS)}))
def test_lines_of_an_extension(name):
    lines = sum(n for path, n in files().items() if path.startswith(f"{EXTENSIONS}{name}/") and path.endswith(CODE))
    assert lines <= 6_500, f"{EXTENSIONS}{name} has {lines:,} lines; its budget is 6,500"


FOLDER = 1_500
LARGER = {}  # folders of pages that may have more, each with how much and why


@cache
def folders_of_pages():
    """Those of the kernel's pages, and all, of parts and of extensions, in which pictures are declared."""
    kernel = {f"glassformer/{path.stem}" for path in (ROOT / "pages").glob("*/*.py")}
    return sorted({path.rpartition("/")[0] for path in files() if path.endswith("_pictures.py")} | kernel)


@pytest.mark.parametrize("folder", folders_of_pages())
def test_lines_of_a_page(folder):
    """What stands in folders of it counts there."""
    there = {path: n for path, n in files().items() if path.endswith(".py") and path.rpartition("/")[0] == folder}
    limit, _ = LARGER.get(folder, (FOLDER, ""))
    assert sum(there.values()) <= limit, f"{folder} has {sum(there.values()):,} lines; its budget is {limit:,}"
    assert len(there) <= 18, f"{folder} has {len(there)} modules; its budget is 18"


def test_lines_that_the_formatter_leaves():
    skipped = sum((ROOT / path).read_text(encoding="utf-8").count("# fmt: skip") for path in files())
    assert skipped <= 287, f"{skipped} places are kept from the formatter; the budget is 287"


SCRIPTS = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sorted((ROOT / "pages").glob("*/*.py"))]
PARTS = sorted(name for name in imports.parts(imports.files()) if not imports.extension(name))
NEEDED = {"transformer": 1_000, **dict.fromkeys([*SCRIPTS, *PARTS], 18_000)}


@cache
def imported():
    """Every module with its file, and what each imports."""
    modules = imports.files()
    return modules, imports.graph(modules)


@pytest.mark.parametrize(("module", "limit"), NEEDED.items())
def test_lines_that_a_page_needs(module, limit):
    """What its script, or a part, reaches by imports but those for types (`python -m tools.imports`)."""
    modules, graph = imported()
    lines = sum(imports.lines(modules[one]) for one in imports.closure(module, graph))
    assert lines <= limit, f"{module} needs {lines:,} lines; its budget is {limit:,}"
