"""The pictures of the parts Pieces and Logit of the page What matters: what one step owes to what it read.

Knows nothing of Streamlit.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from glassformer.charts.contributions import (
    HOW_TO_READ_BARS,
    HOW_TO_READ_MAP,
    Bar,
    contribution_bars_spec,
    contribution_map_spec,
)
from glassformer.charts.credit import Column, piece_credit_spec
from glassformer.extensions.effects.attribution.asked import Asked, ask
from glassformer.extensions.effects.attribution.gradients import Integrated, input_times_gradient
from glassformer.extensions.effects.attribution.hiding import Hiding
from glassformer.extensions.effects.attribution.logit import contributions
from glassformer.extensions.effects.attribution.parts import Contributions
from glassformer.extensions.effects.attribution.weighed import Weighed, weigh
from glassformer.extensions.effects.matters.credit import pieces_words
from glassformer.extensions.effects.matters.credit.parts_of_logit import (
    Grid,
    grid_of,
    head_of,
    part_name,
    rival_of,
    short_name,
    whose_logit,
)
from glassformer.extensions.effects.matters.matters_page import MATTERS
from glassformer.runs.picture import Plot
from glassformer.runs.seen import OfRun, Seen
from glassformer.state.click import Click, cell_of, place_of
from transformer.i18n import say, say_n
from transformer.model.anatomy import Kind, anatomy

MOST_BARS: Final = 12


def pieces_of(run: Seen) -> list[str]:
    """The pieces that get credit: those of the source, or all that a decoder which is alone had read by this step."""
    trace = run.trace
    if "encoder" in trace.kinds:
        return list(trace.src_pieces[: trace.n_tokens("encoder")])
    return list(trace.read_pieces[: trace.row_of(run.view.step) + 1])


def key_of(run: Seen, name: str, *more: Hashable) -> Hashable:
    """Says all that decides something that is measured of a run."""
    trace = run.trace
    return ("credit", name, trace.query, trace.src_ids, trace.read_ids, *more)


class _Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


_Found = TypeVar("_Found", bound=_Sized)


def _made(run: Seen, name: str, work: Callable[[Asked], _Found], *more: Hashable) -> _Found:
    """What some work makes of the step, once for all who look at it."""
    checkpoint, trace, step = run.checkpoint, run.trace, run.view.step
    key = key_of(run, name, step, *more)
    return run.work.compute(key, lambda: work(ask(checkpoint, trace, step)), nbytes=lambda found: found.nbytes)


def has_step(run: Seen) -> bool:
    """Whether there is a step whose piece may be seen."""
    return anatomy(run.checkpoint.config).writes and not run.looking.covered


# ------------------------------------------------------------------------------------------------ pieces


@dataclass(frozen=True)
class Owed(OfRun):
    """What a step owes to each piece, by several measures; None for what is not measured yet."""

    weighed: Weighed
    hiding: Hiding | None = None
    gradient: np.ndarray | None = None
    integrated: Integrated | None = None


def weighed_of(run: Seen) -> Weighed:
    """What the step's row takes from each piece."""
    return _made(run, "weighed", weigh)


def gradient_of(run: Seen) -> np.ndarray:
    """Input x gradient of each piece."""
    return _made(run, "gradient", input_times_gradient)


def owed(run: Seen) -> Owed | None:
    """What is measured at once; None where there is no step whose piece may be seen. Errors as of `Work`."""
    return Owed(run, weighed_of(run), gradient=gradient_of(run)) if has_step(run) else None


PIECES = MATTERS.part("pieces", owed, asks=True)


@PIECES.picture("matters_pieces", say("Pieces"), follows="server")
def pieces(scene: Owed) -> Plot:
    """The pieces, a column for each measure."""
    run = scene.run
    names, step, columns = pieces_of(run), run.view.step + 1, _columns(scene)
    target = run.trace.tgt_pieces[run.view.step]
    title = say("Step {step}: contribution of each piece to {piece}", step=step, piece=target)
    spec = piece_credit_spec(names, columns, title=title, piece_axis=say("Piece"))
    alt = say(
        "For each of {n} pieces, {m} measures of its contribution to step {step}. The table has the same numbers.",
        n=len(names),
        m=len(columns),
        step=step,
    )
    return Plot(spec=spec, alt=alt, how_to_read=pieces_words.how_to_read(run, scene.weighed))


