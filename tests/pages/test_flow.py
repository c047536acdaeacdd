"""The flow view is sent the weights of the run, what the address asks for, and nothing still to come."""

import pytest

from glassformer.attention import maps_panel as flow_panels
from glassformer.attention.map_pictures import FLOW
from tests.pages.conftest import ATTENTION, check
from tests.pages.reading import address, payload, view


@pytest.fixture
def flow(open_page):
    """A function that opens the flow view: `flow(model="reverse", src="abc", layer=2)`."""
    return lambda **parameters: open_page(ATTENTION, panel="flow", **parameters)


def test_heads_and_following_are_in_the_address_and_come_back(flow):
    test = flow(model="reverse", src="abcd", layer=1, heads="1.3", follow=1)
    data = payload(test, FLOW)
    assert (data["shown"], data["following"], data["pin"]) == ([0, 2], True, None)
    assert (address(test)["heads"], address(test)["follow"]) == ("1.3", "1")
    assert payload(flow(model="reverse", src="abcd", layer=1), FLOW)["following"] is False
    assert payload(flow(model="reverse", src="abcd", layer=1, heads="1.3", head=2), FLOW)["shown"] == [1]
    assert payload(flow(model="reverse", src="abcd", layer=1, heads="1.90"), FLOW)["shown"] == [0]


def test_the_address_chooses_the_head_and_the_pinned_piece(flow):
    data = payload(flow(model="reverse", src="abcd", layer=1, head=3, query=2, key=1), FLOW)
    assert data["shown"] == [2]
    assert data["pin"] == {"side": "query", "index": 1}
    data = payload(flow(model="reverse", src="abcd", layer=1, key=4), FLOW)
    assert data["pin"] == {"side": "key", "index": 3}
    assert payload(flow(model="reverse", src="abcd", layer=1, key=400), FLOW)["pin"] is None


def test_the_browser_hears_which_of_its_reports_has_arrived(flow):
    test = flow(model="reverse", src="abcd", layer=1)
    assert payload(test, FLOW)["heard"] is None
    test.session_state[FLOW] = {"pin": {"side": "query", "index": 1, "stamp": "x 1"}}
    assert payload(check(test.run()), FLOW)["heard"] == "x 1"
    assert view(test).query is None  # only a report that has just come is taken


def test_the_callback_that_a_session_keeps_holds_no_weights(flow, monkeypatch):
    given = {}
    monkeypatch.setattr(flow_panels, "flow_view", lambda _, **options: given.update(options))
    flow(model="reverse", src="abcd", layer=1)
    held = [cell.cell_contents for cell in given["on_choice"].__closure__]
    assert held
    assert all(isinstance(value, int | str | tuple) for value in held)
