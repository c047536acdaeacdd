"""Parts of Streamlit's page have their names in one place, its scripts know them, and rules ask little at changes."""

import re
from pathlib import Path

import pytest
import streamlit

from glassformer.server.streamlit_private import is_on, page_selectors, styled
from tests.source_code import ROOT

OURS = [path for path in sorted((ROOT / "glassformer").rglob("*")) if path.suffix in {".py", ".css", ".js", ".toml"}]
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


# What holds all charts, or may: with such an anchor the browser asks again whenever anything comes anywhere.
WHOLE_PAGE = re.compile(r"""(?:^|[\s,>+~])(?:body|:root[^\s,{]*|:--(?:app|main|main-block))?(?::not\()?:has\((?!\))""")
INSIDE = re.compile(r"\.st-key-(?:page_head[^,{]*|chosen) > :?$")


def asking(text: str) -> list[str]:
    """Selectors with `:has()` whose anchor holds the whole page, or any element."""
    return [
        text[max(0, found.start() - 60) : found.end() + 20]
        for found in WHOLE_PAGE.finditer(text)
        if not INSIDE.search(text[: found.end() - len(":has(")])
    ]


def test_no_rule_asks_what_the_whole_page_holds():
    styled = [path for path in OURS if path.suffix in {".py", ".css"}]
    assert {path.name: rules for path in styled if (rules := asking(text_of(path)))} == {}
    rules = [":--app:has(.st-key-bar) p {}", "body:not(:has(p)) > a {}", ":root.dark :--app:has(p), b {}"]
    assert all(asking(rule) for rule in rules)
    assert not asking(".st-key-menu details:has([aria-current]) > summary {}")
