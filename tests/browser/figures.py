"""Charts whose labels are markup, formulas and worse, with the numbers they were made of, for test_charts.py."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from glassformer import charts
from glassformer.charts.theme import base_layout, literal, ticks
from glassformer.step.step_pictures import MEASURES, unsure_curve

HOSTILE = (
    "<s>", "</s>", "<br>", "<b>x</b>", "&lt;", "&#60;", "$x^2$", "%{x}", "<img src=x onerror=window.hacked=1>",
    "</script><script>window.hacked=1</script>", "=HYPERLINK(\"http://127.0.0.1\")", "+1", "-5", "@x", "\tt", "\rr",
    'a"b,c', " a ", "two\nlines", "\u202eabc", "⟨U+202E⟩", "שלום", "Donaudampfschifffahrtsgesellschaft", "▁", "NA",
    "3: <b>x</b>", "＝1",
)  # fmt: skip
COUNT = len(HOSTILE)
GRID_PIECES = (*HOSTILE[8:11], "<Donaudampfschiff>" * 5)  # the last is too long for hover
ALLOWED = np.tril(np.ones((COUNT, COUNT), dtype=bool))
REASON = "too <late>"
WEIGHTS = np.random.default_rng(7).random((COUNT, COUNT)).astype(np.float32) ** 6
WEIGHTS[3, 1] = np.nan
WEIGHTS[4, 2] = 1e-7
MAPS = np.random.default_rng(8).random((2, 3, 4, 4)).astype(np.float32)
SHARES = np.linspace(0.5, 0.001, 8)
ENTROPIES = np.linspace(0, 3, COUNT)


def hostile_map(**options: Any) -> dict[str, Any]:
    return charts.heatmap_spec(
        WEIGHTS, queries=HOSTILE, keys=HOSTILE, title="=A <b>map</b> of %{pieces}", query_axis="<i>Query</i>",
        key_axis="=Key", allowed=ALLOWED, mask_reason=REASON, rows_sum_to_one=False, marked_row=2, **options,
    )  # fmt: skip


def lines() -> dict[str, Any]:
    return charts.losses_spec([1, 2, 3], training=[3.0, float("nan"), 2.0], dev=[2.5, 2.25, 2.125], kept=2)


def panels() -> dict[str, Any]:
    """Two maps and a line side by side, each on axes of its own; a click on the second map is one on trace 1."""
    layout = base_layout("Three charts in one", "One", "Row") | {"height": 320}
    pieces = {name: ticks(HOSTILE[:4], title=name) for name in ("One", "Two", "Row")}
    for place, axis in enumerate(("xaxis", "xaxis2", "xaxis3")):
        layout[axis] = {"domain": [0.36 * place, 0.36 * place + 0.27], "anchor": f"y{place + 1 if place else ''}"}
        layout[axis.replace("x", "y", 1)] = {"anchor": f"x{place + 1 if place else ''}"}
    names = {"xaxis": "One", "xaxis2": "Two", "yaxis": "Row", "yaxis2": "Row"}
    for axis, name in names.items():
        layout[axis] |= pieces[name]["axis"] | ({"domain": layout[axis]["domain"]} if axis[0] == "x" else {})
    layout["xaxis3"] |= {"title": {"text": "Place"}}
    layout["yaxis3"] |= {"title": {"text": "Height"}}
    layout["meta"] = {"ticks": {axis: pieces[name]["spec"] for axis, name in names.items()}}
    layout["annotations"] = [{"text": literal("<b>here</b>"), "x": 0.5, "y": 1.1, "xref": "paper", "yref": "paper",
                              "showarrow": False}]  # fmt: skip
    maps = [
        {"type": "heatmap", "name": name, "z": WEIGHTS[:4, start : start + 4], "xaxis": x, "yaxis": y,
         "showscale": False, "hovertemplate": "%{z}<extra></extra>"}
        for name, start, x, y in (("first", 0, "x", "y"), ("second", 4, "x2", "y2"))
    ]  # fmt: skip
    line = {"type": "scatter", "name": "line", "x": [1, 2], "y": [0.5, 0.25], "xaxis": "x3", "yaxis": "y3"}
    return {"data": [*maps, line], "layout": layout}


def stated() -> dict[str, Any]:
    layout = base_layout("A stated table", "x", "y") | {"height": 240}
    layout["meta"] = {"table": {"columns": ["what", "=how much"], "rows": [["=1+1", 2], ["▁x", -0.5], ["-", None]]}}
    return {"data": [{"type": "bar", "x": [1], "y": [2]}], "layout": layout}


def all_figures() -> dict[str, dict[str, Any]]:
    """Each chart by its key, which is also its alternative text."""
    return {
        "plain_map": hostile_map(),
        "log_map": hostile_map(log=True, marked_cell=(5, 4), limits=None),
        "bars": charts.candidates_spec(HOSTILE[20:24] + HOSTILE[:4], SHARES, ids=range(8), chosen=1),
        "curve": unsure_curve(ENTROPIES, HOSTILE, 3, MEASURES["entropy"])["spec"],
        "lines": lines(),
        "panels": panels(),
        "grid": charts.grid_spec(
            MAPS, queries=GRID_PIECES, keys=GRID_PIECES, title="Heads", allowed=ALLOWED[:4, :4], mask_reason=REASON
        ),
        "stated": stated(),
    }


def draw() -> None:
    """The page of an app: all of them, and every click so far."""
    import streamlit as st

    from glassformer.components.plotly_component import VIEW, figure_json, last_click

    clicks = st.session_state.setdefault("clicks", [])

    def note(name: str) -> None:
        if click := last_click(name):
            clicks.append((name, click.curve, click.index))

    for name, figure in all_figures().items():
        payload = {
            "figure": figure_json(figure), "alt": name, "height": figure["layout"]["height"],
            "caption": "How to read this.", "said": None, "name": name, "file": name, "about": [], "table": "",
            "fit": 0, "clickable": True, "follows": "server", "step": None,
        }  # fmt: skip
        VIEW.draw(payload, key=name, hears={"click": partial(note, name)})
    st.text(f"clicks: {clicks}")
