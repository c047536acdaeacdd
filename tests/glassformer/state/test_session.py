"""The address bar says what is shown, even if a reader goes elsewhere before an address of ours has arrived there."""

import pytest
from streamlit.runtime.state.query_params import QueryParams

from glassformer.state import global_params, session


class Address(QueryParams):
    """The parameters of the runs of one session, and what the browser is sent to put in its address bar."""

    def __init__(self):
        super().__init__()
        self.sent = []

    def _send_query_param_msg(self):
        pass

    def comes(self, parameters):
        """The browser is at this address."""
        self.clear_with_no_forward_msg()
        for name, value in parameters.items():
            self.set_with_no_forward_msg(name, [value])

    def from_dict(self, _dict):
        super().from_dict(_dict)
        self.sent.append({name: self.get_all(name)[0] for name in self})


@pytest.fixture
def bar(monkeypatch):
    address, state = Address(), {}
    monkeypatch.setattr(session.st, "query_params", address)
    monkeypatch.setattr(session.st, "session_state", state)
    monkeypatch.setattr(global_params, "parts", tuple)
    return address


def run(bar, parameters, **view):
    """One run of a page, in which a reader has chosen something, or nothing; what the bar was sent."""
    bar.comes(parameters)
    before = len(bar.sent)
    session.begin("masks")
    for name, value in view.items():
        session.replace("", **{name: value})
    session.publish(session.asked())
    return bar.sent[before:]


def test_an_address_that_ours_would_replace_is_written_once_more(bar):
    first, elsewhere = ({"model": "reverse", "src": "glass", "layer": str(layer)} for layer in (1, 3))
    assert run(bar, first) == []
    (ours,) = run(bar, first, layer=1)
    assert ours["layer"] == "2"
    assert run(bar, elsewhere) == [elsewhere]  # it was on its way
    assert session.view().layer == 2


def test_an_address_that_is_opened_at_rest_is_not_written(bar):
    first, elsewhere = ({"model": "reverse", "src": "glass", "layer": str(layer)} for layer in (1, 3))
    run(bar, first)
    (ours,) = run(bar, first, layer=1)
    assert run(bar, ours) == []  # the browser has it
    assert run(bar, elsewhere) == []
    assert session.view().layer == 2
