"""Who may import whom, and how large the code may be: docs say it, this keeps it so.

The rules read source with `ast` only; nothing is imported. Each rule is also shown a tree that breaks it, as
a check that cannot fail checks nothing. What it does not see: imports whose name is computed at run time.
Limits of size are what there was when they were set, and may only fall. Whoever needs more says why in the commit.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.source_code import ROOT, Source, imports, of_library, sources
from tools.imports import arrows, circles, closure, extension, files, folders, graph, lines, parts

# Which packages of the repository a part may import, itself aside: pages -> glassformer -> transformer.
MAY_IMPORT = {
    "app": {"glassformer", "transformer"},
    "main": {"glassformer", "transformer"},
    "pages": {"glassformer", "transformer"},
    "glassformer": {"transformer"},
    "transformer": set(),
}
PARTS = {"app", "main", "pages", "glassformer", "transformer", "tools", "benchmarks", "tests"}
STREAMLIT_PARTS = {"app", "main", "pages", "glassformer", "tests", "benchmarks"}  # tests run it, benchmarks speak to it
# Folders that use a few libraries only: which, and which of our own packages.
FEW = {
    "glassformer/charts": {
        "numpy",
        "pandas",
        "plotly",
        "glassformer.charts",
        "transformer.extensions",
        "transformer.i18n",
    },
    "transformer/i18n": {"transformer.i18n"},
}
NOT_FOR_THE_LIBRARY = {"plotly", "streamlit"}
# Who imports Streamlit; all others of the app have it from `glassformer.shared.i18n`, in the session's language.
IMPORT_STREAMLIT = {
    "glassformer/components/custom_component.py",
    "glassformer/extensions/classroom/lesson.py",
    "glassformer/extensions/classroom/lesson_questions.py",
    "glassformer/extensions/classroom/predictions.py",
    "glassformer/extensions/rooms/room_session.py",
    "glassformer/extensions/uploads/session_uploads.py",
    "glassformer/server/streamlit_private.py",
    "glassformer/server/server_options.py",
    "glassformer/shared/i18n.py",
    "glassformer/shared/menu.py",
    "glassformer/shared/page_blocks.py",
    "glassformer/state/global_params.py",
    "glassformer/state/language.py",
    "glassformer/state/session.py",
}
# The model is written from scratch: none of torch's own Transformer.
TORCHS_OWN = re.compile(r"^(Transformer(Encoder|Decoder)(Layer)?|MultiheadAttention|multi_head_attention_forward)$")

FILE_LINES = 500
FUNCTION_LINES = 60
PAGE_LINES = 60


def wrong_layers(source: Source) -> Iterator[str]:
    """Imports of what is above, or beside."""
    path = source.path.as_posix()
    few = next((may for folder, may in FEW.items() if path.startswith(f"{folder}/")), None)
    library = source.part != "tests" and of_library(source.path)
    for found in imports(source):
        top = found.name.split(".")[0]
        where = f"{source.path}:{found.line}"
        if source.part in MAY_IMPORT and top in PARTS - MAY_IMPORT[source.part] - {source.part}:
            yield f"{where} {source.part} may not import {top}"
        if source.part == "pages" and top == "pages":
            yield f"{where} a page may not import another page; what they share belongs in glassformer"
        if top == "streamlit" and source.part not in STREAMLIT_PARTS:
            yield f"{where} only app.py, main.py, pages and glassformer may import streamlit"
        if library and top in NOT_FOR_THE_LIBRARY:
            yield f"{where} the library knows nothing of {top}"
        if few and top not in sys.stdlib_module_names and not any(f"{found.name}.".startswith(f"{x}.") for x in few):
            yield f"{where} may import {', '.join(sorted(few))} only, not {found.name}"
        if source.part == "glassformer" and (other := _page(found.name)) and _page(_module(source)) not in (other, ""):
            yield f"{where} a page may not import another page, {other}; what they share belongs below"


def _page(name: str) -> str:
    """The page whose folder a module is in."""
    parts = name.split(".")
    return parts[1] if parts[0] == "glassformer" and parts[1:2] and parts[1] in PAGES else ""


PAGES = {path.stem for path in (ROOT / "pages").glob("*/*.py")}


def wrong_needs(source: Source) -> Iterator[str]:
    """Imports of an extension that the record of the own one does not name."""
    own = extension(_module(source))
    if source.part != "glassformer" or not own:
        return
    needs = _needs((ROOT / "glassformer" / "extensions" / own / "__init__.py").read_text(encoding="utf-8"))
    for found in imports(source):
        other = extension(found.name)
        if other and other not in {own, *needs}:
            yield f"{source.path}:{found.line} {own} may not import {other}, which its record does not need"


def _needs(record: str) -> list[str]:
    """The extensions that a record names as needed."""
    words = (word for node in ast.walk(ast.parse(record)) if isinstance(node, ast.Call) for word in node.keywords)
    return [name for word in words if word.arg == "needs" for name in ast.literal_eval(word.value)]


def knows_streamlit(source: Source) -> Iterator[str]:
    """Imports of Streamlit in the app, but for few modules; a page's pictures know nothing of it, by no way."""
    if source.part != "glassformer" or source.path.as_posix() in IMPORT_STREAMLIT:
        return
    pictures = source.path.stem.endswith("_pictures")
    for found in imports(source):
        if found.name.split(".")[0] == "streamlit" or (pictures and found.name == "glassformer.shared.i18n.st"):
            yield f"{source.path}:{found.line} has Streamlit from glassformer.shared.i18n, if at all"


