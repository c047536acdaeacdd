"""Who may import whom, and how long a file may be: docs say it, this keeps it so.

The rules read source with `ast` only; nothing is imported. Each rule is also shown a tree that breaks it, as
a check that cannot fail checks nothing. What it does not see: imports whose name is computed at run time.
"""

import ast
import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from tests.source_code import FOLDERS, ROOT, SCRIPTS, Source, imports, sources

# Which parts of the repository a part may import, itself aside. pages -> ui -> charts, transformer -> words.
MAY_IMPORT = {
    "app": {"ui", "charts", "transformer", "words"},
    "main": {"ui", "charts", "transformer", "words"},
    "pages": {"ui", "charts", "transformer", "words"},
    "ui": {"charts", "transformer", "words"},
    "charts": {"words"},
    "transformer": {"words"},
    "words": set(),
}
PARTS = {*SCRIPTS, *FOLDERS}
STREAMLIT_PARTS = {*SCRIPTS, "pages", "ui", "tests", "benchmarks"}  # tests run it, benchmarks speak to it
CHARTS_LIBRARIES = {"numpy", "pandas", "plotly"}
NOT_FOR_TRANSFORMER = {"plotly", "streamlit"}
# The floors of the two large parts, from the ground up: a folder imports its own floor's modules and those below.
# What stands in one row are pages, or their like: none of them imports another. What two share belongs below.
FLOORS: dict[str, tuple[tuple[str, ...], ...]] = {
    "transformer": (
        ("errors",), ("confined",), ("files",), ("text",), ("model",), ("tap",), ("runs",), ("maps",),
        ("checkpoint",), ("analysis",), ("trying",), ("importers", "training"), ("corpus",), ("doctor",),
        ("lessons",),
        ("__init__",), ("commands",), ("__main__",),
    ),
    "ui": (
        ("server",), ("state",), ("components",), ("shared",), ("inbox",), ("runs",), ("maps",), ("room",),
        ("lessons",), ("frame",),
        (
            "start", "step", "attention", "positions", "masks", "inside", "forcing", "search", "matters", "compare",
            "wrong", "checkpoints", "training", "open", "doctor", "sentences", "glossary", "corpus",
        ),
        ("teaching",),  # prints what pages show
        ("notebook",),  # shows it without the app
    ),
}  # fmt: skip
KNOWS_NOTHING = "Knows nothing of Streamlit"
# The model is written from scratch: none of torch's own Transformer.
TORCHS_OWN = re.compile(r"^(Transformer(Encoder|Decoder)(Layer)?|MultiheadAttention|multi_head_attention_forward)$")

FILE_LINES = 500
FUNCTION_LINES = 60
PAGE_LINES = 60


def wrong_layers(source: Source) -> Iterator[str]:
    """Imports that go up or sideways."""
    for found in imports(source):
        top, *rest = found.name.split(".")
        where = f"{source.path}:{found.line}"
        if found.name.startswith("transformer.extensions"):  # whoever can be extended asks which there are
            continue
        if source.part in MAY_IMPORT and top in PARTS - MAY_IMPORT[source.part] - {source.part}:
            yield f"{where} {source.part} may not import {top}"
        if source.part == "pages" and top == "pages":
            yield f"{where} a page may not import another page; what they share belongs in ui"
        if top == "streamlit" and source.part not in STREAMLIT_PARTS:
            yield f"{where} only app.py, main.py, pages and ui may import streamlit"
        if source.part == "transformer" and top in NOT_FOR_TRANSFORMER:
            yield f"{where} transformer knows nothing of {top}"
        if source.part == "charts" and top not in CHARTS_LIBRARIES | {"charts", "words"} | sys.stdlib_module_names:
            yield f"{where} charts may import numpy, pandas and plotly, not {top}"
        if source.part == "words" and top not in {"words"} | sys.stdlib_module_names:
            yield f"{where} words may import the standard library only, not {top}"
        if source.part == top and top in FLOORS and rest:
            yield from _wrong_floor(source, rest[0], where)


