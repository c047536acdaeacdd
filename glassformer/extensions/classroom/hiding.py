"""What the classroom keeps covered: by the step of a lesson until it is answered, and by a teacher's link."""

from glassformer.extensions.classroom import covering, predictions
from glassformer.extensions.rooms import in_room
from glassformer.shared.cover import Hider
from transformer.i18n import say


class _ClassroomHider(Hider):
    def words(self) -> tuple[str, ...]:
        return predictions.covered_here()

    def waits(self) -> bool:
        return bool(predictions.covered_by_the_step())

    def why(self, key: str) -> str:
        if not {predictions.WHOLE, key}.isdisjoint(covering.words()):
            follows = in_room.current() and in_room.taught() is None
            return say("Covered by your teacher") if follows else say("Covered by the link you opened")
        if predictions.waits_for_teacher():
            return say("Covered until the teacher shows the answer")
        return say("Covered until you have answered")

    def met(self, page: str, key: str, title: str) -> None:
        covering.met(page, key, title)


HIDER = _ClassroomHider()
