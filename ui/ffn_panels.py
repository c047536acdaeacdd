"""A part of the Inside page."""

from __future__ import annotations

from ui.session import OpenRun


def draw(run: OpenRun) -> None:
    """Draw it."""
