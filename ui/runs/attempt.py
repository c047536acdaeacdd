"""Errors of a computation, said in a sentence instead of a traceback."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from charts.theme import capitalised
from transformer.errors import GlassformerError
from ui.runs.work import BusyError
from ui.shared import drawing
from ui.shared.door import st
from words import joined

_Result = TypeVar("_Result")


def attempt(work: Callable[[], _Result], *, missing: str = "") -> _Result | None:
    """Do some work; if that cannot be done, a sentence says why.

    Args:
        work: Does it.
        missing: A sentence before that one, if only a part of the page is missing.

    Returns:
        The result; None if there is none.
    """
    try:
        return work()
    except (GlassformerError, BusyError) as error:
        st.error(drawing.plain(joined(" ", filter(None, (missing, capitalised(error.sentence))))))
        return None
