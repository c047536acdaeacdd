"""The charts of a lesson's step for a handout: what the step's page shows, of the same run, changed as its link says.

They are all that the step outlines, each with what is said of it. Other texts, tables and what would have to be run
anew are not on paper; the sheet then says where the app shows them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from glassformer.charts.theme import Spec
from glassformer.extensions.lessons.library import Step
from glassformer.runs import loading
from glassformer.runs.declared import PAGES, PICTURES
from glassformer.runs.open_run import seen
from glassformer.runs.picture import Picture
from glassformer.shared.cover import ALL, PART
from glassformer.state.link import Link, read_link
from transformer.checkpoint.load import Checkpoint
from transformer.runs.trace import Trace

Draw = Callable[[Link, Checkpoint, Trace], Spec | None]


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The charts of a step."""

    beside: tuple[Spec, ...] = ()  # what may stand beside its question
    closed: tuple[Spec, ...] = ()  # what holds the answer
    whole: bool = False  # whether they are all that the step looks at


def figures_of(step: Step, parameters: Mapping[str, str], checkpoint: Checkpoint, trace: Trace) -> Drawn:
    """The charts of a step: all that it outlines (if nothing, covers) and that paper can show, else one of its page.

    Raises:
        GlassformerError: The run cannot be changed as the address says.
        BusyError: The model has too much to do.
    """
    link, _ = read_link({name: (text,) for name, text in parameters.items()})
    link = replace(link, source=trace.query.source, max_new=trace.query.max_new)
    if link.interventions:
        trace = loading.runner().trace(checkpoint, link.query(checkpoint.content_hash))
    looks = {key: partial(_declared, PICTURES[key]) if key in PICTURES else None for key in step.look or step.cover}
    chosen = {key: draw(link, checkpoint, trace) for key, draw in looks.items() if draw is not None}
    if not chosen and (otherwise := _of_page(step, link)) is not None:
        chosen = {next(iter(step.cover), ""): otherwise(link, checkpoint, trace)}
    closed = {key for key in chosen if not {key, ALL, PART}.isdisjoint(step.cover)}
    return Drawn(
        beside=tuple(spec for key, spec in chosen.items() if spec is not None and key not in closed),
        closed=tuple(spec for key, spec in chosen.items() if spec is not None and key in closed),
        whole=all(chosen.get(key) is not None for key in looks) and any(chosen.values()),
    )


def _of_page(step: Step, link: Link) -> Draw | None:
    page = PAGES.get("step" if step.page == "search" else step.page)  # that page's pictures are of all results
    first = None if page is None else page.first(link.view)
    return None if first is None else partial(_declared, first)


def _declared(picture: Picture[Any], link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec | None:
    run, _ = seen(checkpoint, link, trace, kind=picture.part.page.kind(link.view))
    plot = picture.of(run)
    return None if plot is None else {**plot.spec, "said": plot.words["said"]}
