"""Who may import whom, and how large the code may be: docs say it, this keeps it so.

The rules read source with `ast` only; nothing is imported. Each rule is also shown a tree that breaks it, as
a check that cannot fail checks nothing. What it does not see: imports whose name is computed at run time.
Limits of size are what there was when they were set, and may only fall. Whoever needs more says why in the commit.
"""

import ast
import re
import sys
from functools import cache

import pytest

from tests.source_code import ROOT, imports, of_library, sources
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


PAGES = {path.stem for path in (ROOT / "pages").glob("*/*.py")}
OF_THE_KERNEL = {("tests", name) for name in ("transformer", "glassformer", "pages")}
TYPES = ("streamlit.navigation.page", "streamlit.runtime.uploaded_file_manager")  # which alone are imported by name


def wrong_imports(source):
    """Imports of what is above or beside, of Streamlit where it is not known, and of extensions that are not needed."""
    part, path, module = source.part, source.path.as_posix(), _module(source)
    few = next((may for folder, may in FEW.items() if path.startswith(f"{folder}/")), None)
    library, page, own = part != "tests" and of_library(source.path), _page(module), extension(module)
    knows, apart = part != "glassformer" or path in IMPORT_STREAMLIT, part not in STREAMLIT_PARTS
    of_kernel, beside = source.path.parts[:2] in OF_THE_KERNEL, "what they share belongs"
    needs = {own, *_needs(ROOT / "glassformer" / "extensions" / own / "__init__.py")} if own else set()
    for found in imports(source):
        name, top, other, there = found.name, found.name.split(".")[0], extension(found.name), _page(found.name)
        streamlit = top == "streamlit"
        drawing = source.path.stem.endswith("_pictures") and name == "glassformer.shared.i18n.st"
        alone = few and top not in sys.stdlib_module_names and not any(f"{name}.".startswith(f"{x}.") for x in few)
        of_extension = f"{name}.".startswith(("glassformer.extensions.", "tests.extensions."))
        the_list = name in {"glassformer.extensions", "glassformer.extensions.NAMES"}
        deeper = name.startswith("streamlit.") and not name.startswith(TYPES)
        wrong = {
            f"{part} may not import {top}": top in PARTS - MAY_IMPORT.get(part, PARTS) - {part},
            f"a page may not import another page; {beside} in glassformer": part == top == "pages",
            f"a page may not import another page, {there}; {beside} below": page and there not in (page, ""),
            "only app.py, main.py, pages and glassformer may import streamlit": streamlit and apart,
            f"the library knows nothing of {top}": library and top in NOT_FOR_THE_LIBRARY,
            f"may import {', '.join(sorted(few or ()))} only, not {name}": alone,
            f"{own} may not import {other}, which its record does not need": own and other and other not in needs,
            "has Streamlit from glassformer.shared.i18n, if at all": not knows and (streamlit or drawing),
            f"imports {name}, which is private": part in MAY_IMPORT and deeper,
            f"a test of the kernel may not import {name}": of_kernel and of_extension and not the_list,
        }
        yield from (f"{path}:{found.line} {why}" for why, is_so in wrong.items() if is_so)


def _module(source):
    return ".".join(source.path.with_suffix("").parts).removesuffix(".__init__")


def _page(name):
    """The page whose folder a module is in."""
    parts = name.split(".")
    return parts[1] if parts[0] == "glassformer" and parts[1:2] and parts[1] in PAGES else ""


@cache
def _needs(record):
    """The extensions that a record names as needed; an error where there is no record."""
    nodes = ast.walk(ast.parse(record.read_text(encoding="utf-8")))
    words = (word for node in nodes if isinstance(node, ast.Call) for word in node.keywords)
    return [name for word in words if word.arg == "needs" for name in ast.literal_eval(word.value)]


