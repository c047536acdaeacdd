"""Errors of a computation, said in a sentence instead of a traceback, and whom to ask about a model that is wrong."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from glassformer.charts.theme import capitalised
from glassformer.server.work import BusyError
from glassformer.shared import drawing, menu
from glassformer.shared.door import st
from glassformer.state import session
from glassformer.state.link import Link
from transformer.errors import GlassformerError, NotFiniteError
from transformer.i18n import joined, say

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
