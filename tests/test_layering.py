"""Who may import whom, and how long a file may be: docs say it, this keeps it so.

The rules read source with `ast` only; nothing is imported. Each rule is also shown a tree that breaks it, as
a check that cannot fail checks nothing. What it does not see: imports whose name is computed at run time.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("pages", "ui", "charts", "transformer", "tools", "benchmarks", "tests")

# Which parts of the repository a part may import, itself aside. pages -> ui -> charts, transformer.
MAY_IMPORT = {
    "app": {"ui", "charts", "transformer"},
    "main": {"ui", "charts", "transformer"},
    "pages": {"ui", "charts", "transformer"},
    "ui": {"charts", "transformer"},
    "charts": set(),
    "transformer": set(),
}
SCRIPTS = ("app", "main")
PARTS = {*SCRIPTS, *FOLDERS}
STREAMLIT_PARTS = {*SCRIPTS, "pages", "ui", "tests", "benchmarks"}  # tests run it, benchmarks speak to it
CHARTS_LIBRARIES = {"numpy", "pandas", "plotly"}
NOT_FOR_TRANSFORMER = {"plotly", "streamlit"}
# Parts of the library that import the model and that the model never imports.
LEAVES = ("importers", "analysis", "training")
# The model is written from scratch: none of torch's own Transformer.
TORCHS_OWN = re.compile(r"^(Transformer(Encoder|Decoder)(Layer)?|MultiheadAttention|multi_head_attention_forward)$")

FILE_LINES = 320
FUNCTION_LINES = 60
PAGE_LINES = 60


@dataclass(frozen=True)
class Import:
    """One imported module, as a full dotted name, and where."""

    name: str
    line: int


@dataclass(frozen=True)
class Source:
    """One Python file: its path in the repository and its parsed text."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def part(self) -> str:
        return self.path.parts[0].removesuffix(".py")

    @property
    def package(self) -> list[str]:
        return list(self.path.parent.parts)


def sources(root: Path) -> list[Source]:
    """Every Python file that the rules are for."""
    files = [path for path in (root / f"{name}.py" for name in SCRIPTS) if path.exists()]
    files += [file for folder in FOLDERS for file in sorted((root / folder).rglob("*.py"))]
    texts = [(file.relative_to(root), file.read_text(encoding="utf-8")) for file in files]
    return [Source(path, text, ast.parse(text, str(path))) for path, text in texts]


def imports(source: Source) -> Iterator[Import]:
    """Every import of a file, wherever it stands, with relative names resolved."""
    for node in ast.walk(source.tree):
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


def wrong_layers(source: Source) -> Iterator[str]:
    """Imports that go up or sideways."""
    for found in imports(source):
        top, *rest = found.name.split(".")
        where = f"{source.path}:{found.line}"
        if source.part in MAY_IMPORT and top in PARTS - MAY_IMPORT[source.part] - {source.part}:
            yield f"{where} {source.part} may not import {top}"
        if source.part == "pages" and top == "pages":
            yield f"{where} a page may not import another page; what they share belongs in ui"
        if top == "streamlit" and source.part not in STREAMLIT_PARTS:
            yield f"{where} only app.py, main.py, pages and ui may import streamlit"
        if source.part == "transformer" and top in NOT_FOR_TRANSFORMER:
            yield f"{where} transformer knows nothing of {top}"
        if source.part == "charts" and top not in CHARTS_LIBRARIES | {"charts"} | sys.stdlib_module_names:
            yield f"{where} charts may import numpy, pandas and plotly, not {top}"
        if source.part == top == "transformer" and rest and rest[0] in LEAVES:
            yield from _wrong_leaf(source, leaf=rest[0], where=where)


def _wrong_leaf(source: Source, *, leaf: str, where: str) -> Iterator[str]:
    if source.path.parts[1] not in {leaf, "commands"}:
        yield f"{where} only transformer.{leaf} itself and transformer.commands may import transformer.{leaf}"


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


RULES = [wrong_layers, borrowed_from_torch, too_long]


