"""What the classroom draws around pages: the panel of a lesson, and the way to see what a link covers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from glassformer.extensions.classroom import cover_state
from glassformer.extensions.classroom.lessons import lesson_questions, panel, step_links
from glassformer.shared.i18n import st
from glassformer.shared.page_blocks import PageBlocks
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import say


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