def borrowed_from_torch(source):
    """Uses of torch's own Transformer inside the library."""
    if source.part != "transformer":
        return
    for found in imports(source):
        last = found.name.split(".")[-1]
        if found.name.startswith("torch.nn.") and (TORCHS_OWN.match(last) or last.lower() == "transformer"):
            yield f"{source.path}:{found.line} the model is from scratch, yet {found.name} is imported"
    for node in source.nodes:
        if isinstance(node, ast.Attribute):
            from_nn = node.attr == "Transformer" and ast.unparse(node.value).split(".")[-1] == "nn"
            if from_nn or TORCHS_OWN.match(node.attr):
                yield f"{source.path}:{node.lineno} the model is from scratch, yet {ast.unparse(node)} is used"


def too_long(source):
    """Files, pages and functions that have outgrown what can be taken in at once."""
    n_lines, limit = len(source.text.splitlines()), PAGE_LINES if source.part == "pages" else FILE_LINES
    if n_lines > limit:
        yield f"{source.path} has {n_lines} lines; {limit} are allowed"
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (n := _length(node)) > FUNCTION_LINES:
            found = f"{source.path}:{node.lineno} {node.name} has {n} lines"
            yield f"{found} without its docstring; {FUNCTION_LINES} are allowed"


def _length(function):
    """Lines of a function without its docstring."""
    parts = [function] if ast.get_docstring(function) is None else [function, function.body[0]]
    whole, *docstring = (part.end_lineno - part.lineno + 1 for part in parts)
    return whole - sum(docstring)


def complaints(root):
    rules = (wrong_imports, borrowed_from_torch, too_long)
    return [line for source in sources(root) for rule in rules for line in rule(source)]


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
    needs = {one.parent.name: frozenset(_needs(one)) for one in records}
    assert len(needs) > 8
    assert circles(needs) == []


def write(root, path, text):
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


@cache
def lengths():
    """Path and number of lines of each file of the product."""
    found = [ROOT / "app.py", ROOT / "main.py"]
    product = ("pages", "glassformer", "transformer")
    found += [path for folder in product for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return {path.relative_to(ROOT).as_posix(): path.read_bytes().count(b"\n") for path in found}


def test_the_product_its_kernel_and_each_extension_stay_within_their_budgets():
    kernel = sum(n for path, n in lengths().items() if not path.startswith(EXTENSIONS))
    assert sum(lengths().values()) <= 116_500
    assert kernel <= 51_000
    names = {path.split("/")[2] for path in lengths() if path.startswith(EXTENSIONS)}
    counted = {
        name: sum(n for path, n in lengths().items() if path.startswith(f"{EXTENSIONS}{name}/") and path.endswith(CODE))
        for name in names
    }
    assert {name: n for name, n in counted.items() if n > 6_200} == {}


def test_a_page_stays_within_its_budget():
    """Those of the kernel, and all, of parts and of extensions, in which pictures are declared; each folder counts."""
    folders_of_pages = {f"glassformer/{name}" for name in PAGES}
    folders_of_pages |= {path.rpartition("/")[0] for path in lengths() if path.endswith("_pictures.py")}
    for folder in sorted(folders_of_pages):
        there = [n for path, n in lengths().items() if path.endswith(".py") and path.rpartition("/")[0] == folder]
        assert sum(there) <= FOLDER, f"{folder} has {sum(there):,} lines; its budget is {FOLDER:,}"
        assert len(there) <= 18, f"{folder} has {len(there)} modules; its budget is 18"


def test_lines_that_the_formatter_leaves():
    skipped = sum((ROOT / path).read_text(encoding="utf-8").count("# fmt: skip") for path in lengths())
    assert skipped <= 268, f"{skipped} places are kept from the formatter; the budget is 268"


def test_what_a_page_or_a_part_needs_stays_within_its_budget():
    """What its script reaches by imports but those for types (`python -m tools.imports`)."""
    scripts = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "pages").glob("*/*.py")]
    modules = files()
    entries = [*scripts, *(name for name in parts(modules) if not extension(name))]
    for module, limit in {"transformer": 1_000, **dict.fromkeys(entries, 17_950)}.items():
        needed = sum(lines(modules[one]) for one in closure(module, imported()))
        assert needed <= limit, f"{module} needs {needed:,} lines; its budget is {limit:,}"
