"""Over HTTP students' browsers may join, vote and listen in their room, and nobody may do more.

A server of its own with Streamlit's middleware and a room's routes alone, and rooms in Redis; the whole app, with rooms
in memory, is opened in `tests/browser/test_room.py`.
"""

import http.client
import json
import threading
import time

import pytest
import uvicorn
from starlette.applications import Starlette
from streamlit.web.server.starlette.starlette_app import create_streamlit_middleware

from glassformer.extensions.replicas.store_shared import Shared
from glassformer.extensions.rooms.registry import Registry
from glassformer.extensions.rooms.room import Question, Room, TokenBucket
from glassformer.extensions.rooms.routes import MOST_BYTES, routes
from tests.glassformer.waiting import until
from tools.serve import HOST, free_port

SITE = "https://glass.school.example"  # that a proxy serves the app as
ASKED = Question("masks.1", "How many?", ("one", "two", "three"))
WAIT = 5.0


class Listener:
    """An open stream of events; `next()` is the kind of the next event, what it says, and its name."""

    def __init__(self, port, path, headers):
        self.connection = http.client.HTTPConnection(HOST, port, timeout=WAIT)
        self.connection.request("GET", path, headers={"Accept-Encoding": "gzip", **headers})
        self.answer = self.connection.getresponse()

    def next(self):
        found = {}
        while "data" not in found:
            name, _, said = self.answer.readline().decode().rstrip("\n").partition(": ")
            found[name] = said
        return found.get("event", ""), json.loads(found["data"]), found.get("id", "")

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.answer.close()
        self.connection.close()


@pytest.fixture(scope="module")
def rooms(redis_server):
    found = Registry(store=Shared(redis_server.url))
    found.store.begin()
    found._opening = TokenBucket(1000, per_second=1, clock=time.monotonic)  # each test opens one
    return found


