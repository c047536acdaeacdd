"""What the classroom keeps covered: by the step of a lesson until it is answered, and by a teacher's link."""

from ui.shared.cover import Hider
from ui.state import covering, in_room, predictions
from words import say


class ClassroomHider(Hider):
    """See the module."""

    def words(self) -> tuple[str, ...]:
        """What either covers."""
        return predictions.covered_here()

    def waits(self) -> bool:
        """Whether the question of a step is open."""
        return bool(predictions.covered_by_the_step())

    def why(self, key: str) -> str:
        """Who covered it, and until when."""
        if not {predictions.WHOLE, key}.isdisjoint(covering.words()):
            follows = in_room.current() and in_room.taught() is None
            return say("Covered by your teacher") if follows else say("Covered by the link you opened")
        if predictions.waits_for_teacher():
            return say("Covered until the teacher shows the answer")
        return say("Covered until you have answered")

    def met(self, page: str, key: str, title: str) -> None:
        """Remember it for a teacher who makes a link."""
        covering.met(page, key, title)


HIDER = ClassroomHider()
