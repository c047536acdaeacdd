"""What the components in the browser are sent."""

from functools import partial

import pytest

from glassformer.extensions.classroom.lessons.memory import lesson_memory
from tests.glassformer.components.test_components import ignore, sends_what_its_type_names

DRAWN = {"LessonMemoryPayload": partial(lesson_memory, [], forgotten=0, opened="", look=(), on_news=ignore)}


@pytest.mark.parametrize(("interface", "draw"), DRAWN.items())
def test_the_types_of_a_payload_name_what_python_sends(monkeypatch, interface, draw):
    sends_what_its_type_names(monkeypatch, interface, draw)