def complaints(root: Path) -> list[str]:
    return [line for source in sources(root) for rule in RULES for line in rule(source)]


def test_there_is_something_to_check():
    assert {"charts", "transformer", "ui", "pages", "app", "main"} <= {source.part for source in sources(ROOT)}


@pytest.mark.parametrize("rule", RULES)
def test_this_repository_keeps_the_rule(rule):
    found = [line for source in sources(ROOT) for line in rule(source)]
    assert not found, "\n".join(found)


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("charts/heatmap.py", "import torch", "not torch"),
        ("charts/heatmap.py", "from streamlit import cache_data", "streamlit"),
        (
            "charts/heatmap.py",
            "def f():\n    from transformer.trace import Trace",
            "may not import transformer",
        ),
        (
            "charts/heatmap.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import ui.state",
            "import ui",
        ),
        ("charts/deep/er.py", "from ...ui import state", "may not import ui"),
        ("charts/heatmap.py", "import importlib\nimportlib.import_module('torch.nn')", "not torch"),
        ("ui/panels.py", "import pages.explore.step", "may not import pages"),
        ("ui/panels.py", "import app", "may not import app"),
        ("ui/panels.py", "import main", "may not import main"),
        ("main.py", "from tools import serve", "may not import tools"),
        ("ui/panels.py", "from tests.browser import helpers", "may not import tests"),
        ("pages/explore/step.py", "from pages.explore import attention", "another page"),
        ("pages/explore/step.py", "from . import attention", "another page"),
        ("transformer/trace.py", "import charts.heatmap", "may not import charts"),
        ("transformer/trace.py", "import plotly.graph_objects as go", "knows nothing of plotly"),
        ("transformer/trace.py", "import streamlit as st", "only app.py"),
        ("tools/serve.py", "import streamlit", "only app.py"),
        (
            "transformer/model.py",
            "from transformer.analysis.rollout import rollout",
            "transformer.analysis itself",
        ),
        ("transformer/model.py", "from transformer import training", "transformer.training itself"),
        ("transformer/model.py", "from .importers import marian", "transformer.importers itself"),
        ("transformer/__init__.py", "from . import analysis", "transformer.analysis itself"),
        (
            "transformer/training/loop.py",
            "from transformer.importers import marian",
            "transformer.importers itself",
        ),
        ("transformer/layers.py", "from torch import nn\nx = nn.TransformerEncoderLayer", "from scratch"),
        ("transformer/layers.py", "import torch\nx = torch.nn.Transformer(512)", "from scratch"),
        ("transformer/layers.py", "from torch.nn import MultiheadAttention as Attention", "from scratch"),
        ("transformer/layers.py", "import torch.nn.modules.transformer", "from scratch"),
        (
            "transformer/layers.py",
            "def f(F, x):\n    return F.multi_head_attention_forward(x)",
            "from scratch",
        ),
        ("transformer/long.py", "x = 1\n" * 321, "321 lines; 320"),
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
        ("ui/loading.py", "import streamlit\nfrom charts import x\nfrom transformer.importers import marian"),
        ("charts/heatmap.py", "import math\nimport numpy\nimport plotly.graph_objects\nfrom . import theme"),
        (
            "transformer/training/loop.py",
            "import torch\nfrom transformer.model import Transformer\nfrom . import loss",
        ),
        ("transformer/commands/train.py", "from transformer.training import loop"),
        ("transformer/model.py", "class Transformer:\n    pass\nfrom transformer.config import ModelConfig"),
        (
            "tests/transformer/test_x.py",
            "import torch.nn as nn\nx = nn.Transformer\nimport charts, streamlit",
        ),
        ("transformer/long.py", "x = 1\n" * 320),
        ("pages/explore/step.py", "x = 1\n" * 60),
        ("ui/long.py", 'def f():\n    """One.\n' + "\n" * 40 + '    """\n' + "    x = 1\n" * 59),
    ],
)
def test_a_tree_that_keeps_the_rules_passes(tmp_path, path, text):
    write(tmp_path, path, text)
    assert sources(tmp_path)
    assert complaints(tmp_path) == []
