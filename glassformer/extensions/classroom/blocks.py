"""Classroom on every page: its query parameters, what is covered and why, and the panel of a lesson."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from glassformer.extensions.classroom import cover_state, lesson, lesson_questions, panel, predictions, step_links
from glassformer.extensions.rooms import room_session
from glassformer.shared.cover_box import Hider
from glassformer.shared.i18n import st
from glassformer.shared.page_blocks import PageBlocks
from glassformer.state.global_params import AddressPart, Guidance
from transformer.checkpoint.load import Checkpoint
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


class _ClassroomBlocks(PageBlocks):
    @contextmanager
    def around_page(self, page: str) -> Iterator[None]:
        place = panel.begin(page)
        yield
        panel.fill(place)

    def opened(self, checkpoint: Checkpoint) -> None:
        lesson_questions.about(checkpoint)

    def in_class(self) -> Callable[[], None] | None:
        return _show_covered if cover_state.words() else None

    def under_source(self, checkpoint: Checkpoint) -> None:
        step_links.arrive(checkpoint)


def _show_covered() -> None:
    st.caption(say("The link that you opened covers some parts of the pages."))
    st.button(say("Show them"), key="show_covered", on_click=cover_state.show_all, type="tertiary")


BLOCKS = _ClassroomBlocks()
