"""Every payload of a component is compared with its type, in the product with all its extensions."""

import re

from tests.extensions.classroom.test_components import DRAWN as CLASSROOM
from tests.extensions.rooms.test_components import DRAWN as ROOMS
from tests.extensions.training.test_components import DRAWN as TRAINING
from tests.glassformer.components.test_components import DRAWN, TYPES


def test_every_payload_is_compared():
    assert set(re.findall(r"interface (\w+) extends Spoken", TYPES)) == {*DRAWN, *CLASSROOM, *ROOMS, *TRAINING}
