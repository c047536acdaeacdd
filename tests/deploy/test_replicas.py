"""With Redis, HAProxy and two replicas, set up as docs/hosting.md says, a class notices no restart."""

import contextlib
import http.client
import io
import json
import os
import re
import signal
import subprocess
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.raw_client import RawClient
from glassformer.extensions.replicas.room_store import chosen
from glassformer.extensions.rooms.registry import Registry
from glassformer.extensions.rooms.room import Question, Room
from tests.deploy.by_hand import configuration, needed
from tests.extensions.replicas.redis_server import RedisServer
from tests.glassformer.waiting import until
from tests.uploading import Visitor
from tools.serve import HOST, ROOT, free_port, serve

DRAIN_SECONDS = 3.0
OFTEN = "inter 200ms"  # that the proxy asks replicas, so that a test need not wait for seconds
SENTENCE = "gfedcba"
SHOWN = f"model=reverse&src={SENTENCE}"
QUESTION = Question("class", "Which?", ("A", "B"), aloud=True)


class School:
    """Redis, replicas and HAProxy."""

    def __init__(self, folder, left):
        self.folder, self.left, self.secrets = folder, left, []  # secrets that visitors have
        self.redis = left.enter_context(RedisServer(folder))
        self.port, *self.ports = (free_port() for _ in range(3))
        (folder / "shared").mkdir()
        with ThreadPoolExecutor() as at_once:
            self.replicas = list(at_once.map(self.start, self.ports))
        left.callback(
            lambda: [os.killpg(one.pid, signal.SIGKILL) for one in self.replicas if one.process.poll() is None]
        )
        made = configuration(self.port, self.ports)
        assert "inter 1s" in made
        (folder / "haproxy.cfg").write_text(made.replace("inter 1s", OFTEN))
        log = left.enter_context((folder / "haproxy.log").open("wb"))
        proxy = subprocess.Popen([needed("haproxy"), "-f", folder / "haproxy.cfg"], stderr=log)
        left.callback(proxy.wait)
        left.callback(proxy.terminate)
        until(lambda: self.answers(self.port, "/readyz") == 200)
        self.visitors()

    def kill(self):
        """End the replicas at once, as each would take its time."""
        for one in self.replicas:
            if one.process.poll() is None:
                os.killpg(one.pid, signal.SIGKILL)

    def start(self, port):
        environment = {
            "GLASSFORMER_STORE": self.redis.url,
            "GLASSFORMER_SHARED": str(self.folder / "shared"),
            "GLASSFORMER_DRAIN_SECONDS": str(DRAIN_SECONDS),
            "GLASSFORMER_METRICS": "on",
            "GLASSFORMER_LOG": "json",
            "GLASSFORMER_UPLOADS": "on",
            "STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE": "true",
        }
        log = self.folder / f"{port}-{time.monotonic_ns()}.log"
        return self.left.enter_context(serve(log=log, environment=environment, port=port))

    def visitors(self):
        """Cookies of two visitors, of a replica each, as soon as the proxy knows both."""
        return until(lambda: sorted(found) if len(found := {self.ask("/step")[1] for _ in range(2)}) == 2 else None)

    def ask(self, path, *, port=None, cookie="", said=None):
        """The status, the cookie's value that was set, and the body."""
        port = port or self.port
        origin = f"http://{HOST}:{port}"
        headers = {"Cookie": f"REPLICA={cookie}", "Origin": origin, "Content-Type": "application/json"}
        with contextlib.closing(http.client.HTTPConnection(HOST, port, timeout=10)) as asked:
            asked.request("GET" if said is None else "POST", path, None if said is None else json.dumps(said), headers)
            answer = asked.getresponse()
            given = re.search(r"REPLICA=(\w+)", answer.headers.get("Set-Cookie") or "")
            return answer.status, given[1] if given else "", answer.read().decode()

    def answers(self, port, path):
        """The status, 0 where nobody answers."""
        try:
            return self.ask(path, port=port)[0]
        except OSError:
            return 0

    def home(self, cookie):
        """The replica that has the visitors of a cookie."""
        before = [self.pages(one.port) for one in self.replicas]
        assert self.ask("/step", cookie=cookie)[:2] == (200, "")
        [found] = [one for one, n in zip(self.replicas, before, strict=True) if self.pages(one.port) > n]
        return found

    def pages(self, port):
        """How many pages a replica has sent."""
        told = self.ask("/metrics", port=port)[2]
        found = re.search(r'^glassformer_requests_total{route="page",status="200"} (\S+)$', told, flags=re.MULTILINE)
        return float(found[1]) if found else 0.0

    @contextlib.contextmanager
    def listening(self, path, cookie):
        """A student's stream of events through the proxy: a function that waits for the data of the next of a kind."""
        with contextlib.closing(http.client.HTTPConnection(HOST, self.port, timeout=20)) as connection:
            connection.request("GET", path, headers={"Cookie": f"REPLICA={cookie}"})
            with connection.getresponse() as answer:
                lines = (line.decode().strip() for line in iter(answer.readline, b""))

                def heard(kind):
                    """None where the stream ends before."""
                    there = any(line == f"event: {kind}" for line in lines)
                    return json.loads(next(lines).removeprefix("data: ")) if there else None

                yield heard


