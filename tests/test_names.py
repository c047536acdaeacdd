"""A module's first line says what it is, a class is there once, and docstrings are plain and name what there is."""

import ast
import builtins
import io
import re
import tokenize
from collections import Counter, defaultdict
from functools import cache

import pytest

from tests.source_code import ROOT, sources
from tests.test_plain_words import TICS


def words_of(text):
    return set(re.findall(r"\w+", text))


LONGEST = 112
RIDDLE = re.compile(r"(What|Whether|Whose|Who|How|Which|Where|Why|When)\b")  # a clause, not a thing
PRODUCT = {"app", "main", "pages", "glassformer", "transformer"}
# Classes of other programs, and an HTTP header.
OF_OTHERS = words_of("DataParallel GenerationConfig Host SavedModel TransformerEncoder")
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
        is_library = one.part == "transformer" or "library" in one.path.parts
        for node in one.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name, is_library].append(str(one.path))
    assert {name: places for name, places in where.items() if len(places) > 1} == {}


@cache
def tokens(source):
    return tuple(tokenize.generate_tokens(io.StringIO(source.text).readline))


def prose(source):
    """Docstrings and comments of a module, each on one line."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield " ".join((ast.get_docstring(node) or "").split())
    yield from (token.string for token in tokens(source) if token.type == tokenize.COMMENT)


def test_a_class_or_module_in_code_font_is_there(product):
    code = [one for one in sources(ROOT) if one.part != "tests"]
    known = OF_OTHERS | set(dir(builtins))
    for script in (ROOT / "glassformer").rglob("*.js"):
        known |= words_of(script.read_text(encoding="utf-8"))
    for one in code:
        known |= {*one.path.with_suffix("").parts}
        for token in tokens(one):
            if token.type == tokenize.NAME or (token.type == tokenize.STRING and not re.search(r"\s", token.string)):
                known |= words_of(token.string) if one.path.stem != "module_aliases" else set()
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