def private_of_streamlit(source: Source) -> Iterator[str]:
    """Imports of what is inside of Streamlit, but for types; `glassformer.server.streamlit_private` has it by name."""
    types = ("streamlit.navigation.page", "streamlit.runtime.uploaded_file_manager")
    for found in imports(source) if source.part in MAY_IMPORT else ():
        if found.name.startswith("streamlit.") and not found.name.startswith(types):
            yield f"{source.path}:{found.line} imports {found.name}, which is private"


def _module(source: Source) -> str:
    return ".".join(source.path.with_suffix("").parts).removesuffix(".__init__")


def borrowed_from_torch(source: Source) -> Iterator[str]:
    """Uses of torch's own Transformer inside the library."""
    if source.part != "transformer":
        return
    for found in imports(source):
        last = found.name.split(".")[-1]
        from_torch = found.name.startswith("torch.nn.") and (TORCHS_OWN.match(last) or last.lower() == "transformer")
        if from_torch:
            yield f"{source.path}:{found.line} the model is from scratch, yet {found.name} is imported"
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and _is_torchs(node):
            yield f"{source.path}:{node.lineno} the model is from scratch, yet {ast.unparse(node)} is used"


def _is_torchs(node: ast.Attribute) -> bool:
    base = ast.unparse(node.value).split(".")[-1]
    return bool(TORCHS_OWN.match(node.attr)) or (node.attr == "Transformer" and base == "nn")


def too_long(source: Source) -> Iterator[str]:
    """Files, pages and functions that have outgrown what can be taken in at once."""
    lines = len(source.text.splitlines())
    limit = PAGE_LINES if source.part == "pages" else FILE_LINES
    if lines > limit:
        yield f"{source.path} has {lines} lines; {limit} are allowed"
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _length(node) > FUNCTION_LINES:
            found = f"{source.path}:{node.lineno} {node.name} has {_length(node)} lines"
            yield f"{found} without its docstring; {FUNCTION_LINES} are allowed"


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    length = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function) is None:
        return length
    docstring = function.body[0]
    return length - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


def leans_on_an_extension(source: Source) -> Iterator[str]:
    """Imports of an extension, or of its tests, in a test of the kernel: it would go with the extension."""
    if source.path.parts[:2] not in {("tests", name) for name in ("transformer", "glassformer", "pages")}:
        return
    for found in imports(source):
        list_alone = found.name in {"glassformer.extensions", "glassformer.extensions.NAMES"}
        if f"{found.name}.".startswith(("glassformer.extensions.", "tests.extensions.")) and not list_alone:
            yield f"{source.path}:{found.line} a test of the kernel may not import {found.name}"


