"""The Masks page; here its view fields alone: part, mask, sentence, number of pads, changed token."""

from typing import Literal

from glassformer.state.fields import MAX_PLACE, MOST_COMPANIONS, Look, choice, integer, place
from transformer.analysis.mask_checks import MaskName


class MasksLook(Look):
    """What is looked at on the Masks page alone."""

    masks_panel: Literal["masks", "one_row", "checks"] = choice("masks", "masks")  # "one_row" or "checks" is unfolded
    mask: MaskName = choice("mask", "decoder")  # which mask
    sentence: int | None = place("sentence", MOST_COMPANIONS + 1)  # of the batch; None for the first that is padded
    pads: int = integer("pads", MAX_PLACE, 4)  # how many pads are added, from 1
    changed: int | None = place("changed", MAX_PLACE)  # where the causality check changes a piece, from 0
