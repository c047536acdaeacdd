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

DRAIN_SECONDS = 5.0
SENTENCE = "gfedcba"
QUESTION = Question("class", "Which?", ("A", "B"), aloud=True)


class School:
    """Redis, replicas and HAProxy."""

    def __init__(self, folder):
        self.folder, self.left, self.replicas = folder, contextlib.ExitStack(), []
        (folder / "shared").mkdir()
        self.secrets = []  # that visitors have
        self.redis = self.left.enter_context(RedisServer(folder))
        self.ports = [free_port() for _ in range(2)]
        self.port = free_port()
        self.environment = {
            "GLASSFORMER_STORE": self.redis.url,
            "GLASSFORMER_SHARED": str(folder / "shared"),
            "GLASSFORMER_DRAIN_SECONDS": str(DRAIN_SECONDS),
            "GLASSFORMER_METRICS": "on",
            "GLASSFORMER_LOG": "json",
            "GLASSFORMER_UPLOADS": "on",
            "STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE": "true",
        }

    def __enter__(self):
        try:
            return self.begun()
        except BaseException:
            self.left.close()
            raise

    def __exit__(self, *raised):
        self.left.close()

    def begun(self):
        with ThreadPoolExecutor() as at_once:
            self.replicas = list(at_once.map(self.start, self.ports))
        self.left.callback(self.kill)
        file = self.folder / "haproxy.cfg"
        file.write_text(configuration(self.port, self.ports))
        proxy = subprocess.Popen([needed("haproxy"), "-f", file], stderr=(self.folder / "haproxy.log").open("wb"))
        self.left.callback(proxy.wait)
        self.left.callback(proxy.terminate)
        until(lambda: self.answers(self.port, "/readyz") == 200)
        self.visitors()
        return self

    def visitors(self):
        """Cookies of two visitors, of a replica each, as soon as the proxy knows both."""
        return until(lambda: sorted(found) if len(found := {self.ask("/step")[1] for _ in range(2)}) == 2 else None)

    def kill(self):
        """End the replicas at once."""
        for one in self.replicas:
            if one.process.poll() is None:
                os.killpg(one.pid, signal.SIGKILL)

    def start(self, port):
        log = self.folder / f"{port}-{time.monotonic_ns()}.log"
        return self.left.enter_context(serve(log=log, environment=self.environment, port=port))

    def ask(self, path, *, port=None, cookie="", said=None):
        """The status, the cookie's value that was set, and the body."""
        port = port or self.port
        asked = http.client.HTTPConnection(HOST, port, timeout=10)
        origin = f"http://{HOST}:{port}"
        headers = {"Cookie": f"REPLICA={cookie}", "Origin": origin, "Content-Type": "application/json"}
        try:
            asked.request("GET" if said is None else "POST", path, None if said is None else json.dumps(said), headers)
            answer = asked.getresponse()
            given = re.search(r"REPLICA=(\w+)", answer.headers.get("Set-Cookie") or "")
            return answer.status, given[1] if given else "", answer.read().decode()
        finally:
            asked.close()

    def answers(self, port, path):
        """The status, 0 where nobody answers."""
        try:
            return self.ask(path, port=port)[0]
        except OSError:
            return 0

    def home(self, cookie):
        """The replica that has the visitors of a cookie."""
        before = {one.port: self.pages(one.port) for one in self.replicas}
        assert self.ask("/step", cookie=cookie)[:2] == (200, "")
        [found] = [one for one in self.replicas if self.pages(one.port) > before[one.port]]
        return found

    def pages(self, port):
        """How many pages a replica has sent."""
        told = self.ask("/metrics", port=port)[2]
        found = re.search(r'^glassformer_requests_total{route="page",status="200"} (\S+)$', told, flags=re.MULTILINE)
        return float(found[1]) if found else 0.0


class Listening:
    """A student's stream of events through the proxy."""

    def __init__(self, school, path, cookie):
        self.connection = http.client.HTTPConnection(HOST, school.port, timeout=20)
        self.connection.request("GET", path, headers={"Cookie": f"REPLICA={cookie}"})
        self.answer = self.connection.getresponse()

    def until(self, kind):
        """The data of the next event of a kind; None where the stream ends before."""
        last = ""
        for line in iter(self.answer.readline, b""):
            text = line.decode().strip()
            if text.startswith("data: ") and last == kind:
                return json.loads(text.removeprefix("data: "))
            last = text.removeprefix("event: ") if text.startswith("event: ") else last
        return None

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.answer.close()
        self.connection.close()


@pytest.fixture(scope="module")
def school(tmp_path_factory):
    with School(tmp_path_factory.mktemp("school")) as made:
        yield made


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
        drawn = visitor.rerun(page="step", query=f"model=reverse&src={SENTENCE}")
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
    with RawClient(other) as visitor:
        assert visitor.rerun(page="step", query=f"model={ended.name}&src={SENTENCE}").alerts == []
    with RawClient(other) as visitor:  # as one that is not there is spoken of
        assert visitor.rerun(page="step", query=f"model={ended.name[:-1]}&src={SENTENCE}").alerts


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
    with Listening(school, f"{path}/events?token={tokens[0]}", cookie) as heard:
        assert heard.until("room")["question"] == "class"
        ending.process.send_signal(signal.SIGTERM)
        until(lambda: school.answers(ending.port, "/readyz") == 503)
        assert until(lambda: school.ask("/step", cookie=cookie)[1]) == other  # while this one still serves
        assert school.answers(ending.port, "/healthz") == 200
        assert heard.until("ended") is None  # the stream ends, the room does not
    with Listening(school, f"{path}/events?token={tokens[0]}", other) as heard:
        assert heard.until("room")["question"] == "class"
    ending.process.wait(20)
    started = school.start(ending.port)
    until(lambda: school.ask("/readyz", cookie=cookie)[1] == "")  # known to the proxy

    [killed] = [one for one in school.replicas if one is not ending]
    began = time.monotonic()
    os.killpg(killed.pid, signal.SIGKILL)
    assert school.ask("/step", cookie=other)[:2] == (200, cookie)  # the very next request
    with Listening(school, f"{path}/events?token={tokens[1]}", cookie) as heard:
        assert heard.until("room")["question"] == "class"
    assert time.monotonic() - began < 10
    assert rooms.counted(taught.code).voted == 2
    school.replicas = [started]
    school.secrets += tokens


def test_without_its_store_a_replica_is_not_ready_but_pages_are_served(school):
    [left] = school.replicas
    school.redis.stop()
    until(lambda: "store" in school.ask("/readyz", port=left.port)[2])
    time.sleep(3)  # HAProxy has asked, too
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
