"""What stands in an address of a room: its code, and a teacher's secret."""

from collections.abc import Mapping

from glassformer.extensions.rooms import in_room
from glassformer.state import apart
from glassformer.state.apart import AddressPart, Guidance


class _RoomAddress(AddressPart):
    names = in_room.NAMES

    def begin(self) -> None:
        in_room.begin()

    def beside(self, parameters: Mapping[str, str]) -> dict[str, str]:
        return in_room.in_address()

    def take_notes(self) -> tuple[str, ...]:
        return in_room.take_notes()

    def published(self, page: str, written: Mapping[str, str]) -> None:
        own = {*in_room.NAMES, *apart.OF_LANGUAGE}
        in_room.tell(page, {name: text for name, text in apart.beside(written).items() if name not in own})

    def guidance(self) -> Guidance:
        if not in_room.current():
            return Guidance()
        leads, room = in_room.taught() is not None, in_room.public()
        types = leads or (room is not None and room.own)
        return Guidance(follows=not leads, leads=leads, types=types, bare=in_room.run())


ADDRESS = _RoomAddress()
