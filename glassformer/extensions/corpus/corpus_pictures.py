"""The page Over a corpus: its parts, labels of measures, a run's data, map of all heads, histogram of one head.

They show a corpus run, not a sentence: each is a `Picture` of this page only, and the parts have no scene of a run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from glassformer.charts.attribution import HOW_TO_READ_HEADS, HOW_TO_READ_SIGNED, Block, head_at, head_effects_spec
from glassformer.charts.theme import capitalised
from glassformer.extensions.corpus.charts import HOW_TO_READ_SPREAD, measure_spread_spec
from glassformer.extensions.corpus.corpus_look import CorpusLook
from glassformer.extensions.corpus.library import tables
from glassformer.extensions.corpus.library.tables import Key, Name, Summaries, Summary
from glassformer.runs.head_measure_labels import UNITS, MeasureLabels, words
from glassformer.runs.map_axes import KIND_NAMES, head_of_kind
from glassformer.runs.picture import Page, Part, PartEntry, Picture, Plot
from glassformer.state.view import MAIN, Click, Slot, View, cell_of
from transformer.i18n import joined, say, say_n
from transformer.model.anatomy import EVERY_PART, Anatomy, Kind

_OF_A_CORPUS: Final[dict[tables.Name, MeasureLabels]] = {
    "same": MeasureLabels(
        say("Same text"),
        say("share of attention on equal tokens"),
        "share",
        say("Mean weight on keys with the same text as the query, not counting the token itself."),
    ),
    "punctuation": MeasureLabels(
        say("Punctuation"),
        say("share of attention on punctuation"),
        "share",
        say("Mean weight on keys that consist of punctuation alone."),
    ),
    "peak": MeasureLabels(
        say("Peak"),
        say("largest weight of the map"),
        "weight",
        say("The largest weight of a line's whole map, without rows that have only one open key."),
    ),
    "effect": MeasureLabels(
        say("Effect"),
        say("effect of removing the head"),
        "nats",
        say(
            "How much lower the output's log-probability is when only this head writes 0. A value below 0 means that "
            "the output is more probable without the head."
        ),
    ),
}
"""What only a corpus run measures."""
MOST_BARS: Final = 60
CORPUS: Final = Page(
    "corpus",
    say("Over a corpus"),
    panel="corpus_panel",
    entries=(
        PartEntry("heads", say("All heads"), "glassformer.extensions.corpus.heads:draw"),
        PartEntry("head", say("One head"), "glassformer.extensions.corpus.heads:draw_one"),
        PartEntry("search", say("Search"), "glassformer.extensions.corpus.search:draw"),
        PartEntry("joined", say("Queries and keys"), "glassformer.extensions.corpus.queries_keys:draw"),
        PartEntry("beside", say("Two runs"), "glassformer.extensions.corpus.beside:draw"),
    ),
)


# A part of this page has nothing of a single run.
PARTS: Final[dict[str, Part[Any]]] = {
    one.name: CORPUS.part(one.name, lambda run: None, of_sentence=False) for one in CORPUS.entries
}


@dataclass(frozen=True, eq=False)
class CorpusScene:
    """All measures of all heads of a corpus run, and what is looked at of them; there is at least one."""

    summaries: Summaries
    parts: Anatomy | None  # of its model; None if its checkpoint is not here
    view: View
    here: float | None = None  # the measure of the selected line
    slot: Slot = MAIN

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The attentions that were measured."""
        there = {key.kind for key in self.summaries}
        return tuple(one for one in EVERY_PART.kinds if one in there)

    @property
    def kind(self) -> Kind:
        """The selected attention."""
        return self.view.kind if self.view.kind in self.kinds else self.kinds[0]

    @cached_property
    def spoken(self) -> dict[Kind, dict[Name, MeasureLabels]]:
        """How measures are spoken of."""
        found = dict[Kind, dict[Name, MeasureLabels]]()
        for kind in self.kinds:
            found[kind] = dict(words(kind, self.parts).items())
            found[kind] |= _OF_A_CORPUS
        return found

    def names(self, *kinds: Kind) -> list[Name]:
        """The measures that there are, of some kinds or of all."""
        there = {key.measure for key in self.summaries if key.kind in (kinds or self.kinds)}
        return [name for name in self.spoken[self.kind] if name in there]

    @cached_property
    def measure(self) -> Name:
        """The selected measure; another where the attention lacks it."""
        names = self.names(self.kind)
        return next(one for one in (self.view.of(CorpusLook).corpus_measure, *names) if one in names)

    @property
    def words(self) -> MeasureLabels:
        """How that is spoken of."""
        return self.spoken[self.kind][self.measure]

    def size(self, kind: Kind) -> tuple[int, int]:
        """The number of layers and of heads."""
        keys = [key for key in self.summaries if key.kind == kind]
        return max(key.layer for key in keys), max(key.head for key in keys)

    @property
    def head(self) -> tuple[int, int]:
        """The selected layer and head, from 0; by default the first."""
        size = self.size(self.kind)
        asked = (self.view.layer or 0, self.view.head or 0)
        return min(asked[0], size[0] - 1), min(asked[1], size[1] - 1)

    @property
    def key(self) -> Key:
        """The measure of the selected head."""
        layer, head = self.head
        return Key(self.kind, layer + 1, head + 1, self.measure)

    @property
    def summary(self) -> Summary | None:
        """What is known of that; None if no line has it."""
        return self.summaries.get(self.key)


