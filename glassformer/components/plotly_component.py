"""Plotly component (Python side): draws a figure, sent as compact JSON, keeps its zoom, reads clicks.

Every chart of the app goes through here, so one copy of Plotly is loaded. Streamlit's own chart is not used:
it mounts anew for each change of data (zoom lost, a blank for about 0.1 to 0.3 s) and reports no clicks on
heat maps.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go

from glassformer.charts.theme import CELLS, Spec
from glassformer.components.custom_component import Element, is_count, told
from glassformer.components.packing import base64_of
from glassformer.state.view import Click

_PLOTLY_HAS = {"int64": np.int32, "uint64": np.uint32, "float16": np.float32}
_SHORT_FORMS = {"float16", "float32", "float64", "int8"}
_LEAST_SHORT = 4096  # smaller maps are not worth a form of their own

# Plotly puts its style rules into the document's head, where a shadow root would not see them.
_VIEW = Element("plotly_view", isolated=False)


def plotly_view(
    # Its `layout.uirevision` decides whether a zoom outlives a change of data; or `figure_json` of it.
    fig: go.Figure | Spec | str,
    *,
    key: str,  # names this place on the page; a figure drawn under the same key replaces the one before
    alt: str,  # the chart in one or two sentences, for people who cannot see it
    height: int,  # in pixels; our charts suggest one: `fig.layout.height`
    caption: str = "",  # a sentence under the chart, such as how to read it
    said: Mapping[str, Any]
    | None = None,  # what is written next to it: the fields of `glassformer.runs.picture.Captions`
    # The height is fitted to what a window has left under all that stands above the chart, unless that is less than
    # this, in pixels. 0: it is not fitted.
    fit: int = 0,
    # Called before the page runs again after a click; `last_click(key)` tells which. Without it the chart takes no
    # clicks. Pass `lambda: None` to use only the returned value.
    on_click: Callable[[], None] | None = None,
    file: str = "",  # what its files are called, without their endings; its key if not given
    about: Mapping[str, str] | None = None,  # columns that a saved table begins with, the same in each row
    table: str = "",  # a CSS selector of the button that saves its table; "": the browser makes one of what it draws
    # How it follows the step: "server" draws it anew, "still" is the same at each, else where its frames are.
    follows: str = "server",
    step: int | None = None,  # the step that is drawn, from 0
) -> Click | None:
    """Draw a figure in place; gives back the click that caused this run, else None."""
    payload = {
        "figure": fig if isinstance(fig, str) else figure_json(fig),
        "alt": alt,
        "height": height,
        "caption": caption,
        "said": said,
        "name": key,
        "file": file or key,
        "about": list((about or {}).items()),
        "table": table,
        "fit": fit,
        "clickable": on_click is not None,
        "follows": follows,
        "step": step,
    }
    result = _VIEW.draw(payload, key=key, hears={"click": on_click})
    return parse_click(result.get("click")) if on_click is not None else None


def last_click(key: str) -> Click | None:
    """Read the click that is being handled; for use inside an `on_click` callback."""
    return parse_click(told(key, "click"))


def figure_json(fig: go.Figure | Spec) -> str:
    """Write a figure as JSON for the browser, without the pieces of each cell: `layout.meta` has both lists once."""
    if isinstance(fig, go.Figure):
        parts = fig.to_dict()  # a deep copy, with arrays as base64: several times smaller than digits
        for trace in parts["data"]:
            if trace.get("meta") == CELLS:
                _leave_out_cells(trace)
    else:
        parts = {"data": fig["data"], "layout": dict(fig["layout"])}
    parts["layout"].pop("template", None)  # Plotly's default one is 7 kB of colours we never show
    return json.dumps(parts, default=_typed_array, ensure_ascii=False, separators=(",", ":"))


def _leave_out_cells(trace: dict[str, Any]) -> None:
    """Take the pieces of each cell out again, and the logarithms of a map that has them for its colours."""
    cells = np.asarray(trace.pop("customdata", []), dtype=object)
    if cells.ndim == 3 and cells.shape[2] == 3:
        trace["z"] = cells[:, :, 2].astype(np.float32)


def _short_map(cells: np.ndarray) -> dict[str, str]:
    """Write a large map as bits that say where it has numbers, and the numbers; `plotly/numbers.js` reads it.

    A causal mask closes half of a map. In a map of whole numbers, such as a mask, a missing one is 0.
    """
    there = cells != 0 if cells.dtype.kind == "i" else ~np.isnan(cells)
    numbers = cells[there]
    if numbers.size and (numbers == numbers[0]).all():
        numbers = numbers[:1]
    kind = f"{cells.dtype.kind}{cells.itemsize}"
    if kind == "f4" and not (numbers.view(np.uint32) & 0xFF).any():  # charts round large maps so that this holds
        kind, numbers = "f3", numbers.view(np.uint8).reshape(-1, 4)[:, 1:]
    return {
        "dtype": kind,
        "shape": ", ".join(map(str, cells.shape)),
        "bdata": base64_of(numbers),
        "there": "" if there.all() else base64_of(np.packbits(there)),
    }


def _typed_array(value: object) -> dict[str, str]:
    """Write an array as Plotly's base64 form, which is smaller than digits and can hold NaN."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
        raise TypeError(f"A figure cannot hold {type(value).__name__}.")
    if value.ndim == 2 and value.size >= _LEAST_SHORT and value.dtype.name in _SHORT_FORMS:
        return _short_map(value)
    # Plotly has neither 64-bit integers nor half precision.
    array = value.astype(_PLOTLY_HAS.get(value.dtype.name, value.dtype), copy=False)
    shape = {"shape": ", ".join(map(str, array.shape))} if array.ndim > 1 else {}
    return {"dtype": f"{array.dtype.kind}{array.dtype.itemsize}", "bdata": base64_of(array), **shape}


def parse_click(value: object) -> Click | None:
    """Check what the browser sent; anything that is not a click is None."""
    if not isinstance(value, dict):
        return None
    curve, index, step = value.get("curve"), value.get("index"), value.get("step")
    if not isinstance(index, list) or not all(is_count(number) for number in (curve, *index)):
        return None
    return Click(int(curve or 0), tuple(index), value.get("customdata"), step if is_count(step) else None)
