"""Charts of a card of What goes wrong: losses of the right output, and the maps that the mistake changes most."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from glassformer.charts import theme
from glassformer.charts.heatmap import heatmap_spec
from glassformer.charts.marks import Axis, Scale, Series, lines
from glassformer.extensions.effects.mistake_runs import MistakeResult
from glassformer.runs.picture import Plot
from transformer.i18n import say
from transformer.model.anatomy import Attention, anatomy
from transformer.model.config import ModelConfig
from transformer.runs.interventions.targets import ATTENTIONS, part_name

SIDES: Final = (say("As it should be"), say("With the mistake"))
HOW_TO_READ: Final = say(
    "Each row is a query. The stronger a cell's colour, the larger the weight of that key. Hatched cells are closed by "
    "the mask; plain grey cells are NaN."
)
_MOST_BARS: Final = 40  # tokens; above this bars are too thin to distinguish
_LEAST: Final = 1e-4  # of a mean difference of weights; rounding stays far below


def losses(found: MistakeResult) -> Plot:
    """The loss of each token of the right output on both sides, beside each other."""
    kind = "bar" if len(found.ids) <= _MOST_BARS else "markers"
    series = [
        Series(name, read.losses, {"marker": {"color": colour}}, kind, "%{y:.3f}")  # type: ignore[arg-type]
        for name, read, colour in zip(SIDES, found.reads, (theme.GUIDE_COLOR, theme.TARGET_COLOR), strict=True)
        if read is not None
    ]
    title = say("Loss of each token of the correct output")
    title = title if found.is_reference else say("Loss of each token of the output without the mistake")
    tokens = Axis(say("Output token"), [found.right.vocabulary[i] for i in found.ids])
    drawn = lines(title, tokens, Scale(say("Loss (nats)"), {"rangemode": "tozero"}), series, height=340, top=92)
    how = say("Each group is one token. Its two bars show the two cases named above the chart.")
    return Plot(**drawn, how_to_read=how)


@dataclass(frozen=True, eq=False)
class ChangedMap:
    """A map of attention that a mistake changes."""

    attention: Attention
    layer: int
    head: int | None  # None: the mean of all heads, where the mistake changes their number
    sides: tuple[np.ndarray, ...]  # its weights [Q, K] without the mistake and with it

    @property
    def address(self) -> str:
        """What an address calls it."""
        return f"{self.attention.kind}.{self.layer + 1}.{0 if self.head is None else self.head + 1}"

    @property
    def name(self) -> str:
        """What a sentence calls it."""
        return part_name(ATTENTIONS[self.attention.kind], self.layer, self.head)

    @property
    def apart(self) -> float:
        """The mean difference of a weight; infinity with NaN, so where that begins comes first."""
        return float(np.nan_to_num(np.abs(self.sides[1] - self.sides[0]), nan=np.inf).mean())


def changed_maps(found: MistakeResult, config: ModelConfig) -> list[ChangedMap]:
    """The maps that a mistake changes, the most changed first."""
    maps = []
    for one in anatomy(config).attentions:
        for layer in range(one.n_layers):
            both = [None if read is None else read.values.get(one.site(layer, "weights")) for read in found.reads]
            there = [values for values in both if values is not None]  # [H, Q, K] each
            if len(there) == len(both) and there[0].shape == there[1].shape:
                heads = zip(*there, strict=True)
                maps += [ChangedMap(one, layer, head, sides) for head, sides in enumerate(heads)]
            elif len(there) == len(both):
                maps.append(ChangedMap(one, layer, None, tuple(values.mean(axis=0) for values in there)))
    return sorted((one for one in maps if one.apart > _LEAST), key=lambda one: -one.apart)


def map_pair(found: MistakeResult, chosen: ChangedMap) -> list[Plot]:
    """A map on both sides."""
    one, right, drawn = chosen.attention, found.right, []
    reads = (*right.read_tokens[: right.first_row + 1], *(right.vocabulary[i] for i in found.ids[:-1]))
    tokens = {"encoder": right.src_tokens, "decoder": reads}
    for side, read, weights in zip(SIDES, found.reads, chosen.sides, strict=True):
        assert read is not None  # a changed map is of both
        closing = read.values[one.site(chosen.layer, "mask")]  # [1 or H, Q, K]
        title = say("{side}: {what}", side=side, what=chosen.name)
        figure = heatmap_spec(
            weights,
            queries=tokens[one.stack],
            keys=tokens[one.keys_from],
            title=title,
            # Some mistakes give weight to a key that the mask closes: that is drawn, as all that was computed.
            allowed=closing[min(chosen.head or 0, len(closing) - 1)] | (weights != 0),
            colour="source" if one.keys_from == "encoder" else "target",
            limits=None if ((weights < 0) | (weights > 1.01)).any() else (0.0, 1.0),
            rows_sum_to_one=False,
            query_axis=say("Reads"),
            key_axis=say("Looks at"),
        )
        alt = say("{map}. Rows: {rows}; columns: {columns}.", map=title, rows=say("Reads"), columns=say("Looks at"))
        drawn.append(Plot(spec=figure, alt=alt, how_to_read=HOW_TO_READ))
    return drawn
