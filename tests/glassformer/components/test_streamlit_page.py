"""The parts of Streamlit's page have their names in one place, and this Streamlit's scripts know them."""

import re
from pathlib import Path

import pytest
import streamlit

from glassformer.server.streamlit_private import is_on, page_selectors, styled
from tests.source_code import ROOT

STYLED = [path for path in sorted((ROOT / "glassformer").rglob("*")) if path.is_file()]
OURS = [path for path in STYLED if path.suffix in {".py", ".css", ".js", ".toml"}]
PRIVATE = re.compile(r"\.st[A-Z]\w+|data-testid|data-test-|data-baseweb|data-collapsed|st-emotion|__streamlit")


def text_of(path):
    return path.read_text(encoding="utf-8")


def test_this_streamlit_calls_them_so():
    folder = Path(streamlit.__file__).parent / "static" / "static" / "js"
    scripts = "".join(text_of(path) for path in folder.glob("*.js"))
    for name, selector in page_selectors().items():
        words = re.findall(r"st[A-Z]\w+|data-[\w-]+|notRunning|running|CONNECTED", selector)
        assert words, name
        assert [word for word in words if word not in scripts] == []


def test_nothing_else_says_what_streamlit_calls_it():
    found = {path.name: PRIVATE.findall(text_of(path)) for path in OURS if path.name != "streamlit_private.py"}
    there = {name: words for name, words in found.items() if words}
    assert there == {}, "name it in streamlit_private.py"
    assert used_names() <= set(page_selectors())


def used_names():
    """Every name that rules and scripts use, those of extensions among them."""
    used = set()
    for path in OURS:
        text = text_of(path)
        used |= set(re.findall(r":--([\w-]+)", text))
        if path.suffix == ".js":
            used |= {one or other for one, other in re.findall(r'PAGE(?:\.([a-z]+)|\["([\w-]+)"\])', text)}
            used |= {word for said in re.findall(r'isPage\(("[^)]*)\)', text) for word in re.findall(r"\w+", said)}
    return used


def test_rules_that_name_a_part_say_what_streamlit_calls_it():
    assert styled(":--app > :--main:not(:--column) { --x: var(--gf-y); }") == (
        '.stApp > [data-testid="stMain"]:not([data-testid="stColumn"]) { --x: var(--gf-y); }'
    )
    with pytest.raises(KeyError):
        styled(":--no-such-part {}")


def test_turned_off_no_part_is_found(monkeypatch):
    monkeypatch.setenv("GLASSFORMER_STREAMLIT_PRIVATE", "off")
    is_on.cache_clear()
    try:
        assert set(page_selectors().values()) == {":not(*)"}
        assert styled(":--main p {}") == ":not(*) p {}"
    finally:
        monkeypatch.undo()
        is_on.cache_clear()