@pytest.fixture(scope="module")
def port(rooms):
    found = free_port()
    app = Starlette(routes=routes(rooms=rooms, origins=lambda: {SITE}), middleware=create_streamlit_middleware())
    server = uvicorn.Server(uvicorn.Config(app, host=HOST, port=found, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    yield found
    rooms.store.close()
    server.should_exit = True
    thread.join(WAIT)
    assert not thread.is_alive()  # no stream holds it


@pytest.fixture
def taught(rooms, port):
    """A room in which a question is asked."""
    opened = rooms.open()
    rooms.do(opened, Room.ask, ASKED)
    yield opened
    if rooms.is_teacher(opened.code, opened.secret):
        rooms.end(opened)


@pytest.fixture
def post(port):
    def one(path, said, *, origin=f"http://{HOST}:{{port}}", body=None, kind="application/json"):
        connection = http.client.HTTPConnection(HOST, port, timeout=WAIT)
        headers = {"Content-Type": kind, "Origin": origin.format(port=port)}
        connection.request("POST", path, body=json.dumps(said) if body is None else body, headers=headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        ours = answer.headers.get("content-type") == "application/json"
        return answer.status, json.loads(text) if ours else {}

    return one


@pytest.fixture
def listen(port):
    return lambda path, **headers: Listener(port, path, {name.replace("_", "-"): is_ for name, is_ in headers.items()})


@pytest.fixture
def token(post, taught):
    """Of a student in the room."""
    return joined(post, taught.code)


def joined(post, code):
    status, said = post(f"/class/{code}/join", {})
    assert status == 200
    return said["token"]


def test_a_move_is_heard_at_once_through_the_middleware(rooms, taught, listen, token):
    with listen(f"/class/{taught.code}/events?token={token}") as stream:
        assert stream.answer.headers["content-type"].startswith("text/event-stream")
        assert stream.answer.headers.get("content-encoding") is None
        assert stream.answer.readline().startswith(b"retry: ")
        assert stream.next()[:2] == ("hello", {"boot": rooms.store.boot})
        assert stream.next()[1]["page"] == ""
        rooms.do(taught, Room.move, "masks", {"src": "a b&c", "mask": "causal"})
        kind, state, name = stream.next()
        assert (kind, state["page"], state["query"]) == ("room", "masks", "src=a+b%26c&mask=causal")
        assert rooms.counted(taught.code).students == 1
    with listen(f"/class/{taught.code}/events?token={token}&counts=1", Last_Event_ID=name) as stream:
        assert [stream.next()[0] for _ in range(2)] == ["hello", "counts"]  # the state is known
    with listen(f"/class/{taught.code.lower()}/events", Last_Event_ID="of another server") as stream:
        assert [stream.next()[0] for _ in range(2)] == ["hello", "room"]
        rooms.end(taught)
        assert stream.next()[:2] == ("ended", {"boot": rooms.store.boot})
        assert stream.answer.read().strip() == b""


def test_votes_are_taken_once_and_stay_hidden_until_they_are_shown(rooms, taught, listen, post):
    tokens = [joined(post, taught.code) for _ in range(6)]
    path = f"/class/{taught.code}/vote"
    with listen(f"/class/{taught.code}/events") as onlooker, listen(f"/class/{taught.code}/events?counts=1") as wall:
        onlooker.next()
        asked = onlooker.next()[1]
        assert (asked["question"], asked["choices"], asked["taken"], asked["shown"]) == ("masks.1", 3, True, [])
        for place, token in enumerate(tokens):
            vote = {"token": token, "round": asked["round"], "choice": place % 2}
            assert post(path, vote) == (204, {})
            assert post(path, vote | {"choice": 2}) == (409, {"why": "voted", "boot": rooms.store.boot})
        heard = [wall.next() for _ in range(2)]
        while heard[-1][1].get("voted") != 6:
            heard.append(wall.next())
        assert not any("counts" in said or said.get("shown") for _, said, _ in heard)
        rooms.do(taught, Room.show)
        shown = onlooker.next()[1]  # the next that is heard: no vote was
        assert (shown["shown"], shown["taken"]) == ([{"voted": 6, "counts": [3, 3, 0]}], False)


FOREIGN = ("", "null", "https://example.org", f"http://{HOST}:80", f"http://{HOST}:1", f"{SITE}.evil", SITE[6:])


def test_what_is_posted_has_to_come_from_a_page_of_ours(taught, rooms, post, token):
    vote, path = {"token": token, "round": 1, "choice": 0}, f"/class/{taught.code}/vote"
    for origin in FOREIGN:
        status, said = post(path, vote, origin=origin)
        assert (status, said["why"], "Host header" in said["remedy"]) == (403, "another-origin", True)
        assert post(f"/class/{taught.code}/join", {}, origin=origin)[0] == 403
    assert post(path, vote, kind="text/plain")[0] == 415
    assert rooms.counted(taught.code).voted == 0
    assert post(path, vote, origin=SITE)[0] == 204  # behind a proxy that passes on another Host


TOKEN = "A" * 22
VOTE = {"token": TOKEN, "round": 1, "choice": 1}
MALFORMED = [
    None, [], "x", 1, {}, {"token": TOKEN}, {"token": TOKEN, "round": 1},
    *(VOTE | wrong for wrong in (
        {"token": 5}, {"token": "x"}, {"token": TOKEN + "\n"}, {"round": True}, {"round": None}, {"choice": 1.0},
        {"choice": "1"}, {"choice": [1]})),
]  # fmt: skip


def test_what_is_malformed_too_long_or_of_nobody_is_refused(taught, post, token):
    path = f"/class/{taught.code}/vote"
    for said in MALFORMED:
        assert post(path, said) == (400, {"why": "malformed"}), said
    for body in (b"", b"{", b"\xff\xfe", b"[" * (MOST_BYTES - 1), b'{"choice": NaN}'):
        assert post(path, None, body=body)[0] == 400, body
    assert post(path, None, body=b" " * (MOST_BYTES + 1))[0] == 413
    assert post(path, VOTE)[0] == 403
    for wrong, status in (
        ({"choice": -1}, 400),
        ({"choice": 3}, 400),
        ({"choice": 10**30}, 400),
        ({"round": 9**30}, 409),
    ):
        assert post(path, VOTE | {"token": token} | wrong)[0] == status


@pytest.mark.parametrize("code", ["AAAAAA", "x", "%00%00%00", "..%2f..%2fevents", "A" * 5000, "%E8%8B%8F%E8%8B%8F"])
def test_a_room_that_is_not_there_has_ended(code, rooms, listen, post):
    with listen(f"/class/{code}/events") as stream:
        assert stream.answer.status in (200, 400, 404)  # Streamlit's own guard refuses some
        if stream.answer.status == 200:
            assert stream.next()[:2] == ("ended", {"boot": rooms.store.boot})
    assert post(f"/class/{code}/join", {})[0] in (400, 404)


def test_a_token_of_another_room_is_none(rooms, taught, listen, token):
    other = rooms.open()
    with listen(f"/class/{other.code}/events?token={token}") as stream:
        assert stream.next()[:2] == ("refused", {"why": "no-token"})
    with listen(f"/class/{other.code}/events?token=x") as stream:
        assert stream.answer.status == 400
    rooms.end(other)


def test_nothing_that_is_sent_moves_the_class_or_shows_votes(rooms, taught, post, token):
    before = rooms.public(taught.code)
    for what in ("move", "show", "again", "ask", "end", "events"):
        said = {"token": token, "page": "masks", "secret": taught.secret}
        assert post(f"/class/{taught.code}/{what}", said)[0] in (404, 405)
    forged = {"token": token, "round": before.round, "choice": 1, "page": "masks", "shown": [9, 9, 9]}
    assert post(f"/class/{taught.code}/vote", forged)[0] == 204
    assert rooms.public(taught.code) == before
