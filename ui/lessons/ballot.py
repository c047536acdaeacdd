"""What an answer is as a vote."""

from __future__ import annotations

from transformer.lessons import Posed
from ui.server.public import MOST_CHOICES, Public
from ui.state import in_room


def counts_right(public: Public, found: Posed) -> bool:
    """Whether votes say who was right, and not what was chosen: choices on different sentences are not comparable."""
    return public.own or found.step.ask.form != "choice" or len(found.options) > MOST_CHOICES


def vote(public: Public, found: Posed, given: str) -> None:
    """Callback: an answer is a vote."""
    if counts_right(public, found):
        in_room.vote(0 if found.is_right(given) else 1)
    else:
        in_room.vote(_places(found).index(given))


def place_of(found: Posed) -> int:
    """Which choice of a question is right, from 0."""
    return _places(found).index(str(found.answer.right))


def _places(found: Posed) -> list[str]:
    return [option.word for option in found.options]
