"""The picture of the part Two runs: the difference of one measure for every head that both have.

Knows nothing of Streamlit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from glassformer.charts.theme import capitalised
from glassformer.extensions.corpus.charts.corpus_beside import HOW_TO_READ, Differences, head_differences_spec
from glassformer.extensions.corpus.library.paired import CHANCE, Difference, Head
from glassformer.extensions.corpus.page.corpus_pictures import CORPUS, Scene, head_of, of_no_run
from glassformer.runs.head_measures import UNITS
from glassformer.runs.picture import Part, Picture, Plot
from glassformer.runs.sides import KIND_NAMES
from glassformer.state.view import MAIN, Slot
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.anatomy import Kind

BESIDE: Final[Part[Any]] = CORPUS.part("beside", of_no_run, of_sentence=False)


@dataclass(frozen=True, eq=False)
class Beside:
    """The differences of a measure between two runs, second minus first; at least one."""

    scene: Scene  # of the first run
    found: Mapping[Head, Difference]
    names: tuple[str, str]  # of the runs
    slot: Slot = MAIN

    @property
    def kinds(self) -> list[Kind]:
        """The attentions that have the measure in the same unit."""
        spoken, name = self.scene.spoken, self.scene.measure
        there = {kind for kind, _, _ in self.found}
        return [one for one in self.scene.kinds if one in there and spoken[one][name].unit == self.scene.words.unit]

    @property
    def shown(self) -> dict[Head, Difference]:
        """The heads of those."""
        kinds = self.kinds
        ordered = sorted(self.found, key=lambda one: (self.scene.kinds.index(one[0]), *one[1:]))
        return {head: self.found[head] for head in ordered if head[0] in kinds}


def by_chance(found: Mapping[Head, Difference]) -> Sentence:
    """How many comparisons these are, how many intervals exclude 0, and how many would by chance."""
    n, marked = len(found), sum(one.excludes_0 for one in found.values())
    return joined(
        " ",
        [
            say_n(
                "{n:,} head is compared; the interval excludes 0 for {marked:,}.",
                "{n:,} heads are compared; the interval excludes 0 for {marked:,}.",
                n,
                marked=marked,
            ),
            say("If no head differed, about {chance:.0f} would be marked by chance, 1 in 20.", chance=CHANCE * n),
        ],
    )


def _differences(of: Beside) -> Plot:
    words, shown = of.scene.words, of.shown
    blocks = [_block(kind, {head: one for head, one in shown.items() if head[0] == kind}) for kind in of.kinds]
    kind, layer, head = of.scene.kind, *of.scene.head
    chosen = (of.kinds.index(kind), layer, head) if (kind, layer + 1, head + 1) in shown else None
    first, second = of.names
    spec = head_differences_spec(
        blocks,
        title=say("{measure}: {second} − {first}", measure=capitalised(words.full_title), first=first, second=second),
        value_name=UNITS[words.unit],
        chosen=chosen,
    )
    return Plot(
        spec=spec,
        alt=say(
            "{title}, by layer and head: {second} minus {first}. The table below has the same numbers.",
            title=capitalised(words.title),
            first=first,
            second=second,
        ),
        how_to_read=joined(" ", [HOW_TO_READ, words.meaning, by_chance(shown)]),
        of_sentence=False,
        clicked=partial(_head_clicked, kinds=of.kinds, shapes=[block.means.shape for block in blocks]),
    )


def _head_clicked(*args: Any, **options: Any) -> Mapping[str, Any] | None:
    found = head_of(*args, **options)
    return None if found is None else {**found, "corpus_panel": "beside"}


def _block(kind: Kind, found: Mapping[Head, Difference]) -> Differences:
    size = max(layer for _, layer, _ in found), max(head for _, _, head in found)
    means, low, high, lines = (np.full(size, np.nan) for _ in range(4))
    for (_, layer, head), one in found.items():
        at = layer - 1, head - 1
        means[at], lines[at] = one.mean, one.n
        if one.low is not None and one.high is not None:
            low[at], high[at] = one.low, one.high
    return Differences(KIND_NAMES[kind], means, low, high, lines)


differences: Final = Picture(BESIDE, "corpus_beside", say("One measure in two corpus runs"), _differences)
