"""What stands in an address beside what a link says: the language, the room, a step of a lesson, what is covered."""

from collections.abc import Mapping
from typing import Final

from ui.state import covering, in_room, language, lesson

NAMES: Final = {*language.NAMES, *in_room.NAMES, *lesson.NAMES, covering.PARAMETER}


def begin() -> None:
    """Take it from the address; call it when a run begins."""
    language.begin()
    in_room.begin()
    lesson.begin()
    covering.begin()


def beside(parameters: Mapping[str, str]) -> dict[str, str]:
    """A whole address: parameters of a link or of a step of a lesson, and what stands beside them."""
    place = {} if lesson.PARAMETER in parameters else lesson.in_address()
    covered = {} if covering.PARAMETER in parameters else covering.in_address()
    return dict(parameters) | language.in_address() | in_room.in_address() | covered | place


def without(parameters: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The parameters of an address that are a link's."""
    return {name: values for name, values in parameters.items() if name not in NAMES}
