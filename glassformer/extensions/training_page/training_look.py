"""The Training page's own fields of the view."""

from typing import Literal

from glassformer.state.fields import Look, choice, either


class TrainingLook(Look):
    """View state of the Training page."""

    training_panel: Literal["watch", "curves", "sentence"] = choice("training", "curves")  # which part of the page
    by_step: bool | None = either("steps")  # its curves go by the step, not by the epoch; None where that helps