def _columns(scene: Owed) -> list[Column]:
    """The columns of the table; one without numbers says why."""
    run, weighed, hiding = scene.run, scene.weighed, scene.hiding
    gradient, integrated = scene.gradient, scene.integrated
    n, step, view = len(pieces_of(run)), run.view.step, run.looking.view
    none = np.full(n, np.nan)
    not_yet = say("not measured yet; start the measurement below the table")
    lost = none if hiding is None else -hiding.probability_change(step)[:n]
    own_row = say("this piece cannot be hidden, because this step's prediction is computed from its vector")
    rolls = run.checkpoint.config.residual
    told: dict[str, tuple[np.ndarray, str, str, float]] = {
        "attention": (weighed.attention(view.layer, view.head), ".2f", "", 0.0),
        "hidden": (lost, "+.2f", not_yet if hiding is None else own_row, 0.02),
        "gradient": (none if gradient is None else gradient, "+.3f", not_yet, 0.01),
        "integrated": (none if integrated is None else integrated.credit, "+.2f", not_yet, 0.05),
        "moved": (weighed.moved(view.layer, view.head), ".2f", "", 0.0),
        "rollout": (weighed.rollout if rolls else none, ".2f", pieces_words.no_rollout(run), 0.0),
    }
    return [
        Column(pieces_words.NAMES[name], *numbers, meaning=pieces_words.MEANINGS[name])
        for name, numbers in told.items()
    ]


# ------------------------------------------------------------------------------------------------ logit


@dataclass(frozen=True)
class Logit(OfRun):
    """The parts of a logit, or of a difference of two."""

    found: Contributions

    @cached_property
    def values(self) -> np.ndarray:
        """What each part adds [part]."""
        values = self.found.values
        return np.asarray(values[0] if rival_of(self.run) is None else values[0] - values[1])

    @cached_property
    def grid(self) -> Grid:
        """Where each part stands."""
        return grid_of(self.run.checkpoint.config, self.found.parts, self.values)


def open_logit(run: Seen) -> Logit | None:
    """The parts of the logit of the piece that was written, less those of its rival; errors and None as of `owed`."""
    if not has_step(run):
        return None
    rival = rival_of(run)
    others = () if rival is None else (rival,)
    written = run.trace.tgt_ids[run.view.step]
    return Logit(run, _made(run, "contributions", lambda one: contributions(one, others), written, others))


LOGIT = MATTERS.part("logit", open_logit, asks=True)


@LOGIT.picture("matters_parts", say("Logit"), follows="server")
def parts(scene: Logit) -> Plot:
    """The parts by layer and component; a click looks at a head."""
    run, grid = scene.run, scene.grid
    spec = contribution_map_spec(
        grid.values,
        rows=grid.rows,
        columns=grid.columns,
        names=grid.names,
        title=whose_logit(run),
        chosen=grid.cell_of(run.view.kind, run.view.layer, run.view.head),
    )
    alt = say(
        "What each of {n} parts of the decoder adds to the logit, by layer and component. The table has the "
        "same numbers.",
        n=int(np.isfinite(grid.values).sum()),
    )
    return Plot(spec=spec, alt=alt, how_to_read=HOW_TO_READ_MAP, clicked=partial(_head_at, cell_of, grid.heads))


def _head_at(
    read: Callable[[Click], Any], heads: Mapping[Any, tuple[Kind, int, int]], click: Click
) -> Mapping[str, Any] | None:
    head = heads.get(read(click))
    return None if head is None else dict(zip(("kind", "layer", "head"), head, strict=True))


@LOGIT.picture("matters_bars", say("The largest parts"), follows="server")
def bars(scene: Logit) -> Plot:
    """The largest of them; a click looks at a head."""
    found, values, view = scene.found, scene.values, scene.run.view
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    heads = {place: head for place, part in enumerate(found.parts) if (head := head_of(part)) is not None}
    bars = [
        Bar(
            part_name(found.parts[place]),
            short_name(found.parts[place]),
            float(values[place]),
            place if place in heads else None,
            chosen=heads.get(place) == (view.kind, view.layer, view.head),
        )
        for place in order
    ]
    every, bars, rest = bars, bars[:MOST_BARS], order[MOST_BARS:]
    if rest:
        others = say_n("{n} other", "{n} others", len(rest))
        bars.append(Bar(others, others, float(values[rest].sum())))
    figure = contribution_bars_spec(bars, title=say("The largest parts"), every=every)
    alt = say("The {n} parts that raise or lower the logit most, starting with {part}.",
              n=min(MOST_BARS, len(order)), part=bars[0].name)  # fmt: skip
    return Plot(spec=figure, alt=alt, how_to_read=HOW_TO_READ_BARS, clicked=partial(_head_at, place_of, heads))
