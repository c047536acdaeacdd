"""Plotly component (Python side): a figure as compact JSON, and the click that the browser tells of.

Every chart of the app goes through here (`drawing.chart` has its payload), so one copy of Plotly is loaded. Streamlit's
own chart is not used: it mounts anew for each change of data (zoom lost, a blank for about 0.1 to 0.3 s) and reports
no clicks on heat maps.
"""

import json

import numpy as np

from glassformer.charts.theme import Spec
from glassformer.components.custom_component import Element, is_count, told
from glassformer.components.packing import base64_of
from glassformer.state.view import Click

_PLOTLY_HAS = {"int64": np.int32, "uint64": np.uint32, "float16": np.float32}
_SHORT_FORMS = {"float16", "float32", "float64", "int8"}
_LEAST_SHORT = 4096  # smaller maps are not worth a form of their own

# Plotly puts its style rules into the document's head, where a shadow root would not see them.
VIEW = Element("plotly_view", isolated=False)


def last_click(key: str) -> Click | None:
    """The click that is being handled on the chart of a key; None for anything that the browser says and is none."""
    said = told(key, "click")
    if not isinstance(said, dict):
        return None
    curve, index, step = said.get("curve"), said.get("index"), said.get("step")
    if not isinstance(index, list) or not all(is_count(number) for number in (curve, *index)):
        return None
    return Click(int(curve or 0), tuple(index), said.get("customdata"), step if is_count(step) else None)


def figure_json(figure: Spec) -> str:
    """Write a figure as JSON for the browser."""
    drawn = {"data": figure["data"], "layout": figure["layout"]}
    return json.dumps(drawn, default=_typed_array, ensure_ascii=False, separators=(",", ":"))


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
