"""What stands in an address beside a link takes no name that a link has."""

from ui.state import covering, in_room, language, lesson
from ui.state.link import Link, read_link, write_link
from ui.state.view import parameters

BESIDE = {*lesson.NAMES, language.PARAMETER, language.PRESENT, in_room.PARAMETER, in_room.SECRET, covering.PARAMETER}
OF_A_LINK = {"model", "rev", "answers", "src", "ref", "max", "how", "beam", "lp", "temp", "k", "p", "seed", "forced"}
OF_A_LINK |= {"tried", "result", "do", "job", "with", "b"}


def test_no_name_stands_for_two_things():
    assert not BESIDE & set(parameters())
    assert not BESIDE & OF_A_LINK
    assert len(BESIDE) == len(lesson.NAMES) + 5


def test_a_link_does_not_see_what_stands_beside_it():
    link, notes = read_link(dict.fromkeys(BESIDE, ("one",)))
    assert write_link(link) == write_link(Link())
    assert not notes
