"""Heatmap of head differences between two corpus runs, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import PALE, PALE_FROM, finite, note, one_side, table
from glassformer.charts.head_effects import NUMBER, Block, head_effects_spec
from glassformer.charts.hover import hover, with_number
from glassformer.charts.theme import Spec, literal
from transformer.i18n import say

HOW_TO_READ = say(
    "Each cell is one head: the mean over the lines of the second run's value minus the first run's. The colour "
    "scale is centred on 0. An asterisk marks a difference whose 95 % interval excludes 0. Click a cell to choose "
    "its head."
)


@dataclass(frozen=True, eq=False)
class Differences:
    """The heads of one attention [layer, head]; NaN where there is no number."""

    name: str
    means: np.ndarray
    low: np.ndarray  # the interval of each
    high: np.ndarray
    lines: np.ndarray  # how many each is of

    @property
    def marked(self) -> np.ndarray:
        """Where the interval excludes 0."""
        return (self.low > 0) | (self.high < 0)


def head_differences_spec(
    blocks: Sequence[Differences], *, title: str, value_name: str, chosen: tuple[int, int, int] | None = None
) -> Spec:
    """Draw the difference of each head, as `head_effects_spec` does; `chosen` is block, layer and head."""
    plain = [Block(block.name, block.means) for block in blocks]
    spec = head_effects_spec(plain, title=title, value_name=value_name, signed=True, chosen=chosen)
    layout, row = spec["layout"], 0
    texts = list[list[str]]()
    most = one_side([value for block in blocks for value in block.means.flat])
    n_heads = max((block.means.shape[1] for block in blocks), default=0)
    for block in blocks:
        texts += [[""] * n_heads] * bool(texts)
        for layer, marks in enumerate(block.marked):
            texts.append([_interval(block, layer, head) for head in range(len(marks))] + [""] * (n_heads - len(marks)))
            for head in np.flatnonzero(marks).tolist():
                pale = abs(block.means[layer, head]) / most > PALE_FROM
                font = {"font": {"color": PALE if pale else theme.MARK_COLOR, "size": 15}}
                layout["annotations"].append(note(head + 0.4, row + layer - 0.12, "*") | font)
        row += len(block.means) + 1
    for trace in spec["data"]:
        trace["text"] = texts
        number = with_number(literal(value_name), f"%{{z:{NUMBER}}}")
        trace["hovertemplate"] = hover("%{customdata[0]}, %{customdata[1]}", number, "%{text}")
    names = [say("Kind of attention"), say("layer"), say("head"), say("lines"), value_name, say("from"), say("to")]
    table(layout, names, [row for block in blocks for row in _rows(block)])
    return spec | {"how_to_read": HOW_TO_READ}


def _interval(block: Differences, layer: int, head: int) -> str:
    low, high = block.low[layer, head], block.high[layer, head]
    if not np.isfinite(low):
        return ""
    return say("95 % interval {low:.3g} to {high:.3g}", low=low, high=high)


def _rows(block: Differences) -> list[list[object]]:
    there = zip(*np.nonzero(np.isfinite(block.means)), strict=True)
    return [
        [
            block.name,
            int(layer) + 1,
            int(head) + 1,
            int(block.lines[layer, head]),
            *(finite(values[layer, head]) for values in (block.means, block.low, block.high)),
        ]
        for layer, head in there
    ]