def _wrong_floor(source: Source, imported: str, where: str) -> Iterator[str]:
    """An import of a folder that stands above, or beside."""
    floor = {name: place for place, names in enumerate(FLOORS[source.part]) for name in names}
    own = source.path.parts[1].removesuffix(".py")
    if own not in floor:
        yield f"{where} {source.part}/{own} has no floor yet; give it one in FLOORS"
    elif imported in floor and imported != own and floor[imported] >= floor[own]:
        yield f"{where} {source.part}/{own} may not import {source.part}/{imported}, which does not stand below it"


def knows_streamlit(source: Source) -> Iterator[str]:
    """Imports of Streamlit in a module that says it knows nothing of it."""
    if KNOWS_NOTHING not in (ast.get_docstring(source.tree) or ""):
        return
    for found in imports(source):
        if found.name.split(".")[0] == "streamlit":
            yield f"{source.path}:{found.line} says it knows nothing of Streamlit, and imports it"


def circles(found: list[Source]) -> list[tuple[str, ...]]:
    """Modules of the library that import each other in a circle, wherever the imports stand."""
    names = {_module(source): source for source in found if source.part == "transformer"}
    imported = {name: {_known(i.name, names) for i in imports(source)} - {name, ""} for name, source in names.items()}
    reached = {name: _reached(name, imported) for name in names}
    return sorted(
        {tuple(sorted(b for b in names if b in reached[name] and name in reached[b])) for name in names} - {()}
    )


def _module(source: Source) -> str:
    return ".".join(source.path.with_suffix("").parts).removesuffix(".__init__")


def _known(name: str, names: Collection[str]) -> str:
    """The module that an imported name is, or is of; empty for those of others."""
    return name if name in names else name.rpartition(".")[0] if name.rpartition(".")[0] in names else ""


