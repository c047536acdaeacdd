"""The Doctor page's own field of the view."""

from typing import Literal

from glassformer.state.fields import Look, choice


class DoctorLook(Look):
    """What is looked at on the Doctor page, whatever its part."""

    doctor_panel: Literal["findings", "parameters"] = choice("doctor", "findings")  # which part of the page
