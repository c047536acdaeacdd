"""Blocks of rooms around pages: the button of the presentation, and the line of a room."""

from glassformer.components.custom_component import Element
from glassformer.extensions.rooms import room_session
from glassformer.shared.page_blocks import PageBlocks
from glassformer.state import language

_PRESENTER = Element("presenter")


class _RoomBlocks(PageBlocks):
    def on_every_page(self) -> None:
        """The presentation button; `glassformer/shared/page_style.py` fixes its position."""
        _PRESENTER.draw({"spoken": language.in_address().get(language.PARAMETER, "")}, key="presenter")

    def above_page(self, page: str) -> None:
        if room_session.current():
            from glassformer.extensions.rooms.page.room_panels import bar  # only a class needs it

            bar(page)


BLOCKS = _RoomBlocks()
