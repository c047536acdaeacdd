"""The page Teacher forcing: the reference, its losses, and what the model writes by itself."""

from glassformer.state.fields import MAX_PLACE, Look, flag, place


class ForcingLook(Look):
    """What is looked at of a right output."""

    at: int | None = place("at", MAX_PLACE)  # the piece of a reference, from 0; None for the one of the step
    ends: bool = flag("ends")  # the end piece after the reference of a decoder-only model is judged, too
