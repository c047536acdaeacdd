"""What a lesson keeps in the browser is sent as its type names it."""

import pytest

from glassformer.extensions.classroom.predictions import mount
from tests.glassformer.components.test_components import sends_what_its_type_names

DRAWN = {"LessonMemoryPayload": lambda key: mount("lessons", heard=lambda: None)}


@pytest.mark.parametrize(("interface", "draw"), DRAWN.items())
def test_the_types_of_a_payload_name_what_python_sends(monkeypatch, interface, draw):
    sends_what_its_type_names(monkeypatch, interface, draw)
