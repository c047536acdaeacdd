"""Scripts and data packed into an HTML file that fetches nothing, and Plotly's script, which is in each of them.

A saved run, a handout and maps in a notebook are such files. What is packed with gzip is unpacked by the browser
(`embedding.js`); Plotly's script would be two thirds of the file.

Plotly's script is the bundle `plotly.js-cartesian-dist-min` as npm has it (MIT, its licence beside it), packed by
`gzip -9 -n`: a third of the whole script in the Python package, with all that we draw. It has the version of the Python
package in requirements.txt, and both are renewed together.
"""

import base64
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from glassformer import PACKAGE
from glassformer.components.custom_component import PLOTLY_FILE

if TYPE_CHECKING:
    import plotly.graph_objects as go

_UNPACK: Final = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
_DRAW: Final = Path(__file__).with_name("embedded_charts.js").read_text(encoding="utf-8")


def plotly_packed() -> bytes:
    """Plotly's script, packed."""
    return (PACKAGE / "components/plotly/vendored" / f"{PLOTLY_FILE}.gz").read_bytes()


def embedded(script: str = _DRAW, *, run: str = "") -> str:
    """The last elements of a page's body: Plotly, data for `window.glassformerRun`, and a module that then runs.

    The module is by default the one that draws each `chart_element`.
    """
    parts = {"plotly": plotly_packed(), "run": packed(run), "script": packed(script)}
    elements = [
        f'<script type="text/plain" class="packed" id="{name}">{base64.b64encode(part).decode("ascii")}</script>'
        for name, part in parts.items()
    ]
    return "\n".join([*elements, f"<script>{_UNPACK}</script>"])


def packed(text: str | bytes) -> bytes:
    """A text as gzip, the same bytes at any time."""
    return gzip.compress(text.encode("utf-8", "replace") if isinstance(text, str) else text, 9, mtime=0)


def chart_element(figure: "go.Figure", *, bar: bool = False) -> str:
    """The place of a chart in such a page, with its data; with a `bar` of Plotly's buttons."""
    config = {"displaylogo": False} if bar else {"displayModeBar": False, "responsive": True}
    text = f'{{"config":{json.dumps(config)},{str(figure.to_json())[1:]}'.replace("<", "\\u003c")  # no text ends it
    return f'<div class="chart"><script type="application/json">{text}</script></div>'
