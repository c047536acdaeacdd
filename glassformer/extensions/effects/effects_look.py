"""The fields of the view of the pages What matters and What goes wrong, and of effects in the table of heads."""

from typing import Literal

from glassformer.state.fields import MAX_STEP, Look, choice, place

EffectAt = Literal["output", "step"]
Mistake = Literal[
    "auto", "leak", "inverted", "axis", "scale", "twice", "positions", "shifted", "heads", "norms", "nan", "residual",
    "embedding",
]  # fmt: skip


class EffectsLook(Look):
    """What is looked at on these pages alone."""

    matters_panel: Literal["pieces", "logit"] = choice("matters", "pieces")  # which part of the page
    mistake: Mistake = choice("mistake", "auto")  # which card; "auto" is the first that can be shown
    # What taking a head away changes is measured on the whole output or at the selected step.
    effect_at: EffectAt = choice("effect_at", "output")
    begin: Literal["zero", "mean"] = choice("begin", "zero")  # where the line of integrated gradients begins
    rival: int | None = place("rival", MAX_STEP)  # id of a piece whose logit is taken off that of the one written
