"""The Positions page; here its view fields alone: part, measure, shift, dimensions, number of positions."""

from typing import Literal

from glassformer.state.fields import MAX_PLACE, Look, choice, flag, integer, places

PositionsPanel = Literal["table", "similarity", "shift", "sentence", "rotations", "pair", "distance"]
MAX_DIMS = 12


class PositionsLook(Look):
    """What is looked at on the Positions page alone."""

    cosine: bool = flag("cosine")  # directions are compared instead of dot products
    apart: bool = flag("apart", default=True)  # the table of positions has its sines before its cosines
    positions_panel: PositionsPanel = choice("positions", "table")  # which part of the page
    shift: int = integer("shift", MAX_PLACE, 1)  # by how many positions they are shifted, from 1
    dims: tuple[int, ...] = places("dims", most=MAX_PLACE, count=MAX_DIMS)  # whose curves are drawn, from 0
    drawn: int | None = integer("drawn", MAX_PLACE)  # how many positions are drawn; None for the page's own choice
