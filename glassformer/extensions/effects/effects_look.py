"""The fields of the view of the pages What matters and What goes wrong."""

from typing import Literal

from glassformer.state.fields import MAX_STEP, Look, choice, place

Effect = Literal["log_prob", "probability", "kl", "pieces"]
EffectAt = Literal["output", "step"]
Mistake = Literal[
    "auto", "leak", "inverted", "axis", "scale", "twice", "positions", "shifted", "heads", "norms", "nan", "residual",
    "embedding",
]  # fmt: skip


class EffectsLook(Look):
    """What is looked at on these pages alone."""

    matters_panel: Literal["heads", "pieces", "logit"] = choice("matters", "heads")  # which part of the page
    mistake: Mistake = choice("mistake", "auto")  # which card; "auto" is the first that can be shown
    effect: Effect = choice("effect", "log_prob")  # how it measures what taking a head away changes
    effect_at: EffectAt = choice("effect_at", "output")  # on the whole output or at the selected step
    begin: Literal["zero", "mean"] = choice("begin", "zero")  # where the line of integrated gradients begins
    rival: int | None = place("rival", MAX_STEP)  # id of a piece whose logit is taken off that of the one written
