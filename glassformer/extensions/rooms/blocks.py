"""What rooms draw around pages: the button of the presentation, and the line of a room."""

from glassformer.extensions.rooms.components.present.present_view import presenter
from glassformer.extensions.rooms.page.room_panels import bar
from glassformer.shared.page_blocks import PageBlocks


class _RoomBlocks(PageBlocks):
    def on_every_page(self) -> None:
        presenter()

    def above_page(self, page: str) -> None:
        bar(page)


BLOCKS = _RoomBlocks()