RULES = [
    *(wrong_layers, wrong_needs, knows_streamlit, private_of_streamlit, borrowed_from_torch, too_long),
    leans_on_an_extension,
]


def complaints(root: Path) -> list[str]:
    return [line for source in sources(root) for rule in RULES for line in rule(source)]


def test_this_repository_keeps_the_rules():
    assert {"glassformer", "transformer", "pages", "app", "main"} <= {source.part for source in sources(ROOT)}
    found = complaints(ROOT)
    assert not found, "\n".join(found)


@cache
def imported():
    """What each module imports, read once."""
    return graph(files())


def test_nothing_outside_the_extensions_imports_one():
    assert arrows(imported()) == []
    assert arrows(graph(files(), files(suffix=".pyi"))) == []


def sisters(imported, drawn):
    """Imports from the folder of a part into that of another part of the same page; `wrong_needs` has extensions."""
    package = {name: name.rpartition(".")[0] for name in imported}
    of_parts = {package[name] for name in drawn}
    for name, others in imported.items():
        for other in others if package[name] in of_parts else ():
            apart = package[other] != package[name] and package[other] in of_parts
            if apart and package[package[name]] == package[package[other]] and extension(name) == extension(other):
                yield name, other


def sister_pictures(imported, pages):
    """Imports from the pictures of a part into those of another in the same folder, but of those with the page."""
    for name, others in imported.items():
        for other in others - pages if name.endswith("_pictures") else ():
            if other.endswith("_pictures") and name.rpartition(".")[0] == other.rpartition(".")[0]:
                yield name, other


def test_a_part_of_a_page_knows_nothing_of_its_sisters():
    assert not list(sisters(imported(), parts(files())))
    pages = {name for name, file in files().items() if " = Page(" in file.read_text(encoding="utf-8")}
    assert not list(sister_pictures(imported(), pages))
    flat = {"a.lens_pictures": {"a.ffn_pictures", "a.tree_pictures"}, "a.panel": {"a.lens_pictures"}}
    assert list(sister_pictures(flat, {"a.tree_pictures"})) == [("a.lens_pictures", "a.ffn_pictures")]
    told = {"a.lens": {"a.lens.panel"}, "a.lens.panel": {"a.ffn.pictures"}, "a.ffn": set(), "a.ffn.pictures": set()}
    assert list(sisters(told, {"a.lens.panel", "a.ffn.pictures"})) == [("a.lens.panel", "a.ffn.pictures")]


def test_there_is_no_circle_of_modules_of_folders_or_of_extensions_that_need_each_other():
    assert circles(imported()) == []
    assert circles(folders(imported())) == []
    records = sorted((ROOT / "glassformer" / "extensions").glob("*/__init__.py"))
    needs = {one.parent.name: frozenset(_needs(one.read_text(encoding="utf-8"))) for one in records}
    assert len(needs) > 8
    assert circles(needs) == []


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("glassformer/charts/deep/er.py", "from ...state import view", "not glassformer.state"),
        ("glassformer/charts/heatmap.py", "import importlib\nimportlib.import_module('torch.nn')", "not torch"),
        ("glassformer/inside/model_panel.py", "from glassformer.attention import controls", "another page, attention"),
        ("glassformer/extensions/doctor/a.py", "from glassformer.extensions.rooms import b", "may not import rooms"),
        ("glassformer/extensions/doctor/library/a.py", "import plotly", "the library knows nothing of plotly"),
        ("glassformer/extensions/toolkits/a.py", "import streamlit", "the library knows nothing of streamlit"),
        ("glassformer/a.py", "import streamlit as st", "from glassformer.shared.i18n"),
        ("app.py", "from streamlit.web import server", "which is private"),
        ("pages/explore/step.py", "from . import attention", "another page"),
        ("transformer/trace.py", "import glassformer.charts", "may not import glassformer"),
        ("tools/serve.py", "import streamlit", "only app.py"),
        ("transformer/i18n/sentence.py", "from transformer.errors import shown", "not transformer.errors"),
        ("transformer/layers.py", "from torch.nn import MultiheadAttention as Attention", "from scratch"),
        ("transformer/layers.py", "def f(F, x):\n    return F.multi_head_attention_forward(x)", "from scratch"),
        ("transformer/long.py", "x = 1\n" * 501, "501 lines; 500"),
        ("glassformer/long.py", "class A:\n    async def f(self):\n" + "        x = 1\n" * 60, "f has 61 lines"),
        ("tests/glassformer/a/test_x.py", "import glassformer.extensions.maps", "a test of the kernel may not import"),
        ("tests/transformer/x.py", "def f():\n    from tests.extensions.maps import made", "of the kernel may not"),
    ],
)
def test_a_tree_that_breaks_a_rule_is_caught(tmp_path, path, text, expected):
    write(tmp_path, path, text)
    assert expected in "\n".join(complaints(tmp_path))


