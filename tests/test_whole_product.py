"""Of the product with all its extensions no name is there for nothing, and nothing is left out."""

import re

from glassformer.glossary.glossary_page import PLACES, is_there
from glassformer.server.streamlit_private import page_selectors
from tests.extensions.classroom.test_state import DRAWN as CLASSROOM
from tests.extensions.rooms.test_room_session import DRAWN as ROOMS
from tests.extensions.snapshots.test_film import DRAWN as SNAPSHOTS
from tests.glassformer.components.test_components import DRAWN, OF_A_RUN, TYPES
from tests.glassformer.components.test_streamlit_page import used_names
from tests.pages.conftest import PAGES as SCRIPTS


def test_each_name_of_a_part_of_streamlits_page_is_used():
    assert set(page_selectors()) == used_names()


def test_every_payload_is_compared():
    assert set(re.findall(r"interface (\w+) extends Spoken", TYPES)) == {
        *DRAWN,
        *OF_A_RUN,
        *CLASSROOM,
        *ROOMS,
        *SNAPSHOTS,
    }


def test_each_place_of_the_glossary_is_there():
    assert [name for name, place in PLACES.items() if place.page not in SCRIPTS or not is_there(place)] == []
