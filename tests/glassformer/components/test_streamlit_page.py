"""Streamlit's page and Plotly's script are as our rules and charts take them to be, and rules ask little of it."""

import ast
import gzip
import re
from functools import cache
from pathlib import Path

import plotly.graph_objs as go
import pytest
import streamlit
from plotly.basedatatypes import BaseTraceType
from plotly.offline import get_plotlyjs_version

from glassformer.components.custom_component import PLOTLY_FILE, plotly_packed
from glassformer.server.streamlit_private import is_on, page_selectors, styled
from tests.source_code import ROOT, sources

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


NAMED = {name: getattr(go, name) for name in dir(go)}
TRACES = {name.lower() for name, one in NAMED.items() if isinstance(one, type) and issubclass(one, BaseTraceType)}
OTHERS = ("plotly_chart", "altair_chart", "line_chart", "area_chart", "bar_chart", "scatter_chart", "vega_lite_chart")


@cache
def script():
    return gzip.decompress(plotly_packed()).decode()


def kinds():
    """The kinds of traces that the script has."""
    return {*re.findall(r'moduleType:"trace",name:"(\w+)"', script())}


def test_both_halves_of_plotly_have_one_version_and_the_licence_is_beside_the_script():
    assert re.match(r"/\*\*\n\* plotly\.js \(cartesian - minified\) v(\S+)\n", script())[1] == get_plotlyjs_version()
    assert f"plotly-cartesian-{get_plotlyjs_version()}.min.js" == PLOTLY_FILE
    assert "MIT License" in (ROOT / "glassformer/components/plotly/vendored/LICENSE").read_text("utf-8")


def drawn(source):
    """What a file calls the type of something, and where."""
    for node in source.nodes:
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "type":
                    yield from ((one.value, one.lineno) for one in ast.walk(value) if isinstance(one, ast.Constant))


def test_it_draws_what_we_draw_and_streamlit_loads_no_script_of_its_own():
    there = kinds()
    assert {"heatmap", "scatter", "bar"} <= there < TRACES
    for source in sources(ROOT):
        said = any(word in source.text for word in ('"type"', *OTHERS))  # else nothing of it need be parsed
        if said and source.part in ("glassformer", "pages", "main"):
            beyond = [place for place in drawn(source) if place[0] in TRACES - there]
            others = [node for node in source.nodes if isinstance(node, ast.Attribute) and node.attr in OTHERS]
            assert (source.path, beyond, others) == (source.path, [], [])