@pytest.fixture(scope="module")
def school(tmp_path_factory):
    with contextlib.ExitStack() as left:
        yield School(tmp_path_factory.mktemp("school"), left)


@pytest.fixture(scope="module")
def room(school):
    """A room that was opened by one more process of the same store: its registry, and what its teacher has."""
    rooms = Registry(store=chosen(school.redis.url))
    rooms.store.begin()
    yield rooms, rooms.open()
    rooms.store.close()


def test_a_visitor_stays_with_one_replica_which_draws_pages_through_the_proxy(school):
    one, other = school.visitors()
    assert school.home(one) is not school.home(other)
    assert {school.home(one) for _ in range(3)} == {school.home(one)}
    for path in ("/metrics", "/%6Detrics"):  # not for those who come through the proxy
        assert school.ask(path)[2].startswith("<html>"), path
    with RawClient(f"http://{HOST}:{school.port}") as visitor:
        drawn = visitor.rerun(page="step", query=SHOWN)
        assert not drawn.errors
        assert drawn.drawn


def test_a_model_that_one_replica_was_given_opens_at_the_other(school):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for file in (ROOT / "checkpoints" / "reverse").iterdir():
            archive.write(file, file.name)
    one, other = (f"http://{HOST}:{port}" for port in school.ports)
    with Visitor(one) as visitor:
        ended = visitor.hand_in([("mine.zip", content.getvalue())])
    assert ended.name.startswith("upload:"), ended.refused
    school.secrets.append(ended.name)
    for name, refused in ((ended.name, False), (ended.name[:-1], True)):  # as one that is not there is spoken of
        with RawClient(other) as visitor:
            assert bool(visitor.rerun(page="step", query=f"model={name}&src={SENTENCE}").alerts) == refused


def test_a_room_is_the_same_at_both_replicas_and_survives_the_restart_of_one_and_the_end_of_the_other(school, room):
    rooms, taught = room
    path = f"/class/{taught.code}"
    cookie, other = school.visitors()
    tokens = []
    rooms.do(taught, Room.ask, QUESTION)
    for visitor in (cookie, other):
        tokens.append(json.loads(school.ask(f"{path}/join", cookie=visitor, said={})[2])["token"])
        vote = {"token": tokens[-1], "round": rooms.public(taught.code).round, "choice": 0}
        assert school.ask(f"{path}/vote", cookie=visitor, said=vote)[0] == 204
    until(lambda: rooms.counted(taught.code).voted == 2)

    ending = school.home(cookie)
    with school.listening(f"{path}/events?token={tokens[0]}", cookie) as heard:
        assert heard("room")["question"] == "class"
        ending.process.send_signal(signal.SIGTERM)
        until(lambda: school.answers(ending.port, "/readyz") == 503)
        assert until(lambda: school.ask("/step", cookie=cookie)[1]) == other  # while this one still serves
        assert school.answers(ending.port, "/healthz") == 200
        assert heard("ended") is None  # the stream ends, the room does not
    with school.listening(f"{path}/events?token={tokens[0]}", other) as heard:
        assert heard("room")["question"] == "class"
    ending.process.wait(20)
    started = school.start(ending.port)
    until(lambda: school.ask("/readyz", cookie=cookie)[1] == "")  # known to the proxy

    [killed] = [one for one in school.replicas if one is not ending]
    began, school.replicas = time.monotonic(), [started]
    os.killpg(killed.pid, signal.SIGKILL)
    assert school.ask("/step", cookie=other)[:2] == (200, cookie)  # the very next request
    with school.listening(f"{path}/events?token={tokens[1]}", cookie) as heard:
        assert heard("room")["question"] == "class"
    assert time.monotonic() - began < 10
    assert rooms.counted(taught.code).voted == 2
    school.secrets += tokens


def test_without_its_store_a_replica_is_not_ready_but_pages_are_served(school):
    [left] = school.replicas
    school.redis.stop()
    until(lambda: "store" in school.ask("/readyz", port=left.port)[2])
    time.sleep(1)  # HAProxy has asked, too
    assert school.ask("/step")[0] == 200
    school.redis.start()
    until(lambda: school.answers(left.port, "/readyz") == 200)


def test_every_line_of_the_log_is_json_and_says_nothing_of_visitors(school):
    lines = [line for file in school.folder.glob("*-*.log") for line in file.read_text().splitlines()]
    told = [json.loads(line) for line in lines]
    assert any("model run" in one["message"] for one in told)
    assert {"time", "level", "logger", "message"} <= set.intersection(*map(set, told))
    known = [*school.secrets, SENTENCE, HOST]
    store = school.redis.url.split("/")[2]
    assert not [line for line in lines if any(word in line.replace(store, "") for word in known)]
