"""What the classroom draws around pages: the presentation, the line of a room, the panel of a lesson."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from transformer.checkpoint.load import Checkpoint
from ui.components.present.present_view import presenter
from ui.lessons import leading, lesson_questions, panel
from ui.room.room_panels import bar
from ui.shared.door import st
from ui.shared.page_blocks import PageBlocks
from ui.state import covering
from words import say


class ClassroomBlocks(PageBlocks):
    """See the module."""

    def on_every_page(self) -> None:
        """The button that begins the presentation."""
        presenter()

    def above_page(self, page: str) -> None:
        """The line of the room that the session is in."""
        bar(page)

    @contextmanager
    def around_page(self, page: str) -> Iterator[None]:
        """The panel of the lesson: its place before the page, what it says after."""
        place = panel.begin(page)
        yield
        panel.fill(place)

    def opened(self, checkpoint: Checkpoint) -> None:
        """Have the lesson ask about the checkpoint."""
        lesson_questions.about(checkpoint)

    def in_class(self) -> Callable[[], None] | None:
        """The way to see what a link covers."""
        return _show_covered if covering.words() else None

    def under_source(self, checkpoint: Checkpoint) -> None:
        """Have the page show what the step of the lesson is about."""
        leading.arrive(checkpoint)


def _show_covered() -> None:
    st.caption(say("The link that you opened covers some parts of the pages."))
    st.button(say("Show them"), key="show_covered", on_click=covering.show_all, type="tertiary")


BLOCKS = ClassroomBlocks()
