"""What the second run of a comparison differs in: the main slot keeps it as an address says it."""

from __future__ import annotations

from ui.state import comparing, nested, session
from ui.state.view import MAIN


def said() -> dict[str, str]:
    """What it differs in, by the names of an address."""
    return nested.read(session.standing(MAIN).beside) or {}


def differ(**changes: str | None) -> None:
    """Callback: it differs in something else, by the names of an address; None: not in that."""
    session.stand(MAIN, beside=comparing.with_said(session.standing(MAIN).beside, **changes), notes=())
