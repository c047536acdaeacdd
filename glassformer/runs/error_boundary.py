"""Error boundary of a page: an error as a sentence, a link to the doctor page; the interface `Examiner`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from glassformer.charts.theme import capitalised
from glassformer.server.model_runner import BusyError
from glassformer.shared import drawing, menu
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.link import Link
from transformer.errors import GlassformerError, NotFiniteError
from transformer.extensions import provided
from transformer.i18n import joined, say

if TYPE_CHECKING:
    from glassformer.server.jobs import Job
    from transformer.checkpoint.load import Checkpoint

DOCTOR: Final = ":material/stethoscope:"
_Result = TypeVar("_Result")


def attempt(work: Callable[[], _Result], *, missing: str = "") -> _Result | None:
    """Do some work; if it cannot be done, a sentence says why, after `missing` where that is a part of the page."""
    try:
        return work()
    except (GlassformerError, BusyError) as error:
        st.error(drawing.with_code(joined(" ", filter(None, (missing, capitalised(error.sentence))))))
        if isinstance(error, NotFiniteError) and not session.asked().interventions:
            to_the_doctor(session.asked())
        return None


def to_the_doctor(link: Link) -> None:
    """Draw the link to the page that says what is wrong with a checkpoint, which the link names."""
    there = replace(link, revision="", view=link.view.but(doctor_panel="findings"))
    menu.link("doctor", say("Is this model healthy? Ask the doctor"), there, icon=DOCTOR)


class Examiner:
    """Tests of a checkpoint."""

    def counts(self, checkpoint: Checkpoint, job: Job) -> tuple[int, int, int] | None:
        """How many tests find it broken, worth a look, and well; None on failure. It queues; stopping `job` ends it."""
        raise NotImplementedError


def examiner() -> Examiner | None:
    """The first there is; None without any."""
    return next(iter(provided("examines")), None)
