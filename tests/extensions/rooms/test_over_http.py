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
from tools.serve import HOST, free_port

SITE = "https://glass.school.example"  # that a proxy serves the app as
ASKED = Question("masks.1", "How many?", ("one", "two", "three"))
WAIT = 5.0


class Listener:
    """An open stream of events."""

    def __init__(self, port, path, headers=()):
        self.connection = http.client.HTTPConnection(HOST, port, timeout=WAIT)
        self.connection.request("GET", path, headers={"Accept-Encoding": "gzip", **dict(headers)})
        self.answer = self.connection.getresponse()

    def line(self):
        return self.answer.readline().decode().rstrip("\n")

    def next(self):
        """The next event: kind, data, name."""
        kind = name = ""
        while True:
            line = self.line()
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("id: "):
                name = line.removeprefix("id: ")
            elif line.startswith("data: "):
                return kind, json.loads(line.removeprefix("data: ")), name

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
    while not server.started:
        time.sleep(0.01)
    yield found
    rooms.store.close()
    server.should_exit = True
    thread.join(WAIT)
    assert not thread.is_alive()  # no stream holds it


@pytest.fixture
def taught(rooms, port):
    opened = rooms.open()
    yield opened
    if rooms.is_teacher(opened.code, opened.secret):
        rooms.end(opened)


@pytest.fixture
def post(port):
    def one(path, said, *, origin=f"http://{HOST}", body=None, **headers):
        connection = http.client.HTTPConnection(HOST, port, timeout=WAIT)
        sent = {"Content-Type": "application/json", **{name.replace("_", "-"): is_ for name, is_ in headers.items()}}
        if origin:
            sent["Origin"] = f"{origin}:{port}" if origin == f"http://{HOST}" else origin
        connection.request("POST", path, body=json.dumps(said) if body is None else body, headers=sent)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        ours = answer.headers.get("content-type") == "application/json"
        return answer.status, json.loads(text) if ours else {}

    return one


@pytest.fixture
def listen(port):
    def one(path, **headers):
        return Listener(port, path, {name.replace("_", "-"): is_ for name, is_ in headers.items()})

    return one


def joined(post, code):
    status, said = post(f"/class/{code}/join", {})
    assert status == 200
    return said["token"]


def test_a_move_is_heard_at_once_through_the_middleware(rooms, taught, listen, post):
    token = joined(post, taught.code)
    with listen(f"/class/{taught.code}/events?token={token}") as stream:
        assert stream.answer.headers["content-type"].startswith("text/event-stream")
        assert stream.answer.headers.get("content-encoding") is None
        assert stream.line().startswith("retry: ")
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
    rooms.do(taught, Room.ask, ASKED)
    path = f"/class/{taught.code}/vote"
    with listen(f"/class/{taught.code}/events") as onlooker, listen(f"/class/{taught.code}/events?counts=1") as wall:
        onlooker.next()
        asked = onlooker.next()[1]
        assert (asked["question"], asked["choices"], asked["taken"], asked["shown"]) == ("masks.1", 3, True, [])
        round_ = asked["round"]
        for place, token in enumerate(tokens):
            assert post(path, {"token": token, "round": round_, "choice": place % 2}) == (204, {})
            again = {"token": token, "round": round_, "choice": 2}
            assert post(path, again) == (409, {"why": "voted", "boot": rooms.store.boot})
        heard = [wall.next() for _ in range(2)]
        while heard[-1][1].get("voted") != 6:
            heard.append(wall.next())
        assert all("counts" not in said for _, said, _ in heard)
        assert all(said.get("shown", []) == [] for _, said, _ in heard)
        rooms.do(taught, Room.show)
        shown = onlooker.next()[1]  # the next that is heard: no vote was
        assert shown["shown"] == [{"voted": 6, "counts": [3, 3, 0]}]
        assert not shown["taken"]


