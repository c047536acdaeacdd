"""A browser that fetches frames gets what the server would draw; what is hidden or too large has none."""

import gzip
import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.testclient import TestClient

from glassformer.runs import step_frames as module
from glassformer.runs.picture import PICTURES, declare_all
from glassformer.runs.step_frames import Frames, change, routes
from glassformer.shared.csv_export import Origin
from glassformer.shared.drawing import at_a_moment
from glassformer.state.view import MAIN, SECOND
from tests.glassformer.test_pictures import look, opened  # noqa: F401 (a fixture)
from transformer.errors import QueryError

declare_all()

OF = Origin(checkpoint="reverse")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def changed(before, found):
    """What `common/frames.js` does."""
    if found is None:
        return before
    if isinstance(found, list):
        return found[0]
    before = list(before) if isinstance(before, list) else dict(before)
    for key, one in found.items():
        place = int(key) if isinstance(before, list) else key
        if one == []:
            del before[place]
        else:
            old = before[place] if isinstance(before, list) else before.get(place)
            before[place] = changed(old, one)
    return before


def drawn(picture, run, *, slot=MAIN):
    """What a page draws, as `drawing.chart`; None where there is nothing."""
    plot = picture.of(run)
    if plot is None:
        return None
    key = f"{slot}{picture.key}"
    return at_a_moment(plot.spec, OF, key=key, language="en", **plot.words)[1]


def fetched(frames, name):
    return json.loads(gzip.decompress(frames.get(name)))


def offered(opened, **fields):  # noqa: F811
    """Frames, and the name under which those of the candidates are offered."""
    frames, picture = Frames(), PICTURES["candidates"]
    run = look(picture, opened("reverse"), "reverse", **fields)
    return frames, frames.offer(picture, run, OF, drawn(picture, run))


def test_in_guess_mode_nothing_is_offered(opened):  # noqa: F811
    assert offered(opened, guess=True)[1] == "server"


def test_a_name_is_the_same_at_each_step_and_another_for_whatever_else_is_looked_at(opened):  # noqa: F811
    names = [offered(opened, **fields)[1] for fields in ({}, {"step": 2}, {"layer": 1}, {"slot": SECOND})]
    assert names[0] == names[1]
    assert len(set(names)) == 3


def test_what_was_not_offered_is_too_large_or_is_not_what_the_page_drew_is_none(opened, monkeypatch):  # noqa: F811
    frames, name = offered(opened)
    assert get(frames, "0" * len(name)).status_code == 404
    picture = PICTURES["candidates"]
    run = look(picture, opened("reverse"), "reverse")
    other = frames.offer(picture, run, OF, drawn(picture, run) | {"alt": "something else"})
    assert get(frames, other).status_code == 204
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    assert get(*offered(opened)).status_code == 204


def test_what_a_busy_server_refuses_may_be_asked_for_again(opened, monkeypatch):  # noqa: F811
    frames, name = offered(opened)
    with monkeypatch.context() as patched:
        patched.setattr(module.loading, "run", refuse)
        assert get(frames, name).status_code == 503
    assert get(frames, name).status_code == 200


def refuse(checkpoint, query):
    raise QueryError("no.")


def test_the_oldest_are_let_go(opened, monkeypatch):  # noqa: F811
    monkeypatch.setattr(module, "MOST_OFFERS", 2)
    frames, picture = Frames(), PICTURES["candidates"]
    run = look(picture, opened("reverse"), "reverse")
    names = [frames.offer(picture, run, replace(OF, sentence=text), {}) for text in "abc"]
    assert [get(frames, name).status_code for name in names] == [404, 204, 204]


def get(frames, name):
    return TestClient(Starlette(routes=routes("app", frames))).get(f"/app/frames/{name}")


def test_an_answer_is_json_that_a_browser_may_keep(opened):  # noqa: F811
    answer = get(*offered(opened))
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-encoding"] == "gzip"
    assert "private" in answer.headers["cache-control"]
    assert set(answer.json()) == {"first", "changes"}


@given(JSON, JSON)
def test_changes_make_one_of_the_other(before, after):
    assert changed(before, json.loads(json.dumps(change(before, after)))) == after
    assert change(after, json.loads(json.dumps(after))) is None