def _reached(name: str, imported: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    ahead = list(imported[name])
    while ahead:
        here = ahead.pop()
        if here not in seen:
            seen.add(here)
            ahead += imported[here]
    return seen


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


RULES = [wrong_layers, knows_streamlit, borrowed_from_torch, too_long]


def complaints(root: Path) -> list[str]:
    return [line for source in sources(root) for rule in RULES for line in rule(source)]


def test_there_is_something_to_check():
    assert {"charts", "transformer", "words", "ui", "pages", "app", "main"} <= {
        source.part for source in sources(ROOT)
    }


@pytest.mark.parametrize("rule", RULES)
def test_this_repository_keeps_the_rule(rule):
    found = [line for source in sources(ROOT) for line in rule(source)]
    assert not found, "\n".join(found)


def test_the_library_has_no_circle():
    assert circles(sources(ROOT)) == []


def test_a_circle_is_caught(tmp_path):
    write(tmp_path, "transformer/a/one.py", "from transformer.b import two")
    write(tmp_path, "transformer/b/two.py", "def f():\n    from transformer.c.three import x")
    write(tmp_path, "transformer/c/three.py", "if TYPE_CHECKING:\n    from transformer.a.one import y")
    write(tmp_path, "transformer/d.py", "import transformer.a.one")
    assert circles(sources(tmp_path)) == [("transformer.a.one", "transformer.b.two", "transformer.c.three")]


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("glassformer/charts/heatmap.py", "import torch", "not torch"),
        ("glassformer/charts/heatmap.py", "from streamlit import cache_data", "streamlit"),
        (
            "glassformer/charts/heatmap.py",
            "def f():\n    from transformer.trace import Trace",
            "may not import transformer",
        ),
        (
            "glassformer/charts/heatmap.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import glassformer.state",
            "import ui",
        ),
        ("charts/deep/er.py", "from ...ui import state", "may not import ui"),
        ("glassformer/charts/heatmap.py", "import importlib\nimportlib.import_module('torch.nn')", "not torch"),
        ("ui/panels.py", "import pages.explore.step", "may not import pages"),
        ("ui/panels.py", "import app", "may not import app"),
        ("ui/panels.py", "import main", "may not import main"),
        (
            "glassformer/inside/model_panel.py",
            "from glassformer.attention import controls",
            "glassformer/inside may not import glassformer/attention",
        ),
        (
            "glassformer/runs/sides.py",
            "from glassformer.step.step_panels import cross_map",
            "glassformer/runs may not import glassformer/step",
        ),
        (
            "glassformer/frame/sidebar.py",
            "from glassformer.glossary import listing",
            "glassformer/frame may not import glassformer/glossary",
        ),
        ("ui/new/one.py", "from glassformer.state import view", "ui/new has no floor yet"),
        ("ui/words.py", '"""Words.\n\nKnows nothing of Streamlit.\n"""\nimport streamlit as st', "knows nothing of"),
        ("main.py", "from tools import serve", "may not import tools"),
        ("ui/panels.py", "from tests.browser import helpers", "may not import tests"),
        ("pages/explore/step.py", "from pages.explore import attention", "another page"),
        ("pages/explore/step.py", "from . import attention", "another page"),
        ("transformer/trace.py", "import glassformer.charts.heatmap", "may not import charts"),
        ("transformer/trace.py", "import plotly.graph_objects as go", "knows nothing of plotly"),
        ("transformer/trace.py", "import streamlit as st", "only app.py"),
        ("tools/serve.py", "import streamlit", "only app.py"),
        ("transformer/i18n/sentence.py", "from glassformer.charts.theme import literal", "may not import charts"),
        ("transformer/i18n/sentence.py", "import babel.messages", "not babel"),
        ("transformer/model.py", "from transformer.analysis.rollout import rollout", "not stand below it"),
        ("transformer/model/order.py", "from transformer import training", "not stand below it"),
        ("transformer/runs/targets.py", "from ..importers import keys", "not stand below it"),
        ("glassformer/extensions/doctor/library/whole.py", "from .. import lessons", "not stand below it"),
        (
            "glassformer/extensions/training/library/loop.py",
            "from glassformer.extensions.importers.library import marian",
            "not stand below it",
        ),
        ("transformer/layers.py", "from torch import nn\nx = nn.TransformerEncoderLayer", "from scratch"),
        ("transformer/layers.py", "import torch\nx = torch.nn.Transformer(512)", "from scratch"),
        ("transformer/layers.py", "from torch.nn import MultiheadAttention as Attention", "from scratch"),
        ("transformer/layers.py", "import torch.nn.modules.transformer", "from scratch"),
        ("transformer/layers.py", "def f(F, x):\n    return F.multi_head_attention_forward(x)", "from scratch"),
        ("transformer/long.py", "x = 1\n" * 501, "501 lines; 500"),
        ("pages/explore/step.py", "x = 1\n" * 61, "61 lines; 60"),
        ("ui/long.py", "class A:\n    def f(self):\n" + "        x = 1\n" * 60, "f has 61 lines"),
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
        ("app.py", "import streamlit as st\nfrom ui import state"),
        ("main.py", "import streamlit as st\nfrom ui import style"),
        (
            "pages/explore/step.py",
            "import streamlit\nfrom ui import x\nfrom charts import y\nimport transformer.trace",
        ),
        (
            "glassformer/inside/model_panel.py",
            "from glassformer.inside import costs\nfrom glassformer.runs import loading",
        ),
        (
            "ui/loading.py",
            "import streamlit\nfrom charts import x\nfrom glassformer.extensions.importers.library import marian",
        ),
        (
            "glassformer/charts/heatmap.py",
            "import math\nimport numpy\nimport plotly.graph_objects\nfrom . import theme",
        ),
        ("transformer/errors.py", "from words import say"),
        ("glassformer/charts/bars.py", "from words import say"),
        ("transformer/i18n/sentence.py", "import gettext\nfrom transformer.i18n.catalogue import languages"),
        (
            "glassformer/extensions/training/library/loop.py",
            "import torch\nfrom transformer.model import Transformer\nfrom . import loss",
        ),
        (
            "glassformer/extensions/training/commands/train.py",
            "from glassformer.extensions.training.library import loop",
        ),
        ("transformer/model.py", "class Transformer:\n    pass\nfrom transformer.config import ModelConfig"),
        ("tests/transformer/test_x.py", "import torch.nn as nn\nx = nn.Transformer\nimport charts, streamlit"),
        ("transformer/long.py", "x = 1\n" * 500),
        ("pages/explore/step.py", "x = 1\n" * 60),
        ("ui/long.py", 'def f():\n    """One.\n' + "\n" * 40 + '    """\n' + "    x = 1\n" * 59),
    ],
)
def test_a_tree_that_keeps_the_rules_passes(tmp_path, path, text):
    write(tmp_path, path, text)
    assert sources(tmp_path)
    assert complaints(tmp_path) == []
