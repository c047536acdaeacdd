"""Plotly's script has the Python package's version, draws each kind of chart that we draw, and is the only one."""

import ast
import gzip
import re
from functools import cache

import plotly.graph_objs as go
from plotly.basedatatypes import BaseTraceType
from plotly.offline import get_plotlyjs_version

from glassformer.components.custom_component import PLOTLY_FILE
from glassformer.components.embedding import plotly_packed
from tests.source_code import ROOT, sources

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
    assert {"heatmap", "scatter", "bar"} <= kinds() < TRACES
    for source in sources(ROOT):
        if source.part in ("glassformer", "pages", "main"):
            beyond = [place for place in drawn(source) if place[0] in TRACES - kinds()]
            others = [node for node in source.nodes if isinstance(node, ast.Attribute) and node.attr in OTHERS]
            assert (source.path, beyond, others) == (source.path, [], [])
