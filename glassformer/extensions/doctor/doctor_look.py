"""The Doctor page's own field of the view."""

from typing import Literal

from glassformer.state.fields import Look, part


class DoctorLook(Look):
    """What is looked at on the Doctor page, whatever its part."""

    doctor_panel: Literal["findings"] = part("doctor", "findings", page="doctor")
