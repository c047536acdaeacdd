"""The flow view is sent the weights of the run, what the address asks for, and nothing still to come."""

import base64

import numpy as np
import pytest

from glassformer.attention import maps_panel as flow_panels
from glassformer.attention.map_pictures import FLOW
from tests.glassformer.unpacking import numbers_of
from tests.pages.conftest import ATTENTION, ROOT, check
from tests.pages.reading import address, go_to, payload, view
from transformer.checkpoint.load import load
from transformer.runs.query import Query
from transformer.runs.running import run

CHINESE = "我喜欢喝咖啡。"


@pytest.fixture
def flow(open_page):
    """A function that opens the flow view: `flow(model="reverse", src="abc", layer=2)`."""
    return lambda **parameters: open_page(ATTENTION, panel="flow", **parameters)


def traced(model, source):
    checkpoint = load(ROOT / "checkpoints" / model)
    return run(checkpoint, Query(checkpoint=checkpoint.content_hash, source=source))


def sent(test):
    """The data of the view, and its weights [head, query, key] with NaN where nothing was sent."""
    data = payload(test, FLOW)
    shape = (len(data["queries"]), len(data["keys"]))
    allowed = np.ones(shape, dtype=bool)
    if data["open"] is not None:
        bits = np.frombuffer(base64.b64decode(data["open"]), dtype=np.uint8)
        allowed = np.unpackbits(bits)[: allowed.size].astype(bool).reshape(shape)
    weights = np.full((data["heads"], *shape), np.nan)
    weights[:, allowed] = numbers_of(data["weights"]).reshape(data["heads"], -1)
    return data, weights


def same(received, weights, allowed):
    assert np.isnan(received[:, ~allowed]).all()
    np.testing.assert_allclose(received[:, allowed], weights[:, allowed], atol=1e-5)


def test_heads_and_following_are_in_the_address_and_come_back(flow):
    test = flow(model="reverse", src="abcd", layer=1, heads="1.3", follow=1)
    data = payload(test, FLOW)
    assert (data["shown"], data["following"], data["pin"]) == ([0, 2], True, None)
    assert (address(test)["heads"], address(test)["follow"]) == ("1.3", "1")
    assert payload(flow(model="reverse", src="abcd", layer=1), FLOW)["following"] is False
    assert payload(flow(model="reverse", src="abcd", layer=1, heads="1.3", head=2), FLOW)["shown"] == [1]
    assert payload(flow(model="reverse", src="abcd", layer=1, heads="1.90"), FLOW)["shown"] == [0]


def test_a_step_changes_nothing_so_that_nothing_is_sent(flow):
    first = flow(model="reverse", src="abcd", layer=1)
    before = dict(payload(first, FLOW))
    assert before == payload(check(go_to(first, 3)), FLOW)


def test_guess_mode_sends_nothing_of_what_comes_next(flow):
    trace = traced("zh-en", CHINESE)
    for kind in ("decoder", "cross"):
        data, received = sent(flow(model="zh-en", src=CHINESE, kind=kind, layer=1, step=3, guess=1))
        n_keys = 3 if kind == "decoder" else len(trace.src_tokens)
        same(received, trace.maps(kind)[0, :, :3, :n_keys], trace.mask(kind)[:3, :n_keys])
        assert data["queries"][-1] == f"{trace.read_tokens[2]} → ?"
        seen = " ".join(data["queries"] + (data["keys"] if kind == "decoder" else []))
        assert not [piece for piece in trace.tgt_tokens[2:] if piece in seen]


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
