"""What stands in an address of the classroom: the step of a lesson, and what is covered."""

from collections.abc import Mapping

from glassformer.extensions.classroom import covering, lesson
from glassformer.state.apart import AddressPart, Guidance


class _ClassroomAddress(AddressPart):
    names = (*lesson.NAMES, covering.PARAMETER)

    def begin(self) -> None:
        lesson.begin()
        covering.begin()

    def beside(self, parameters: Mapping[str, str]) -> dict[str, str]:
        place = {} if lesson.PARAMETER in parameters else lesson.in_address()
        covered = {} if covering.PARAMETER in parameters else covering.in_address()
        return covered | place

    def take_notes(self) -> tuple[str, ...]:
        return lesson.take_notes()

    def gave(self, parameters: Mapping[str, tuple[str, ...]]) -> None:
        lesson.gave(parameters)

    def guidance(self) -> Guidance:
        return Guidance(is_set=lesson.place() is not None)


ADDRESS = _ClassroomAddress()
