"""The page Doctor: its part Findings; an extension adds another."""

from typing import Any

from glassformer.runs.picture import Page, Part
from transformer.i18n import say

DOCTOR = Page("doctor", say("Doctor"), panel="doctor_panel")
FINDINGS: Part[Any] = DOCTOR.part("findings", say("Findings"), lambda run: None)  # it has no pictures
