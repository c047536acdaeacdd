"""The fields of the view of the pages What matters and What goes wrong, and of effects in the table of heads."""

from typing import Literal

from glassformer.state.fields import LONGEST_NAME, MAX_STEP, Look, Reader, choice, flag, place, spelled, text

EffectAt = Literal["output", "step"]


class EffectsLook(Look):
    """What is looked at on these pages alone."""

    # Which part of the page What matters.
    matters_panel: Literal["pieces", "logit", "paths", "depth", "ladder"] = choice("matters", "pieces")
    mistake: str = text("mistake", "auto")  # name of a wiring; "auto" is the first that can be shown
    variant: str = text("variant", most=LONGEST_NAME)  # its changes as an address has them; the first way by default
    changed_map: str = text("map")  # such as cross.2.1; the one that the mistake changes most by default
    # What taking a head away changes is measured on the whole output or at the selected step.
    effect_at: EffectAt = choice("effect_at", "output")
    climb: bool = flag("climb")  # the ladder from minimal to complete is made of a large model, too
    begin: Literal["zero", "mean"] = choice("begin", "zero")  # where the line of integrated gradients begins
    rival: int | None = place("rival", MAX_STEP)  # id of a piece whose logit is taken off that of the one written
    # Percent of the path weight that the drawn edges explain.
    explained: Literal["50", "80", "90"] = choice("explain", "80")
    # The edge that is cut, as in `path_pictures`: part and token of its source, and of its target.
    cut: tuple[int, ...] = spelled("cut", (), Reader.ids, lambda ids: ".".join(map(str, ids)))
