"""What each head does."""

from __future__ import annotations

from ui.session import OpenRun


def draw(run: OpenRun) -> None:
    """Draw it."""
