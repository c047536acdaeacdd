"""Errors of a computation, said in a sentence instead of a traceback."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from transformer.errors import GlassformerError
from ui.runs.work import BusyError
from ui.shared import drawing

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
        st.error(drawing.plain(f"{missing} {sentence(error)}"))
        return None


def sentence(error: Exception) -> str:
    """An error's message as a sentence of its own."""
    text = str(error)
    return text[:1].upper() + text[1:]
