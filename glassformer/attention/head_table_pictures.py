"""Head measures of a run for the part "What heads do", and pictures of one measure: all heads, rows of one head.

`transformer.analysis.head_statistics` has the measures and their sources. No head gets a label: the values are
measured for this sentence alone.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from glassformer.attention import AttentionLook
from glassformer.attention.drawn_maps import ATTENTION
from glassformer.charts.grammar import SIDES, at_mean
from glassformer.charts.grid import HOW_TO_READ_GROUPS, bracket, head_named
from glassformer.charts.hover import bold
from glassformer.charts.marks import Axis, Numbers, Scale, Series, heat, lines
from glassformer.charts.theme import capitalised
from glassformer.runs.head_measure_labels import UNITS, MeasureLabels, words
from glassformer.runs.map_axes import KIND_NAMES, sides, size_of
from glassformer.runs.picture import Plot
from glassformer.runs.viewed_run import ModelAccess, Scene, Viewed, ViewedRun
from glassformer.state.view import cell_of, fields
from transformer.analysis.head_statistics import (
    Measure,
    Name,
    measure_by_layer,
    measure_maps,
    norm_share,
    output_projections,
    outputs_site,
)
from transformer.i18n import Sentence, joined, say
from transformer.model.anatomy import EVERY_PART, Kind, anatomy
from transformer.runs.trace import LabelledMaps

OTHERWISE: Name = "entropy_share"
HOW_TO_READ_HEADS = say("Each cell is one head. The frame marks the chosen head.")
HOW_TO_READ_ROWS = say(
    "Each bar is the measure's value for one row of the head's map. The dotted line is the mean of these values, "
    "which is the number in the table."
)
MOST_NAMED = 2  # keys of a head
NEIGHBOURS = {-1: say("the token before"), 0: say("itself"), 1: say("the token after")}
NOT_CHOSEN = say(
    "You have not chosen a head yet. This one is shown because its measure is furthest from the mean of all heads."
)


# ------------------------------------------------------------------------------------------------ what is measured


@dataclass(frozen=True)
class LookedAt:
    """The keys on which most rows of one head have their largest weight."""

    keys: list[tuple[str, int]]  # each as it is called, and of how many rows
    n_rows: int


@dataclass(frozen=True)
class Heads(Scene):
    """All measures of the heads of the selected attention."""

    measures: dict[Name, Measure]  # none where no row has a key that may be seen

    @cached_property
    def in_words(self) -> list[list[Sentence]] | None:
        """Where each head has the largest weights of its rows [layer][head]; None for a run that keeps no maps."""
        return None if self._looked_at is None else [[_short(one) for one in layer] for layer in self._looked_at]

    @cached_property
    def of_chosen(self) -> Sentence | None:
        """The same of the head that is chosen, as a sentence; None if there is none."""
        layer, head = self.run.view.layer, self.run.view.head
        if layer is None or head is None or self._looked_at is None:
            return None
        of = self._looked_at[layer][head]
        (first, n), *others = of.keys
        name, n_rows = head_name(layer, head), of.n_rows
        if not others:
            return say("{head} mostly looks at {first} ({n} of {all} rows).", head=name, first=first, n=n, all=n_rows)
        other, m = others[0]
        return say(
            "{head} mostly looks at {first} ({n} of {all} rows), then at {other} ({m}).",
            head=name,
            first=first,
            n=n,
            all=n_rows,
            other=other,
            m=m,
        )

    @cached_property
    def _looked_at(self) -> list[list[LookedAt]] | None:
        run, trace = self.run, self.run.visible.trace
        if not getattr(trace, "keeps_maps", True):
            return None
        axes, rows = sides(run.visible, run.view.kind), self.measures["largest"].rows
        strongest = trace.maps(run.view.kind)[:, :, : len(rows), : len(axes.keys)].argmax(axis=-1)
        is_own = run.view.kind != "cross"
        return [[_looked_at(keys, rows, axes.keys, is_own) for keys in layer] for layer in strongest]

    @cached_property
    def spoken(self) -> dict[Name, MeasureLabels]:
        """How they are spoken of."""
        checkpoint = self.run.checkpoint
        return words(self.run.view.kind, None if checkpoint is None else anatomy(checkpoint.config))

    @property
    def name(self) -> Name:
        """The one that the charts show; another where this attention lacks it."""
        asked = self.run.view.of(AttentionLook).measure
        return next(name for name in (asked, OTHERWISE, *self.measures) if name in self.measures)

    @property
    def means(self) -> np.ndarray:
        """That measure of each head [layer, head]."""
        return self.measures[self.name].means()

    @property
    def shown(self) -> tuple[int, int]:
        """The head that is chosen, else the one furthest from the mean of all, in the chosen layer if there is one.

        The address says nothing of the page's own choice.
        """
        layer, head, means = self.run.view.layer, self.run.view.head, self.means
        if layer is not None and head is not None:
            return layer, head
        apart = np.nan_to_num(np.abs(means - np.nanmean(means)) if np.isfinite(means).any() else means)
        if layer is None:
            layer = int(apart.max(axis=1).argmax())
        return layer, int(apart[layer].argmax())


def open_heads(run: ViewedRun) -> Heads | None:
    """The measures, made once for all, in the model's thread; None where no row has a key that may be seen.

    Errors as of `ModelAccess`.
    """
    found = heads_of(run, run.work, written(run))
    return found if found.measures else None


def written(run: ViewedRun) -> np.ndarray:
    """What each head writes before W_O [layer, head, query, d_head]; errors as of `open_heads`."""
    sites = [outputs_site(run.view.kind, layer) for layer in range(len(run.trace.maps(run.view.kind)))]
    found = run.work.replay(run.checkpoint, run.trace, sites)
    return np.stack([found[name] for name in sites])


def heads_of(run: Viewed, work: ModelAccess, heads: np.ndarray | None) -> Heads:
    """The same, of given maps too, of which those are left that weights alone give.

    Without what `heads` write the share of the output's length is missing.
    """
    kind = run.view.kind
    if not isinstance(run, ViewedRun):
        maps = cast("LabelledMaps", run.visible.trace)
        key: Hashable = maps.content_hash
        make = partial(measure_maps, maps.maps(kind), maps.mask(kind), kind)
    else:
        trace, n_rows = run.trace, run.visible.n_rows if hides(run) else None
        # At 512 pieces this takes a second or more, so it is neither done again at a click nor by two at a time.
        key = (trace.query, trace.src_ids, trace.read_ids, n_rows, heads is not None)
        make = partial(_measured, run, heads, n_rows)

    def nbytes(found: dict[Name, Measure]) -> int:
        return sum(one.values.nbytes + one.rows.nbytes for one in found.values())

    return Heads(run, work.compute(("head_measures", kind, key), make, nbytes=nbytes))


def _measured(run: ViewedRun, heads: np.ndarray | None, n_rows: int | None) -> dict[Name, Measure]:
    kind, shares = run.view.kind, None
    if heads is not None:
        shares = norm_share(heads, output_projections(run.checkpoint.model, kind, n_heads=heads.shape[1]))
    return measure_by_layer(run.checkpoint, run.trace, kind, shares=shares, n_rows=n_rows)


def hides(run: Viewed) -> bool:
    """Whether rows may be hidden; the source is always seen, and so are given maps."""
    of_decoder = EVERY_PART.attention(run.view.kind).stack == "decoder"
    return isinstance(run, ViewedRun) and run.view.guess and of_decoder


def _looked_at(strongest: np.ndarray, rows: np.ndarray, keys: Sequence[str], is_own: bool) -> LookedAt:
    """Of one head; neighbours are named where they are half of the rows."""
    places = np.flatnonzero(rows)
    apart = Counter((strongest[places] - places).tolist())
    near = {by for by in NEIGHBOURS if is_own and 2 * apart[by] >= len(places) > 1}
    found = Counter[str]()
    for place in map(int, places):
        key = int(strongest[place])
        found[NEIGHBOURS[key - place] if key - place in near else say("“{key}”", key=keys[key])] += 1
    return LookedAt(found.most_common(MOST_NAMED), len(places))


def _short(of: LookedAt) -> Sentence:
    return joined(", ", [say("{key} {n}/{all}", key=key, n=n, all=of.n_rows) for key, n in of.keys])


TABLE = ATTENTION.part("table", open_heads)


# ------------------------------------------------------------------------------------------------ the pictures


def head_name(layer: int, head: int) -> str:
    """What a head is called."""
    return say("Layer {layer}, head {head}", layer=layer + 1, head=head + 1)


@TABLE.picture("head_table_map", say("Measure in the charts"), follows="still")
def all_heads(found: Heads) -> Plot:
    """One measure of all heads; a click chooses a head."""
    kind, said, group = found.run.view.kind, found.spoken[found.name], size_of(found.run)
    n_layers, n_heads = found.means.shape
    drawn = heat(
        say("All heads: {measure}", measure=said.full_title),
        Axis(say("Layer"), range(1, n_layers + 1)),
        Axis(say("Head"), range(1, n_heads + 1), says=[bold(head_named(head, group)) for head in range(n_heads)]),
        Numbers(UNITS[said.unit], found.means),
        limits=None,
        marked_cell=found.shown,
        written=".2f" if n_heads <= 12 else "",  # more numbers would touch
        height=int(np.clip(110 + 34 * n_layers, 200, 640)),
    )
    bracket(drawn["spec"]["layout"], n_heads, group)
    alt = say(
        "{attention}, one cell per layer and head: {measure}. The table has the same numbers.",
        attention=KIND_NAMES[kind],
        measure=said.title,
    )
    read = [HOW_TO_READ_HEADS, said.meaning, *[HOW_TO_READ_GROUPS] * (group > 1)]
    how_to_read = joined(" ", [*read, say("Click a cell to look at its head.")])
    clicked = fields(cell_of, lambda cell: chosen(kind, *cell))
    return Plot(spec=drawn["spec"], alt=alt, how_to_read=how_to_read, clicked=clicked)


def chosen(kind: Kind, layer: int, head: int) -> dict[str, Any]:
    """What is looked at when a head is chosen."""
    return {"kind": kind, "layer": layer, "head": head, "heads": ()}


def opened(kind: Kind, layer: int, head: int) -> dict[str, Any]:
    """The same when its map is opened, too."""
    return {**chosen(kind, layer, head), "panel": "head"}


@TABLE.picture("head_table_rows", say("One row"))
def one_head(found: Heads) -> Plot:
    """The measure in each row of one head."""
    view, one, said, chosen = found.run.view, found.measures[found.name], found.spoken[found.name], found.shown
    axes, means = sides(found.run.visible, view.kind), found.means
    read = [
        *[NOT_CHOSEN] * (view.layer is None or view.head is None),
        HOW_TO_READ_ROWS,
        say(
            "The mean over this head's rows is {mean:.2f}, higher than in {lower} of the other {others} heads.",
            mean=means[chosen],
            lower=int((means < means[chosen]).sum()),
            others=means.size - 1,
        ),
    ]
    if not one.rows[: len(axes.queries)].all():
        read.append(say("Rows for which the measure is undefined have no bar."))
    values, unit = one.values[chosen][: len(axes.queries)], capitalised(UNITS[said.unit])
    look = {"marker": {"color": SIDES[axes.query_side][1]}}
    drawn = lines(
        say("{head}: {measure}", head=head_name(*chosen), measure=said.full_title),
        Axis(axes.query_axis, axes.queries),
        Scale(unit, {"rangemode": "tozero", "fixedrange": True} | ({"range": [0, 1]} if said.share else {})),
        [Series(unit, values, look, "bar", chosen=axes.current)],
        height=340,
        shapes=at_mean(values),
    )
    return Plot(**drawn, how_to_read=joined(" ", read), fit=True)