def test_what_is_posted_has_to_come_from_a_page_of_ours(taught, rooms, post, port):
    rooms.do(taught, Room.ask, ASKED)
    token = joined(post, taught.code)
    vote = {"token": token, "round": 1, "choice": 0}
    path = f"/class/{taught.code}/vote"
    for origin in ("", "null", "https://example.org", f"http://{HOST}", f"http://{HOST}:1", f"{SITE}.evil", SITE[6:]):
        told = f"http://{HOST}:80" if origin == f"http://{HOST}" else origin
        status, said = post(path, vote, origin=told)
        assert (status, said["why"]) == (403, "another-origin")
        assert "Host header" in said["remedy"]
        assert post(f"/class/{taught.code}/join", {}, origin=told)[0] == 403
    assert post(path, vote, Content_Type="text/plain")[0] == 415
    assert rooms.counted(taught.code).voted == 0
    assert post(path, vote, origin=SITE)[0] == 204  # behind a proxy that passes on another Host


TOKEN = "A" * 22
MALFORMED = [
    None, [], "x", 1, {}, {"token": TOKEN}, {"token": TOKEN, "round": 1}, {"token": 5, "round": 1, "choice": 1},
    {"token": "x", "round": 1, "choice": 1}, {"token": TOKEN + "\n", "round": 1, "choice": 1},
    {"token": TOKEN, "round": True, "choice": 1}, {"token": TOKEN, "round": 1, "choice": 1.0},
    {"token": TOKEN, "round": 1, "choice": "1"}, {"token": TOKEN, "round": None, "choice": [1]},
]  # fmt: skip


@pytest.mark.parametrize("said", MALFORMED)
def test_what_is_malformed_is_refused(said, taught, rooms, post):
    rooms.do(taught, Room.ask, ASKED)
    assert post(f"/class/{taught.code}/vote", said) == (400, {"why": "malformed"})


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * (MOST_BYTES - 1), b'{"choice": NaN}'])
def test_what_is_no_json_of_ours_is_refused(body, taught, post):
    assert post(f"/class/{taught.code}/vote", None, body=body)[0] == 400


def test_what_is_long_is_refused_and_what_is_foreign_too(taught, rooms, post):
    rooms.do(taught, Room.ask, ASKED)
    path = f"/class/{taught.code}/vote"
    assert post(path, None, body=b" " * (MOST_BYTES + 1))[0] == 413
    round_ = rooms.public(taught.code).round
    assert post(path, {"token": TOKEN, "round": round_, "choice": 0})[0] == 403
    token = joined(post, taught.code)
    for choice in (-1, 3, 10**30):
        assert post(path, {"token": token, "round": round_, "choice": choice})[0] == 400
    assert post(path, {"token": token, "round": 10**30, "choice": 1})[0] == 409


@pytest.mark.parametrize("code", ["AAAAAA", "x", "%00%00%00", "..%2f..%2fevents", "A" * 5000, "%E8%8B%8F%E8%8B%8F"])
def test_a_room_that_is_not_there_has_ended(code, rooms, listen, post):
    with listen(f"/class/{code}/events") as stream:
        assert stream.answer.status in (200, 400, 404)  # Streamlit's own guard refuses some
        if stream.answer.status == 200:
            assert stream.next()[:2] == ("ended", {"boot": rooms.store.boot})
    assert post(f"/class/{code}/join", {})[0] in (400, 404)


def test_a_token_of_another_room_is_none(rooms, taught, listen, post):
    other = rooms.open()
    token = joined(post, other.code)
    with listen(f"/class/{taught.code}/events?token={token}") as stream:
        assert stream.next()[:2] == ("refused", {"why": "no-token"})
    with listen(f"/class/{taught.code}/events?token=x") as stream:
        assert stream.answer.status == 400
    rooms.end(other)


def test_nothing_that_is_sent_moves_the_class_or_shows_votes(rooms, taught, post):
    rooms.do(taught, Room.ask, ASKED)
    before, token = rooms.public(taught.code), joined(post, taught.code)
    for what in ("move", "show", "again", "ask", "end", "events"):
        said = {"token": token, "page": "masks", "secret": taught.secret}
        assert post(f"/class/{taught.code}/{what}", said)[0] in (404, 405)
    forged = {"token": token, "round": before.round, "choice": 1, "page": "masks", "shown": [9, 9, 9]}
    assert post(f"/class/{taught.code}/vote", forged)[0] == 204
    assert rooms.public(taught.code) == before
