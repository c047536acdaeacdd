"""What stands in an address of the classroom: the step of a lesson, and what is covered."""

from collections.abc import Mapping

from ui.state import covering, lesson
from ui.state.apart import AddressPart, Guidance


class ClassroomAddress(AddressPart):
    """See the module."""

    names = (*lesson.NAMES, covering.PARAMETER)

    def begin(self) -> None:
        """Take the lesson and the cover."""
        lesson.begin()
        covering.begin()

    def beside(self, parameters: Mapping[str, str]) -> dict[str, str]:
        """The cover and the lesson, unless the parameters say them."""
        place = {} if lesson.PARAMETER in parameters else lesson.in_address()
        covered = {} if covering.PARAMETER in parameters else covering.in_address()
        return covered | place

    def take_notes(self) -> tuple[str, ...]:
        """What there is to say of the lesson."""
        return lesson.take_notes()

    def gave(self, parameters: Mapping[str, tuple[str, ...]]) -> None:
        """Leave what the link says as it is: the step of the lesson does not set it."""
        lesson.gave(parameters)

    def guidance(self) -> Guidance:
        """A lesson says which checkpoint it is about."""
        return Guidance(is_set=lesson.place() is not None)


ADDRESS = ClassroomAddress()