# ------------------------------------------------------------------------------------------------ all heads


def _all_heads(scene: CorpusScene) -> Plot:
    """One measure of the heads of every attention that has it in the same unit; a click looks at one."""
    words, name = scene.words, scene.measure
    kinds = [kind for kind in scene.kinds if scene.spoken[kind][name].unit == words.unit]
    blocks = [Block(KIND_NAMES[kind], _means(scene, kind)) for kind in kinds]
    signed = name == "effect"
    read = [
        HOW_TO_READ_HEADS,
        *[HOW_TO_READ_SIGNED] * signed,
        words.meaning,
        say("Each number is the mean over the lines."),
    ]
    if len(kinds) < len(scene.kinds):
        read.append(say("The other kinds of attention have this measure in another unit."))
    return Plot(
        spec=head_effects_spec(
            blocks,
            title=say("All heads: {measure}", measure=words.full_title),
            value_name=UNITS[words.unit],
            signed=signed,
            chosen=(kinds.index(scene.kind), *scene.head),
        ),
        alt=say(
            "{title}, by layer and head, one block per kind of attention. The table below has the same numbers.",
            title=capitalised(words.title),
        ),
        how_to_read=joined(" ", [*read, say("Click a cell to look at its head.")]),
        of_sentence=False,
        clicked=partial(head_of, kinds=kinds, shapes=[block.values.shape for block in blocks]),
    )


def _means(scene: CorpusScene, kind: Kind) -> np.ndarray:
    found = np.full(scene.size(kind), np.nan)
    for key, one in scene.summaries.items():
        if (key.kind, key.measure) == (kind, scene.measure):
            found[key.layer - 1, key.head - 1] = one.mean
    return found


def head_of(
    click: Click, kinds: Sequence[Kind], shapes: Sequence[tuple[int, ...]], part: str = "head"
) -> Mapping[str, Any] | None:
    """What is looked at when a cell of a map of all heads was clicked; None between heads."""
    at = head_at(shapes, cell_of(click))
    return None if at is None else looked_at(kinds[at[0]], at[1], at[2], part)


def looked_at(kind: Kind, layer: int, head: int, part: str) -> dict[str, Any]:
    """What is looked at when a head is opened in a part of the page; layer and head from 0."""
    return {"kind": kind, "layer": layer, "head": head, "corpus_panel": part, "line": None}


all_heads: Final = Picture(PARTS["heads"], "corpus_heads", say("One measure of all heads over a corpus"), _all_heads)


# ------------------------------------------------------------------------------------------------ one head


def _spread(scene: CorpusScene) -> Plot | None:
    """How the measure is spread over the lines."""
    found, words = scene.summary, scene.words
    if found is None:
        return None
    interval = found.interval or (found.mean, found.mean)
    edges, counts = _drawn(found)
    name = head_of_kind(scene.kind, *scene.head)
    outside = int(found.counts[0] + found.counts[-1])
    spec = measure_spread_spec(
        edges,
        counts,
        mean=found.mean,
        interval=interval,
        title=say("{head}: {measure}", head=name, measure=words.full_title),
        value_name=capitalised(words.full_title),
        here=scene.here,
    )
    alt = say(
        "{measure} of {head} over {n:,} lines: mean {mean:.3f}, 95 % interval {low:.3f} to {high:.3f}.",
        measure=capitalised(words.title),
        head=name,
        n=found.n,
        mean=found.mean,
        low=interval[0],
        high=interval[1],
    )
    read = joined(
        " ",
        [
            HOW_TO_READ_SPREAD,
            words.meaning,
            *[say_n("{n:,} line is outside the chart.", "{n:,} lines are outside the chart.", outside)] * bool(outside),
        ],
    )
    return Plot(spec=spec, alt=alt, how_to_read=read, of_sentence=False)


def _drawn(found: Summary) -> tuple[np.ndarray, np.ndarray]:
    """The edges of bars and how many lines each has: from the first that has some to the last, some bins together."""
    there = np.flatnonzero(found.counts[1:-1])
    if not len(there):
        return np.empty(0), np.empty(0, dtype=np.int64)
    together = -(-(int(there[-1]) + 1 - int(there[0])) // MOST_BARS)
    starts = np.arange(there[0] // together * together, there[-1] + 1, together)
    inside = found.counts[1:-1][: starts[-1] + together]
    edges = found.bins.edges
    return edges[[*starts, min(starts[-1] + together, found.bins.n)]], np.add.reduceat(inside, starts)


spread: Final = Picture(PARTS["head"], "corpus_spread", say("One measure of a head over a corpus"), _spread)
