"""The page Step through decoding."""

from typing import Literal

from glassformer.state.fields import MAX_PLACE, Look, choice, place

Unsureness = Literal["entropy", "ten", "rest"]


class StepLook(Look):
    """What is looked at on the Step page alone."""

    unsure: Unsureness = choice("unsure", "entropy")  # how it is measured how unsure a step was
    hidden: int | None = place("hidden", MAX_PLACE)  # the token that an encoder with an MLM head is not shown, from 0
