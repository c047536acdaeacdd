"""What stands in an address beside what a link says: the language, the room."""

from __future__ import annotations

from collections.abc import Mapping

from ui.state import in_room, language


def begin() -> None:
    """Take it from the address; call it when a run begins."""
    language.begin()
    in_room.begin()


def in_address() -> dict[str, str]:
    """What the address says of it."""
    return language.in_address() | in_room.in_address()


def without(parameters: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The parameters of an address that are a link's.

    Args:
        parameters: All of them.
    """
    return in_room.without(language.without(parameters))
