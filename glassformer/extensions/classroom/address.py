"""The step of a lesson and what is covered: in an address, and where a picture or a part is drawn."""

from collections.abc import Mapping

from glassformer.extensions.classroom import cover_state, lesson, predictions
from glassformer.extensions.rooms import room_session
from glassformer.shared.cover_box import Hider
from glassformer.state.global_params import AddressPart, Guidance
from transformer.i18n import say


class _ClassroomAddress(AddressPart):
    names = (*lesson.NAMES, cover_state.PARAMETER)

    def begin(self) -> None:
        lesson.begin()
        cover_state.begin()

    def beside(self, parameters: Mapping[str, str]) -> dict[str, str]:
        place = {} if lesson.PARAMETER in parameters else lesson.in_address()
        covered = {} if cover_state.PARAMETER in parameters else cover_state.in_address()
        return covered | place

    def take_notes(self) -> tuple[str, ...]:
        return lesson.take_notes()

    def gave(self, parameters: Mapping[str, tuple[str, ...]]) -> None:
        lesson.gave(parameters)

    def guidance(self) -> Guidance:
        return Guidance(is_set=lesson.place() is not None)


ADDRESS = _ClassroomAddress()


class _ClassroomHider(Hider):
    def words(self) -> tuple[str, ...]:
        return predictions.covered_here()

    def waits(self) -> bool:
        return bool(predictions.covered_by_the_step())

    def why(self, key: str) -> str:
        if not {predictions.WHOLE, key}.isdisjoint(cover_state.words()):
            follows = room_session.current() and room_session.taught() is None
            return say("Covered by your teacher") if follows else say("Covered by the link you opened")
        if predictions.waits_for_teacher():
            return say("Covered until the teacher shows the answer")
        return say("Covered until you have answered")

    def met(self, page: str, key: str, title: str) -> None:
        cover_state.met(page, key, title)


HIDER = _ClassroomHider()
