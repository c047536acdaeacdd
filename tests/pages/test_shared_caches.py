"""What visitors share holds no language: each reads it in their own."""

import ast
import re

import pytest

from tests.pages.conftest import CHECKPOINTS, FORCING, STEP
from tests.pages.speaking import texts_of_page
from tests.source_code import ROOT, sources

# Each page with what of it is shared, in Chinese.
SHARED = {
    "notes of a run": (STEP, {"model": "zh-en", "src": "我喜欢喝綠茶🍵。"}, "未知标记"),
    "an error of the queue": (STEP, {"model": "reverse", "src": "abcdefghij" * 30}, "最多"),
    "a reference": (FORCING, {"model": "reverse", "src": "asdfg", "ref": "gfdsaÖ"}, "未知标记"),
    "a card": (CHECKPOINTS, {"model": "reverse"}, "字母倒写"),
}


@pytest.mark.parametrize("name", SHARED)
def test_each_visitor_reads_it_in_their_language(open_page, name):
    read_in_each_language(open_page, *SHARED[name])


def read_in_each_language(open_page, page, address, chinese):
    """Check that a page which was drawn in one language is drawn in others without a word of it."""
    told = {language: texts_of_page(open_page(page, lang=language, **address)) for language in ("qps", "zh", "en")}
    assert {language: any("⟦" in text for text in texts) for language, texts in told.items()} == {
        "qps": True, "zh": False, "en": False}  # fmt: skip
    assert any(chinese in text for text in told["zh"])
    assert not any(chinese in text for text in told["en"])


SAID = re.compile(r"st\.cache_|select(box)?\(")  # where there may be any; only that is parsed


def spinning(node):
    """Caches of Streamlit's that would show a spinner, which has a name of a function in English."""
    for one in getattr(node, "decorator_list", ()):
        said = ast.unparse(one)
        if "st.cache_" in said and "show_spinner=False" not in said:
            yield said


def empty_without_a_word(node):
    """Choices that may be empty and would then say so in Streamlit's English."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        given = {one.arg for one in node.keywords}
        empty = [one for one in node.keywords if one.arg == "index" and ast.unparse(one.value) == "None"]
        may_be_empty = node.func.attr == "multiselect" or (node.func.attr == "selectbox" and empty)
        if may_be_empty and "placeholder" not in given:
            yield node.func.attr


@pytest.mark.parametrize("rule", [spinning, empty_without_a_word])
def test_streamlit_says_nothing_of_its_own(rule):
    ours = [one for one in sources(ROOT) if one.part in ("main", "pages", "glassformer")]
    nodes = ((one.path, node) for one in ours if SAID.search(one.text) for node in one.nodes)
    found = [f"{path}:{node.lineno} {line}" for path, node in nodes for line in rule(node)]
    assert not found, "\n".join(found)
