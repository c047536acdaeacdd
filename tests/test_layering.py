"""Who may import whom, and how long a file may be: docs say it, this keeps it so.

The rules read source with `ast` only; nothing is imported. Each rule is also shown a tree that breaks it, as
a check that cannot fail checks nothing. What it does not see: imports whose name is computed at run time.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source_code import ROOT, Source, imports, sources
from tools.imports import arrows, circles, extension, files, folders, graph, parts

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
    "glassformer/components/element.py",
    "glassformer/extensions/classroom/cover_state.py",
    "glassformer/extensions/classroom/lesson.py",
    "glassformer/extensions/classroom/lessons/lesson_questions.py",
    "glassformer/extensions/classroom/lessons/answer_storage.py",
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
    library = source.part == "transformer" or "library" in source.path.parts
    for found in imports(source):
        top = found.name.split(".")[0]
        where = f"{source.path}:{found.line}"
        if source.part in MAY_IMPORT and top in PARTS - MAY_IMPORT[source.part] - {source.part}:
            yield f"{where} {source.part} may not import {top}"
        if source.part == "pages" and top == "pages":
            yield f"{where} a page may not import another page; what they share belongs in glassformer"
        if top == "streamlit" and source.part not in STREAMLIT_PARTS:
            yield f"{where} only app.py, main.py, pages and glassformer may import streamlit"
        if library and top in NOT_FOR_THE_LIBRARY and source.part != "tests":
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
    for node in ast.walk(source.tree):
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
    for node in ast.walk(source.tree):
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


RULES = [wrong_layers, wrong_needs, knows_streamlit, borrowed_from_torch, too_long, leans_on_an_extension]


def complaints(root: Path) -> list[str]:
    return [line for source in sources(root) for rule in RULES for line in rule(source)]


def test_there_is_something_to_check():
    assert {"glassformer", "transformer", "pages", "app", "main"} <= {source.part for source in sources(ROOT)}


@pytest.mark.parametrize("rule", RULES)
def test_this_repository_keeps_the_rule(rule):
    found = [line for source in sources(ROOT) for line in rule(source)]
    assert not found, "\n".join(found)


def test_nothing_outside_the_extensions_imports_one():
    modules = files()
    assert arrows(graph(modules)) == []
    assert arrows(graph(modules, files(suffix=".pyi"))) == []


def sisters(imported, drawn):
    """Imports from the folder of a part into that of another part of the same page."""
    package = {name: name.rpartition(".")[0] for name in imported}
    of_parts = {package[name] for name in drawn}
    for name, others in imported.items():
        for other in others if package[name] in of_parts else ():
            apart = package[other] != package[name] and package[other] in of_parts
            if apart and package[package[name]] == package[package[other]]:
                yield name, other


def test_a_part_of_a_page_knows_nothing_of_its_sisters():
    assert not list(sisters(graph(files()), parts(files())))
    told = {"a.lens": {"a.lens.panel"}, "a.lens.panel": {"a.ffn.pictures"}, "a.ffn": set(), "a.ffn.pictures": set()}
    assert list(sisters(told, {"a.lens.panel", "a.ffn.pictures"})) == [("a.lens.panel", "a.ffn.pictures")]


def test_there_is_no_circle_of_modules_or_of_folders():
    imported = graph(files())
    assert circles(imported) == []
    assert circles(folders(imported)) == []


def test_extensions_that_need_each_other_make_no_circle():
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
        ("glassformer/charts/heatmap.py", "import torch", "not torch"),
        ("glassformer/charts/heatmap.py", "from streamlit import cache_data", "streamlit"),
        ("glassformer/charts/heatmap.py", "def f():\n    from transformer.runs import trace", "not transformer.runs"),
        ("glassformer/charts/heatmap.py", "if TYPE_CHECKING:\n    import glassformer.state", "not glassformer.state"),
        ("glassformer/charts/deep/er.py", "from ...state import view", "not glassformer.state"),
        ("glassformer/charts/heatmap.py", "import importlib\nimportlib.import_module('torch.nn')", "not torch"),
        ("glassformer/panels.py", "import pages.explore.step", "may not import pages"),
        ("glassformer/panels.py", "import app", "may not import app"),
        ("glassformer/panels.py", "import main", "may not import main"),
        ("glassformer/inside/model_panel.py", "from glassformer.attention import controls", "another page, attention"),
        (
            "glassformer/extensions/doctor/page/a.py",
            "from glassformer.extensions.rooms import b",
            "may not import rooms",
        ),
        ("glassformer/extensions/doctor/library/a.py", "import plotly", "the library knows nothing of plotly"),
        ("glassformer/a.py", "import streamlit as st", "from glassformer.shared.i18n"),
        ("glassformer/a/a_pictures.py", "from glassformer.shared.i18n import st", "from glassformer.shared.i18n"),
        ("main.py", "from tools import serve", "may not import tools"),
        ("glassformer/panels.py", "from tests.browser import helpers", "may not import tests"),
        ("pages/explore/step.py", "from pages.explore import attention", "another page"),
        ("pages/explore/step.py", "from . import attention", "another page"),
        ("transformer/trace.py", "import glassformer.charts", "may not import glassformer"),
        ("transformer/trace.py", "import plotly.graph_objects as go", "knows nothing of plotly"),
        ("transformer/trace.py", "import streamlit as st", "only app.py"),
        ("tools/serve.py", "import streamlit", "only app.py"),
        ("transformer/i18n/sentence.py", "from transformer.errors import shown", "not transformer.errors"),
        ("transformer/i18n/sentence.py", "import babel.messages", "not babel"),
        ("transformer/layers.py", "from torch import nn\nx = nn.TransformerEncoderLayer", "from scratch"),
        ("transformer/layers.py", "import torch\nx = torch.nn.Transformer(512)", "from scratch"),
        ("transformer/layers.py", "from torch.nn import MultiheadAttention as Attention", "from scratch"),
        ("transformer/layers.py", "import torch.nn.modules.transformer", "from scratch"),
        ("transformer/layers.py", "def f(F, x):\n    return F.multi_head_attention_forward(x)", "from scratch"),
        ("transformer/long.py", "x = 1\n" * 501, "501 lines; 500"),
        ("pages/explore/step.py", "x = 1\n" * 61, "61 lines; 60"),
        ("glassformer/long.py", "class A:\n    def f(self):\n" + "        x = 1\n" * 60, "f has 61 lines"),
        (
            "tests/pages/test_x.py",
            "from glassformer.extensions.doctor import page",
            "test of the kernel may not import",
        ),
        ("tests/glassformer/a/test_x.py", "import glassformer.extensions.maps", "a test of the kernel may not import"),
        ("tests/transformer/x.py", "def f():\n    from tests.extensions.maps import made", "of the kernel may not"),
        ("tests/test_long.py", "async def f():\n" + "    x = 1\n" * 60, "f has 61 lines"),
    ],
)
def test_a_tree_that_breaks_a_rule_is_caught(tmp_path, path, text, expected):
    write(tmp_path, path, text)
    found = complaints(tmp_path)
    assert len(found) >= 1
    assert expected in "\n".join(found)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("app.py", "import streamlit as st\nfrom glassformer import state"),
        ("main.py", "import streamlit as st\nfrom glassformer import style"),
        ("pages/explore/step.py", "import streamlit\nfrom glassformer import x\nimport transformer.trace"),
        ("glassformer/inside/model_panel.py", "from glassformer.inside import costs\nfrom glassformer.runs import a"),
        ("glassformer/extensions/doctor/page/a.py", "import pandas\nfrom glassformer.extensions.doctor import b"),
        ("glassformer/charts/heatmap.py", "import math\nimport numpy\nimport plotly.express\nfrom . import theme"),
        ("transformer/errors.py", "from transformer.i18n import say"),
        ("glassformer/charts/bars.py", "from transformer.i18n import say"),
        ("transformer/i18n/sentence.py", "import gettext\nfrom transformer.i18n.catalogue import languages"),
        (
            "transformer/model.py",
            "import torch\nclass Transformer:\n    pass\nfrom transformer.config import ModelConfig",
        ),
        ("tests/transformer/test_x.py", "import torch.nn as nn\nx = nn.Transformer\nimport streamlit"),
        ("tests/transformer/test_x.py", "from glassformer.extensions import NAMES\nimport tests.transformer.tiny"),
        ("tests/extensions/maps/test_x.py", "from glassformer.extensions.maps import card"),
        ("tests/test_checkpoints.py", "from glassformer.extensions.doctor import library"),
        ("transformer/long.py", "x = 1\n" * 500),
        ("pages/explore/step.py", "x = 1\n" * 60),
        ("glassformer/long.py", 'def f():\n    """One.\n' + "\n" * 40 + '    """\n' + "    x = 1\n" * 59),
    ],
)
def test_a_tree_that_keeps_the_rules_passes(tmp_path, path, text):
    write(tmp_path, path, text)
    assert sources(tmp_path)
    assert complaints(tmp_path) == []
