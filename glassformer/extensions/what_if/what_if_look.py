"""The field of the view of the page Compare."""

from typing import Literal

from glassformer.state.fields import Look, choice

Compared = Literal["auto", "changed", "sentences", "checkpoints", "branches", "heads", "ways"]


class WhatIfLook(Look):
    """View state of the page Compare."""

    compared: Compared = choice("compare", "auto")  # "auto" for the link's second run
