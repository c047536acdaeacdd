"""The projector view without a browser: what stands on the wall."""

from glassformer.extensions.rooms.server.registry import ROOMS
from glassformer.extensions.rooms.server.room import Room
from glassformer.extensions.rooms.server.room_state import Question
from tests.extensions.scripts import PROJECTOR


def test_the_wall_has_one_qr_code_also_beside_a_question(open_page):
    taught = ROOMS.open()
    try:
        for question in (None, Question("aloud.1", "Which?", ("A", "B"), aloud=True)):
            ROOMS.do(taught, Room.ask, question)
            drawn = "".join(one.proto.body for one in open_page(PROJECTOR, room=taught.code).main.get("html"))
            assert drawn.count("<img") == 1
    finally:
        ROOMS.end(taught)
