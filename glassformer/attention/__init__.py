"""The page Attention: all heads, one map, flow, one weight, no parameters, what heads do; its fields of the view."""

from typing import Literal

from glassformer.state.fields import MAX_LAYER, Look, flag, part, places, text

AttentionPanel = Literal["overview", "head", "flow", "walk", "plain", "table"]
MOST_HEADS = 128


class AttentionLook(Look):
    """What is looked at on the Attention page alone."""

    # The heads that the part Flow shows, from 0, where no single head is chosen; none of them for all.
    heads: tuple[int, ...] = places("heads", most=MAX_LAYER, count=MOST_HEADS)
    follow: bool = flag("follow")  # the flow view shows the row of the current step
    panel: AttentionPanel = part("panel", "overview", page="attention")
    measure: str = text("measure", "entropy_share")  # of the table of heads; a name of `runs.head_measure_labels`
