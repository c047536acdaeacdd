"""Maps that were given, as a `Looking` is of a run; and maps of a run, one layer at a time.

There are no steps and nothing is hidden; the labels are those that came with the maps.

Panels ask for one layer, or say what they make of each: a mean, a maximum, tiles. Of a run that keeps its maps they
get it at once; of another it is computed in the model's thread and kept for all visitors, by the work's key.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from glassformer.state.view import MAIN, Slot, View
from transformer.model.anatomy import EVERY_PART, Kind
from transformer.runs.labelled_maps import LabelledMaps
from transformer.text import SPACE_MARK

Work = Callable[[np.ndarray, int], np.ndarray]
"""Makes of a layer's maps [head, query, key] and its place, from 0, what is kept of them."""


class ByLayer(Protocol):
    """Makes the maps of a run again; `glassformer.runs.loading.by_layer` does, given a checkpoint and a trace."""

    def __call__(self, kind: Kind, work: Work, *, key: Hashable, layers: tuple[int, ...] | None) -> list[np.ndarray]:
        """What the work makes of each layer, or of those that are named; the key says which work it is."""


def whole(maps: np.ndarray, layer: int) -> np.ndarray:
    """All heads of a layer."""
    return maps


def mean(maps: np.ndarray, layer: int) -> np.ndarray:
    """The mean of a layer's heads [query, key]."""
    return np.asarray(maps.mean(axis=0))


def maximum(maps: np.ndarray, layer: int) -> np.ndarray:
    """The largest weight of any of a layer's heads [query, key]."""
    return np.asarray(maps.max(axis=0))


BYTE_LEVEL: Final = "Ġ"
GOES_ON: Final = "##"


@dataclass(frozen=True)
class GivenLooking:
    """Given maps, and what of them is looked at."""

    trace: LabelledMaps  # the maps, which stand where a run's trace does
    view: View  # what is looked at; its attention, layer and head are there
    slot: Slot = MAIN  # where it is drawn

    def each(
        self, kind: Kind, work: Work, *, key: Hashable, layers: tuple[int, ...] | None = None
    ) -> list[np.ndarray]:
        """As `Looking.each`."""
        maps = self.trace.maps(kind)
        return [work(maps[layer], layer) for layer in (range(len(maps)) if layers is None else layers)]

    def heads(self, kind: Kind, layer: int) -> np.ndarray:
        """The maps of all heads of a layer [head, query, key]."""
        return np.asarray(self.trace.maps(kind)[layer])


def marked(labels: Sequence[str]) -> list[str]:
    """The labels with ▁ where words begin, as SentencePiece marks them, whichever mark they have themselves.

    Byte-level BPE has Ġ where words begin, WordPiece has ## where they go on. Labels without marks stay as they are.
    """
    if any(label.startswith(BYTE_LEVEL) for label in labels):
        return [SPACE_MARK + label[1:] if label.startswith(BYTE_LEVEL) else label for label in labels]
    if any(label.startswith(GOES_ON) for label in labels):
        return [label[2:] if label.startswith(GOES_ON) else SPACE_MARK + label for label in labels]
    return list(labels)


def has_words(maps: LabelledMaps) -> bool:
    """Whether labels say where words begin."""
    sides = (side for one in maps.attentions for side in (one.queries, one.keys))
    return any(label.startswith(SPACE_MARK) for side in sides for label in marked(side))


def can_roll(maps: LabelledMaps, kind: Kind) -> bool:
    """Whether weights can be followed through the layers: queries and keys are the same tokens, in all it takes."""
    attention, one = EVERY_PART.attention(kind), maps.of(kind)
    if attention.stack == attention.keys_from:
        return one.queries == one.keys and one.sums_to_one
    if maps.kinds != EVERY_PART.kinds or not (can_roll(maps, "encoder") and can_roll(maps, "decoder")):
        return False
    fits = one.queries == maps.of("decoder").queries and one.keys == maps.of("encoder").keys
    return fits and one.sums_to_one and len(one.weights) == len(maps.maps("decoder"))
