"""In a room a bare address means what its teacher looks at, and the wall has one QR code."""

from glassformer.extensions.rooms import room_session
from glassformer.extensions.rooms.registry import ROOMS
from glassformer.extensions.rooms.room import Question, Room
from glassformer.state import session
from tests.extensions.scripts import PROJECTOR
from tests.pages.conftest import PAGES, check
from tests.pages.reading import address
from tests.pages.test_first_visit import browser_asks as browser_asks
from tests.pages.test_first_visit import standing
from tests.pages.test_first_visit import start as start


def test_in_a_room_a_bare_address_means_what_its_teacher_looks_at(start, open_page, browser_asks):
    """From the moment the room is open; and links and addresses there name the checkpoint, also the default one."""
    browser_asks("en")
    teacher = open_page(PAGES["room"])
    check(teacher.button(key="room_open").click().run())
    taught = teacher.session_state[room_session.TAUGHT]
    try:
        browser_asks("zh-CN")
        assert standing(start(room=taught.code))[0] == "en-fr"
        assert standing(open_page(PAGES["step"], room=taught.code, lesson="one-piece.1"))[0] == "en-fr"
        ROOMS.do(taught, Room.move, "step", {"model": "reverse", "src": "glass"})
        student = open_page(PAGES["masks"], room=taught.code)
        assert standing(student) == ("reverse", "glass")
        assert standing(open_page(PAGES["step"], room=taught.code, src="她喜欢茶。"))[0] == "zh-en"  # as for everybody
        check(student.sidebar.selectbox(key=session.MODEL).set_value("zh-en").run())
        assert address(student)["model"] in ("zh-en", ["zh-en"])
        browser_asks("en")
        assert student.session_state[session.URL_LINKED]["model"] == "zh-en"  # of the menu
    finally:
        ROOMS.end(taught)


def test_the_wall_has_one_qr_code_also_beside_a_question(open_page):
    taught = ROOMS.open()
    try:
        for question in (None, Question("aloud.1", "Which?", ("A", "B"), aloud=True)):
            ROOMS.do(taught, Room.ask, question)
            drawn = "".join(one.proto.body for one in open_page(PROJECTOR, room=taught.code).main.get("html"))
            assert drawn.count("<img") == 1
    finally:
        ROOMS.end(taught)
