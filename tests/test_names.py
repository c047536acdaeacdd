"""A module's first line says what it is, a class is there once, and docstrings are plain and name what there is."""

import ast
import builtins
import re
from collections import Counter, defaultdict
from functools import cache

import pytest

from tests.source_code import ROOT, of_library, sources
from tests.test_plain_words import TICS


def words_of(text):
    return set(re.findall(r"\w+", text))


LONGEST = 112
RIDDLE = re.compile(r"(What|Whether|Whose|Who|How|Which|Where|Why|When)\b")  # a clause, not a thing
PRODUCT = {"app", "main", "pages", "glassformer", "transformer"}
# Classes of other programs, and an HTTP header.
OF_OTHERS = words_of("DataParallel GenerationConfig Host SavedModel TransformerEncoder")
STRING_OR_COMMENT = re.compile(r'''(?s:""".*?"""|\'{3}.*?\'{3})|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*''')
OURS = ("glassformer.", "transformer.")


@pytest.fixture(scope="module")
def product():
    """Every module of the product."""
    return [source for source in sources(ROOT) if source.part in PRODUCT]


def first_line(source):
    return (ast.get_docstring(source.tree) or "").split("\n")[0]


def test_a_first_line_is_short_begins_with_the_thing_and_is_a_modules_own(product):
    lines = {str(one.path): first_line(one) for one in product}
    bad = {path: line for path, line in lines.items() if not line or len(line) > LONGEST or RIDDLE.match(line)}
    assert bad == {}
    assert [line for line, n in Counter(lines.values()).items() if n > 1] == []


def test_a_public_class_is_defined_once_in_the_library_and_once_in_the_app(product):
    where = defaultdict(list)
    for one in product:
        is_library = of_library(one.path)
        for node in one.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name, is_library].append(str(one.path))
    assert {name: places for name, places in where.items() if len(places) > 1} == {}


@cache
def written(source):
    """Names and strings of one word in the code of a module."""
    values = (value for node in source.nodes for value in vars(node).values() if isinstance(value, str))
    return {word for value in {*values} if not re.search(r"\s", value) for word in words_of(value)}


@cache
def prose(source):
    """Docstrings and comments of a module, each on one line; `tokenize` takes seconds for all modules."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    docstrings = [ast.get_docstring(node) or "" for node in source.nodes if isinstance(node, documented)]
    outside = STRING_OR_COMMENT.findall(source.text)
    return [" ".join(one.split()) for one in docstrings] + [found for found in outside if found.startswith("#")]


def test_a_class_or_module_in_code_font_is_there(product):
    code = [one for one in sources(ROOT) if one.part != "tests"]
    known = OF_OTHERS | set(dir(builtins))
    for script in (ROOT / "glassformer").rglob("*.js"):
        known |= words_of(script.read_text(encoding="utf-8"))
    for one in code:
        known |= {*one.path.with_suffix("").parts} | (written(one) if one.path.stem != "extensions" else set())
    gone = {
        (one.path.as_posix(), name)
        for one in product
        for text in prose(one)
        for name in re.findall(r"(?<!`)`([A-Za-z_][\w.]*\w)(?:\(.*?\))?`(?!`)", text)
        if {word for word in words_of(name) if re.match(r"[A-Z]\w*[a-z]", word) or name.startswith(OURS)} - known
    }
    assert gone == set()


def test_docstrings_and_comments_are_plain(product):
    found = {
        (one.path.as_posix(), tic): f"{text!r}: {instead}"
        for one in product
        for text in prose(one)
        for tic, instead in TICS.items()
        if re.search(tic, text)
    }
    assert found == {}
