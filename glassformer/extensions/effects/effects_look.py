"""The fields of the view of the pages What matters and What goes wrong, and of effects in the table of heads."""

from typing import Literal

from glassformer.state.fields import LONGEST_NAME, MAX_STEP, Look, choice, place, text

EffectAt = Literal["output", "step"]


class EffectsLook(Look):
    """What is looked at on these pages alone."""

    matters_panel: Literal["pieces", "logit", "depth"] = choice("matters", "pieces")  # which part of the page
    mistake: str = text("mistake", "auto")  # name of a wiring; "auto" is the first that can be shown
    variant: str = text("variant", most=LONGEST_NAME)  # its changes as an address has them; the first way by default
    changed_map: str = text("map")  # such as cross.2.1; the one that the mistake changes most by default
    # What taking a head away changes is measured on the whole output or at the selected step.
    effect_at: EffectAt = choice("effect_at", "output")
    begin: Literal["zero", "mean"] = choice("begin", "zero")  # where the line of integrated gradients begins
    rival: int | None = place("rival", MAX_STEP)  # id of a piece whose logit is taken off that of the one written
