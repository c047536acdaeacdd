"""What-if's own fields of the view."""

from typing import Literal

from ui.state.fields import MAX_STEP, Look, choice, place

Effect = Literal["log_prob", "probability", "kl", "pieces"]
EffectAt = Literal["output", "step"]
Mistake = Literal[
    "auto", "leak", "inverted", "axis", "scale", "twice", "positions", "shifted", "heads", "norms", "nan", "residual",
    "embedding",
]  # fmt: skip
Compared = Literal["auto", "changed", "sentences", "checkpoints", "branches", "heads", "ways"]


class WhatIfLook(Look):
    """What is looked at on the pages What matters, What goes wrong and Compare alone."""

    matters_panel: Literal["heads", "pieces", "logit"] = choice("matters", "heads")  # which part of the page
    # Which card of the page What goes wrong; "auto" is the first that can be shown.
    mistake: Mistake = choice("mistake", "auto")
    effect: Effect = choice("effect", "log_prob")  # how it measures what taking a head away changes
    effect_at: EffectAt = choice("effect_at", "output")  # on the whole output or at the step that is looked at
    begin: Literal["zero", "mean"] = choice("begin", "zero")  # where the line of integrated gradients begins
    # Id of the piece whose logit is taken off that of the piece written; None for none.
    rival: int | None = place("rival", MAX_STEP)
    # What the page Compare compares; "auto" for what the link says of a second run.
    compared: Compared = choice("compare", "auto")
