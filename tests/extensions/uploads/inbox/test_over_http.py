"""Hostile and honest files through the real endpoint of a running server, while a second visitor goes on decoding.

One server for all of them: what one file did would show in the next ones. What the second visitor saw is then
compared with what a server shows that nobody handed anything to.
"""

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import pytest

from benchmarks.handing_in import Visitor
from benchmarks.raw_client import RawClient
from tests.extensions.uploads.inbox.rows import MARKER, REVERSE, ROWS
from tools.serve import serve

NEAR = 50_000_000  # bytes that the server's memory may differ by in the end
PAUSE = 1.0
COMPARED = 5


class Reader(threading.Thread):
    """A visitor who translates with another seed each time, and keeps what the page is given."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.url, self.seen, self.failed, self.stopped = url, [], "", threading.Event()

    def run(self):
        try:
            with RawClient(self.url) as client:
                while not self.stopped.wait(PAUSE):
                    self.seen.append(decoded(client, len(self.seen)))
        except Exception as error:  # said by the test
            self.failed = repr(error)


def decoded(client, seed):
    """All that the Step page is given for a sentence decoded with a seed."""
    query = urlencode({"model": "zh-en", "src": "汤姆有两个孩子。", "how": "sampling", "seed": seed})
    result = client.rerun(page="step", query=query)
    assert not result.errors
    return {key: json.loads(data, object_hook=_of_the_run) for key, data in result.drawn.items()}


def _of_the_run(record):
    """What a component is given, without the count of a session's changes and a server's own names for frames."""
    return {name: value for name, value in record.items() if name not in ("step_revision", "follows")}


def memory(pid):
    """Bytes of a process that are in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def server(place):
    """The app, which has read two uploads already, and a visitor who decodes."""
    (place / "tmp").mkdir()
    with serve(log=place / "app.log", environment={"TMPDIR": str(place / "tmp")}) as running:
        yield running
    assert list((place / "tmp").iterdir()) == []  # when the server ends nothing is left of what came


@pytest.fixture(scope="module")
def reader(server):
    found = Reader(server.url)
    found.start()
    yield found
    found.stopped.set()


@pytest.fixture(scope="module")
def visitor(server, reader):
    with Visitor(server.url) as found:
        yield found


@pytest.fixture(scope="module")
def memory_before(server, visitor):
    forget(visitor, visitor.hand_in(REVERSE.items()))
    visitor.hand_in([("m.pt", b"x" * 1_000_000)])
    visitor.empty()
    return memory(server.pid)


def forget(visitor, ended):
    assert ended.name, ended.refused
    visitor.forget(ended.name)


def kept(place):
    """The files of the server's inbox that belong to uploads."""
    return [file for file in (place / "tmp").glob("glassformer-inbox-*/*/**/*") if file.is_file()]


@pytest.mark.parametrize("row", ROWS)
def test_a_file_opens_or_is_refused_in_one_sentence(server, visitor, memory_before, place, row):
    files, said = ROWS[row]
    ended = visitor.hand_in(files.items())
    assert server.process.poll() is None
    assert not MARKER.exists()
    if said is None:
        assert ended.name.startswith("upload:"), ended.refused
        forget(visitor, ended)
    else:
        assert not ended.name
        assert said in ended.refused
        assert "Traceback" not in ended.refused
        assert str(place) not in ended.refused
        visitor.empty()
    assert kept(place) == []
    if row.startswith("T16"):
        assert memory(server.pid) < memory_before + NEAR


def test_values_that_are_not_finite_are_named_on_the_page(visitor):
    ended = visitor.hand_in(ROWS["T07"][0].items())
    result = visitor.rerun(page="open", query=urlencode({"model": ended.name, "src": "glass"}))
    assert "alert" in result.elements
    assert any("encoder.layers.0.ffn.up" in text.replace("\\", "") for text in result.alerts)
    forget(visitor, ended)


def test_an_upload_is_its_owners_until_the_link_is_shared(server, visitor):
    ended = visitor.hand_in(REVERSE.items())
    with Visitor(server.url) as other:
        assert ended.name not in other.widgets["open_source"].options
        assert not any("uploaded" in option for option in other.widgets["model"].options)
        guessed = other.rerun(page="step", query=urlencode({"model": ended.name[:-1] + "~", "src": "glass"}))
        assert not any("ssalg" in data for data in guessed.drawn.values())
        shared = other.rerun(page="step", query=urlencode({"model": ended.name, "src": "glass"}))
        assert any("ssalg" in data or "▁ssalg" in data or '"s"' in data for data in shared.drawn.values())
    mine = visitor.rerun(page="open", query=urlencode({"model": "zh-en"}))
    assert mine.elements
    assert ended.name in visitor.widgets["open_source"].options or any(
        "uploaded" in option for option in visitor.widgets["model"].options
    )
    forget(visitor, ended)


def test_what_a_browser_would_never_send(server, visitor):
    assert visitor.send("x", b"", {"Content-Length": "-5"})[0] in (0, 400, 411)
    assert visitor.send("x", b"no form", {"Content-Type": "text/plain"})[0] in (400, 500)
    assert visitor.put("large.pt", bytes(70 * 2**20))[0] in (0, 413)
    status, _, first = visitor.put("m.pt", b"one")
    assert status == 204
    assert visitor.put("m.pt", b"two", file_id=first)[0] == 204
    visitor.visit()


def test_many_at_once_end_in_results_or_refusals(server, visitor, place):
    """Of twelve visitors half hand in a model, half two megabytes of nothing."""
    noise = {"noise.safetensors": bytes(2_000_000)}

    def one(number):
        with Visitor(server.url) as found:
            ended = found.hand_in((REVERSE if number % 2 else noise).items())
            if ended.name:
                found.forget(ended.name)
            else:
                found.empty()
            return ended

    with ThreadPoolExecutor(12) as pool:
        ended = list(pool.map(one, range(12)))
    assert [bool(one.name) for one in ended] == [bool(number % 2) for number in range(12)]
    assert all("noise.safetensors" in one.refused for one in ended[::2])
    assert kept(place) == []


def test_in_the_end_nothing_is_left(server, visitor, reader, memory_before, place):
    deadline = time.monotonic() + 30
    while memory(server.pid) > memory_before + NEAR and time.monotonic() < deadline:
        time.sleep(0.5)
    assert memory(server.pid) <= memory_before + NEAR
    assert kept(place) == []
    assert "Traceback" not in server.log_text()


def test_the_second_visitor_saw_the_same_as_without_uploads(server, reader, place):
    """The other server takes nothing in, which is tried there as well."""
    reader.stopped.set()
    reader.join()
    assert not reader.failed
    assert len(reader.seen) > 5
    with serve(log=place / "alone.log", environment={"GLASSFORMER_UPLOADS": "off"}) as alone:
        with RawClient(alone.url) as client:
            for seed in range(0, len(reader.seen), len(reader.seen) // COMPARED + 1):
                assert decoded(client, seed) == reader.seen[seed]
        with Visitor(alone.url) as visitor:
            assert not any(key.startswith("handed_files") for key in visitor.widgets)
            assert visitor.put("m.pt", b"x")[:2] == (403, "This server does not accept uploads.")
            assert any(
                "This server accepts no uploads. Its operator can allow them" in text for text in visitor.visit().texts
            )
