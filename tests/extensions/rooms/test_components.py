"""What the room sends its components in the browser is what their types name."""

from functools import partial

import pytest

from glassformer.extensions.rooms.room_view import BLOCKS, room_bar, room_counts
from tests.glassformer.components.test_components import sends_what_its_type_names

DRAWN = {
    "PresenterPayload": lambda key: BLOCKS.on_every_page(),
    "RoomPayload": partial(room_bar, "K7MPR4", role="viewer"),
    "RoomCountsPayload": room_counts,
}


@pytest.mark.parametrize(("interface", "draw"), DRAWN.items())
def test_the_types_of_a_payload_name_what_python_sends(monkeypatch, interface, draw):
    sends_what_its_type_names(monkeypatch, interface, draw)
