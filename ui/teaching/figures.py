"""The chart of a lesson's step for a handout: what the step's page shows, of the same run.

A handout is printed, so one chart a step is enough: the one that its question is about. A page that shows texts and
tables, or what would have to be run anew, has none on paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import charts
from charts.theme import Spec
from transformer.checkpoint.load import Checkpoint
from transformer.lessons import Step
from transformer.model.anatomy import Kind, anatomy
from transformer.model.features import TABLES
from transformer.runs.trace import Trace
from ui.runs import loading
from ui.runs.looking import Looking, chosen_map, fit_view
from ui.runs.open_run import seen
from ui.runs.sides import KIND_NAMES, sides
from ui.state.link import read_link
from ui.state.view import View
from ui.teaching import further_figures
from ui.teaching.declared import PAGES, PICTURES
from words import say

_DIMENSIONS: Final = 64


def figure_of(step: Step, parameters: Mapping[str, str], checkpoint: Checkpoint, trace: Trace) -> Spec | None:
    """The chart of a step: one that it outlines or covers, else one of its page.

    Args:
        step: The step.
        parameters: Of its address.
        checkpoint: What the run is of.
        trace: The learner's run.

    Returns:
        A figure's plain data; None for a page that has none on paper.
    """
    link, _ = read_link({name: (text,) for name, text in parameters.items()})
    path = "step" if step.page == "search" else step.page  # its pictures are of all results
    page = PAGES.get(path)
    run, _ = seen(checkpoint, link, trace, kind=None if page is None else page.kind(link.view))
    named = next((PICTURES[key] for key in (*step.look, *step.cover) if key in PICTURES), None)
    declared = named or (None if page is None else page.first(run.view))
    if declared is not None:
        plot = declared.of(run)
        return None if plot is None else plot.spec
    for key in (*step.look, *step.cover):
        if key in _CHARTS:
            return _CHARTS[key](link.view, checkpoint, trace)
        if key in further_figures.CHARTS:
            return further_figures.CHARTS[key](link, checkpoint, trace)
    if step.page == "inside" and not step.look and link.view.inside_panel in further_figures.PARTS:
        return further_figures.PARTS[link.view.inside_panel](link, checkpoint, trace)
    return _PAGES[step.page](link.view, checkpoint, trace) if step.page in _PAGES else None


def _looking(view: View, checkpoint: Checkpoint, trace: Trace, kind: Kind) -> Looking:
    view, _ = fit_view(view, trace, kind=kind)
    return Looking(trace, view, by_layer=partial(loading.by_layer, checkpoint, trace))


def _map(view: View, checkpoint: Checkpoint, trace: Trace) -> Spec | None:
    kind = view.kind if view.kind in trace.kinds else trace.kinds[0]
    looking = _looking(view, checkpoint, trace, kind)
    axes = sides(looking, kind)
    n_queries, n_keys = len(axes.queries), len(axes.keys)
    return charts.heatmap_spec(
        chosen_map(looking, kind)[:n_queries, :n_keys],
        queries=axes.queries,
        keys=axes.keys,
        title=say("{attention}: {whose}", attention=KIND_NAMES[kind], whose=looking.whose()),
        query_axis=axes.query_axis,
        key_axis=axes.key_axis,
        allowed=trace.mask(kind, looking.view.layer)[:n_queries, :n_keys],
        colour=axes.key_side,
    )


def _positions(view: View, checkpoint: Checkpoint, trace: Trace) -> Spec | None:
    if checkpoint.config.positions not in TABLES:
        return None
    first = anatomy(checkpoint.config).stacks[0]
    n = trace.n_tokens(first.name)
    positions: Any = checkpoint.model.stack(first.name).embedding.positions  # its table is a buffer or a parameter
    table = positions.table.detach().numpy()[:n, :_DIMENSIONS]
    return charts.position_table_spec(
        table,
        positions=range(n),
        dimensions=range(table.shape[1]),
        title=say("Table of positions: the first {n} dimensions", n=table.shape[1]),
    )


_Draw = Callable[[View, Checkpoint, Trace], Spec | None]
_CHARTS: Final[Mapping[str, _Draw]] = {
    "cross_map": _map,
    "head_map": _map,
}
_PAGES: Final[Mapping[str, _Draw]] = {
    "attention": _map,
    "matters": _map,
    "compare": _map,
    "positions": _positions,
}
