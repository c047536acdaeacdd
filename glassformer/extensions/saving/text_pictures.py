"""Pictures as text for other programs: the tree of a beam search for Graphviz (DOT), a map for LaTeX (pgfplots)."""

import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any, Final

import numpy as np

from glassformer.charts.grid import unpacked
from glassformer.charts.theme import figure_in
from glassformer.runs.picture import Picture, Plot
from glassformer.runs.viewed_run import ViewedRun
from glassformer.search.tree_pictures import searched
from transformer.errors import QueryError
from transformer.i18n import ENGLISH

_NAMED: Final = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_TEX: Final = _NAMED | {letter: "\\" + letter for letter in "&%$#_{}"}
_TREE: Final = "search_tree"


def dot(picture: Picture[Any], run: ViewedRun, plot: Plot) -> str:
    """The tree of the run's beam search as a Graphviz graph: bold results, dashed what was dropped or closed.

    Edges have the log-probability of their token in nats. A QueryError for another picture.
    """
    found = searched(run) if picture.key == _TREE else None
    if found is None:
        raise QueryError(".dot is for the tree of a beam search; draw it with --panel search.{tree}.", tree=_TREE)
    tree, pieces = found.tree, run.trace.vocabulary
    start = run.trace.row_label(run.trace.first_row).reads
    lines = ["digraph beam_search {", "  rankdir=LR;", "  node [shape=box];", f"  start [label={_quoted(start)}];"]
    for node in tree.nodes:
        style = "bold" if node.result is not None else "solid" if node.is_kept else "dashed"
        result = "" if node.result is None else f"\n{node.result + 1}: {node.score:.4f}"
        lines.append(f"  n{node.place} [label={_quoted(pieces[node.piece] + result)}, style={style}];")
        begin = "start" if node.parent is None else f"n{node.parent}"
        lines.append(f'  {begin} -> n{node.place} [label="{node.log_prob:.3f}", style={style}];')
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # its escapes of quotes, backslashes and newlines are Graphviz's, too


def pgfplots(picture: Picture[Any], run: ViewedRun, plot: Plot) -> str:
    """A map as a LaTeX picture with the numbers of its cells; closed cells are left empty.

    It needs the package pgfplots, and for tokens that are not Latin a font that has them. A QueryError for
    other pictures.
    """
    figure = figure_in(unpacked(plot.spec), ENGLISH)
    maps = [trace for trace in figure.data if trace.type == "heatmap" and np.ndim(trace.z) == 2]
    if not maps:
        raise QueryError(".tex is for maps; choose one such as attention.head_map.")
    cells = np.asarray(maps[0].z, dtype=float)
    low, high = (maps[0].zmin, maps[0].zmax) if maps[0].zmin is not None else (np.nanmin(cells), np.nanmax(cells))
    n_rows, n_columns = cells.shape
    layout = figure.layout
    axes = [_ticks("x", layout.xaxis), _ticks("y", layout.yaxis)]
    rows = [f"{x} {y} {cells[y, x]:.6g}" for y in range(n_rows) for x in range(n_columns)]
    return "\n".join(
        [
            r"% \usepackage{pgfplots} \pgfplotsset{compat=1.18}",
            r"\begin{tikzpicture}",
            r"\begin{axis}[enlargelimits=false, axis on top, y dir=reverse, colorbar, colormap name=viridis,",
            f"  point meta min={low:g}, point meta max={high:g},",
            *(f"  {axis}," for axis in axes if axis),
            f"  title={{{_tex(layout.title.text)}}}, xlabel={{{_tex(layout.xaxis.title.text)}}},",
            f"  ylabel={{{_tex(layout.yaxis.title.text)}}}]",
            rf"\addplot [matrix plot*, mesh/cols={n_columns}, point meta=explicit] table [meta=weight] {{",
            "x y weight",
            *rows,
            "};",
            r"\end{axis}",
            r"\end{tikzpicture}",
            "",
        ]
    )


def _ticks(name: str, axis: Any) -> str:
    if not axis.ticktext:
        return ""
    places = ",".join(f"{place:g}" for place in axis.tickvals)
    labels = ",".join(f"{{{_tex(label)}}}" for label in axis.ticktext)
    turned = ", x tick label style={rotate=90, anchor=east}" if name == "x" else ""
    return f"{name}tick={{{places}}}, {name}ticklabels={{{labels}}}{turned}"


def _tex(text: str | None) -> str:
    """Text without the tags of HTML, as LaTeX writes it."""
    plain = unescape(re.sub(r"<[^>]*>", " ", text or "")).strip()
    return "".join(_TEX.get(letter, letter) for letter in plain)


WRITERS: Final[dict[str, Callable[[Picture[Any], ViewedRun, Plot], str]]] = {"dot": dot, "tex": pgfplots}
