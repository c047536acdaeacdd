"""What stands in an address of the classroom: the room, the step of a lesson, what is covered."""

from collections.abc import Mapping

from ui.state import covering, in_room, lesson
from ui.state.apart import AddressPart, Guidance


class ClassroomAddress(AddressPart):
    """See the module."""

    names = (*in_room.NAMES, *lesson.NAMES, covering.PARAMETER)

    def begin(self) -> None:
        """Take the room first: a lesson may be of it."""
        in_room.begin()
        lesson.begin()
        covering.begin()

    def beside(self, parameters: Mapping[str, str]) -> dict[str, str]:
        """The room; the lesson and what is covered, unless the parameters say them."""
        place = {} if lesson.PARAMETER in parameters else lesson.in_address()
        covered = {} if covering.PARAMETER in parameters else covering.in_address()
        return in_room.in_address() | covered | place

    def take_notes(self) -> tuple[str, ...]:
        """What there is to say of the lesson and of the room."""
        return (*lesson.take_notes(), *in_room.take_notes())

    def gave(self, parameters: Mapping[str, tuple[str, ...]]) -> None:
        """Leave what the link says as it is: the step of the lesson does not set it."""
        lesson.gave(parameters)

    def published(self, page: str, written: Mapping[str, str]) -> None:
        """Have a class go where its teacher is."""
        in_room.tell(page, {**written, **covering.in_address(), **lesson.in_address()})

    def guidance(self) -> Guidance:
        """In a room the teacher goes ahead; a lesson says which checkpoint it is about."""
        is_set = lesson.place() is not None
        if not in_room.current():
            return Guidance(is_set=is_set)
        leads, room = in_room.taught() is not None, in_room.public()
        types = leads or (room is not None and room.own)
        return Guidance(follows=not leads, leads=leads, is_set=is_set, types=types, bare=in_room.run())


ADDRESS = ClassroomAddress()
