"""What the components in the browser are sent."""

from functools import partial

import pytest

from glassformer.extensions.snapshots.snapshot_slider import Move, Stop, moments_view, moved
from tests.glassformer.components.test_components import ignore, sends_what_its_type_names

STOPS = [Stop(0, "a", "b"), Stop(None, "c", "d")]
DRAWN = {"MomentsPayload": partial(moments_view, STOPS, of="m", at=1, revision=2, on_move=ignore)}


@pytest.mark.parametrize(("interface", "draw"), DRAWN.items())
def test_the_types_of_a_payload_name_what_python_sends(monkeypatch, interface, draw):
    sends_what_its_type_names(monkeypatch, interface, draw)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({"of": "m", "step": 5, "passing": False}, Move(5, False)),
        ({"of": "m", "step": None, "passing": True}, Move(None, True)),
        ({"of": "other", "step": 5}, None),
        ({"of": "m", "step": -1}, None),
        ({"of": "m", "step": "5"}, None),
        ({"of": "m", "step": True}, None),
        ("m", None),
        (None, None),
    ],
)
def test_only_a_stop_of_this_checkpoint_is_a_move(monkeypatch, said, found):
    monkeypatch.setattr("streamlit.session_state", {"k": {"move": said}})
    assert moved("k", of="m") == found
