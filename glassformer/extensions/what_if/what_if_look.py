"""The field of the view of the page Compare."""

from typing import Literal

from glassformer.state.fields import Look, choice

Compared = Literal["auto", "changed", "sentences", "checkpoints", "branches", "heads", "ways"]


class WhatIfLook(Look):
    """What is looked at on the page Compare alone."""

    compared: Compared = choice("compare", "auto")  # "auto" for what the link says of a second run
