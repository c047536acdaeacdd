"""The page Doctor: its part Findings; an extension adds another."""

from typing import Any

from glassformer.runs.picture import Page, Part, PartEntry
from transformer.i18n import say

DOCTOR = Page(
    "doctor",
    say("Doctor"),
    panel="doctor_panel",
    entries=(PartEntry("findings", say("Findings"), "glassformer.extensions.doctor.page.doctor_panels:draw"),),
)
FINDINGS: Part[Any] = DOCTOR.part("findings", lambda run: None)  # it has no pictures
