"""Self-contained HTML: Plotly's script, our scripts and JSON data (equal parts once), in base 85; chart elements.

A saved run, a handout and maps in a notebook are such files. What is packed with gzip is unpacked by the browser
(`embedding.js`); Plotly's script would be two thirds of the file. It is written in base 85, a sixteenth shorter than
base 64, and data has each equal part once, as a run in two languages is mostly the same numbers.

Plotly's script is the bundle `plotly.js-cartesian-dist-min` as npm has it (MIT, its licence beside it), packed by
`gzip -9 -n`: a third of the whole script in the Python package, with all that we draw. It has the version of the Python
package in requirements.txt, and both are renewed together.
"""

import base64
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from glassformer.components.custom_component import packed, plotly_packed

if TYPE_CHECKING:
    import plotly.graph_objects as go

_IN_HTML: Final = str.maketrans("<>&", ",.:")
_LEAST: Final = 100  # characters of a part that is worth a number
_UNPACK: Final = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
_DRAW: Final = Path(__file__).with_name("embedded_charts.js").read_text(encoding="utf-8")


def embedded(script: str = _DRAW, *, run: Any = None) -> str:
    """The last elements of a page's body: Plotly, data for `window.glassformerRun`, and a module that then runs.

    The module is by default the one that draws each `chart_element`; the data are JSON values, None for none.
    """
    run = json.dumps(_each_once(run), ensure_ascii=False)
    parts = {"plotly": plotly_packed(), "run": packed(run), "script": packed(script)}
    elements = [
        f'<script type="text/plain" class="packed" id="{name}">{written(part)}</script>' for name, part in parts.items()
    ]
    return "\n".join([*elements, f"<script>{_UNPACK}</script>"])


def written(data: bytes) -> str:
    """Bytes in base 85 as Python has it, with other letters for the three that mean something in HTML."""
    return base64.b85encode(data).decode("ascii").translate(_IN_HTML)


def _each_once(value: Any) -> dict[str, Any]:
    """JSON values with what is in them more than once in a table: `{"=": n}` stands for its part n."""
    known, number, met = dict[str, int](), dict[int, int](), Counter[int]()  # number: of a part, by its `id`
    places, table = dict[int, int](), dict[int, Any]()

    def read(one: Any) -> str:
        """A part as text, in which larger parts have their numbers."""
        if isinstance(one, dict):
            text = str([(name, read(part)) for name, part in one.items()])
        elif isinstance(one, list) and any(isinstance(part, dict | list | str) for part in one):
            text = str([*map(read, one)])
        else:
            text = json.dumps(one)
        if len(text) < _LEAST:
            return text
        number[id(one)] = n = known.setdefault(text, len(known))
        met[n] += 1
        return f"={n}"

    def short(one: Any) -> Any:
        n = number.get(id(one), -1)
        if n not in places:
            place = places.setdefault(n, len(places)) if met[n] > 1 else None
            if isinstance(one, dict):
                one = {name: short(part) for name, part in one.items()}
            elif isinstance(one, list):
                one = [short(part) for part in one]
            if place is None:
                return one
            table[place] = one
        return {"=": places[n]}

    read(value)
    return {"value": short(value), "parts": [table[place] for place in range(len(table))]}


def chart_element(figure: "go.Figure", *, bar: bool = False) -> str:
    """The place of a chart in such a page, with its data; with a `bar` of Plotly's buttons."""
    config = {"displaylogo": False} if bar else {"displayModeBar": False, "responsive": True}
    text = f'{{"config":{json.dumps(config)},{str(figure.to_json())[1:]}'.replace("<", "\\u003c")  # no text ends it
    return f'<div class="chart"><script type="application/json">{text}</script></div>'
