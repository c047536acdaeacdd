"""The report of an examination: one sentence that sums up, what is wrong first, and the forms in which it is saved.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformer.doctor.patient import Origin, Patient
from transformer.doctor.report import VERDICTS, Finding, Verdict
from words import Sentence, say_n


@dataclass(frozen=True)
class Report:
    """What an examination found.

    Attributes:
        checkpoint: Name of the checkpoint.
        content_hash: Of the checkpoint.
        origin: Where the sentences came from.
        n_sentences: How many were used.
        findings: One a test, in the order of the examination.
    """

    checkpoint: str
    content_hash: str
    origin: Origin
    n_sentences: int
    findings: tuple[Finding, ...]

    @staticmethod
    def of(patient: Patient, findings: Sequence[Finding]) -> Report:
        """The report of a patient."""
        checkpoint = patient.checkpoint
        return Report(checkpoint.name, checkpoint.content_hash, patient.origin, len(patient.samples), tuple(findings))

    def only(self, verdict: Verdict) -> tuple[Finding, ...]:
        """The findings with a verdict."""
        return tuple(one for one in self.findings if one.verdict == verdict)

    @property
    def worst_first(self) -> tuple[Finding, ...]:
        """All findings: what is broken, what to look at, what is well, what says nothing."""
        return tuple(one for verdict in VERDICTS for one in self.only(verdict))

    def summary(self) -> Sentence:
        """One sentence that sums up."""
        broken, look, well = (len(self.only(verdict)) for verdict in ("broken", "look", "well"))
        if broken:
            return say_n(
                "{name} is broken: {n} test says so.", "{name} is broken: {n} tests say so.", broken,
                name=self.checkpoint,
            )  # fmt: skip
        if look:
            return say_n(
                "{name} works as far as was tested, and {n} thing is worth a look.",
                "{name} works as far as was tested, and {n} things are worth a look.",
                look,
                name=self.checkpoint,
            )
        return say_n(
            "{name} is healthy: {n} test found nothing wrong.",
            "{name} is healthy: {n} tests found nothing wrong.",
            well,
            name=self.checkpoint,
        )