# ------------------------------------------------------------------------------------------------ how large

SUFFIXES = {".py", ".pyi", ".js", ".css", ".ts", ".toml"}
EXTENSIONS = "glassformer/extensions/"
CODE = (".py", ".js", ".css", ".ts")  # of an extension; texts of lessons and cards are data
FOLDER = 2_760  # a page with all its parts, since small parts have no folders of their own
# Folders of pages that may have more, each with how much and why.
LARGER = {"glassformer/attention": (2_940, "one part more, which compares attention with none of its parameters")}


@cache
def lengths():
    """Path and number of lines of each file of the product."""
    found = [ROOT / "app.py", ROOT / "main.py"]
    product = ("pages", "glassformer", "transformer")
    found += [path for folder in product for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return {path.relative_to(ROOT).as_posix(): path.read_bytes().count(b"\n") for path in found}


def test_the_product_its_kernel_and_each_extension_stay_within_their_budgets():
    kernel = sum(n for path, n in lengths().items() if not path.startswith(EXTENSIONS))
    assert sum(lengths().values()) <= 120_800
    assert kernel <= 53_300
    names = {path.split("/")[2] for path in lengths() if path.startswith(EXTENSIONS)}
    counted = {
        name: sum(n for path, n in lengths().items() if path.startswith(f"{EXTENSIONS}{name}/") and path.endswith(CODE))
        for name in names
    }
    assert {name: n for name, n in counted.items() if n > 6_500} == {}


def test_a_page_stays_within_its_budget():
    """Those of the kernel, and all, of parts and of extensions, in which pictures are declared; each folder counts."""
    folders_of_pages = {f"glassformer/{name}" for name in PAGES}
    folders_of_pages |= {path.rpartition("/")[0] for path in lengths() if path.endswith("_pictures.py")}
    for folder in sorted(folders_of_pages):
        there = [n for path, n in lengths().items() if path.endswith(".py") and path.rpartition("/")[0] == folder]
        limit, _ = LARGER.get(folder, (FOLDER, ""))
        assert sum(there) <= limit, f"{folder} has {sum(there):,} lines; its budget is {limit:,}"
        assert len(there) <= 18, f"{folder} has {len(there)} modules; its budget is 18"


def test_lines_that_the_formatter_leaves():
    skipped = sum((ROOT / path).read_text(encoding="utf-8").count("# fmt: skip") for path in lengths())
    assert skipped <= 287, f"{skipped} places are kept from the formatter; the budget is 287"


def test_what_a_page_or_a_part_needs_stays_within_its_budget():
    """What its script reaches by imports but those for types (`python -m tools.imports`)."""
    scripts = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "pages").glob("*/*.py")]
    modules = files()
    entries = [*scripts, *(name for name in parts(modules) if not extension(name))]
    for module, limit in {"transformer": 1_000, **dict.fromkeys(entries, 18_100)}.items():
        needed = sum(lines(modules[one]) for one in closure(module, imported()))
        assert needed <= limit, f"{module} needs {needed:,} lines; its budget is {limit:,}"
