"""The page Doctor: its parts, of which an extension adds one, and its own field of the view."""

from typing import Any, Literal

from glassformer.runs.picture import Page, Part, PartEntry
from glassformer.state.fields import Look, part
from transformer.i18n import say


class DoctorLook(Look):
    """What is looked at on the Doctor page, whatever its part."""

    doctor_panel: Literal["findings"] = part("doctor", "findings", page="doctor")


DOCTOR = Page(
    "doctor",
    say("Doctor"),
    panel="doctor_panel",
    entries=(PartEntry("findings", say("Findings"), "glassformer.extensions.doctor.doctor_panels:draw"),),
)
FINDINGS: Part[Any] = DOCTOR.part("findings", lambda run: None)  # it has no pictures
