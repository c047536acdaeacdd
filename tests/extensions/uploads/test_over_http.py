"""Whatever is uploaded to a running server opens or is refused in a sentence, and no other visitor notices it.

One server for all of it: what one file did would show in the next ones, and in what a second visitor decodes before,
meanwhile and after. What else files may be is tried without a server.
"""

import json
import os
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import pytest
import torch

from benchmarks.raw_client import RawClient
from tests.browser import foreign_models
from tests.extensions.uploads.files import made, zipped
from tests.extensions.weight_files.saving import Touch
from tests.glassformer.waiting import until
from tests.uploading import Visitor
from tools.serve import serve

NEAR = 50_000_000  # bytes that the server's memory may differ by in the end
SEEDS = (1, 2)
REVERSE = {path.name: path.read_bytes() for path in foreign_models.REVERSE.iterdir()}
WEIGHTS, CONFIG = "model.safetensors", "config.json"
MARKER = Path(tempfile.gettempdir()) / f"glassformer-test-marker-{os.getpid()}"


def with_config(**changes):
    return REVERSE | {CONFIG: json.dumps(json.loads(REVERSE[CONFIG]) | changes).encode()}


ROWS = {
    "code": (
        made(lambda folder: torch.save({"weight": Touch(MARKER)}, folder / "m.pt")),
        "m.pt: contains more than tensors",
    ),
    "wide": (with_config(d_model=10**9), "config.json: d_model: found 1000000000"),
    "native, packed": ({"mine.zip": zipped(REVERSE)}, None),
    "Hugging Face": (made(foreign_models.marian), None),
}


def decoded(client, seed):
    """What the Step page is given for a sentence decoded with a seed, without counts and names of its session."""

    def of_the_run(record):
        return {name: value for name, value in record.items() if name not in ("step_revision", "follows")}

    query = urlencode({"model": "reverse", "src": "glass", "how": "sampling", "seed": seed})
    result = client.rerun(page="step", query=query)
    assert not result.errors
    return {key: json.loads(data, object_hook=of_the_run) for key, data in result.drawn.items()}


def memory(pid):
    """Bytes of a process that are in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def server(place):
    """The app; its threads share their heaps, so that its memory says what it holds, and not how many ran at once."""
    (place / "tmp").mkdir()
    environment = {"TMPDIR": str(place / "tmp"), "MALLOC_ARENA_MAX": "1"}
    with serve(log=place / "app.log", environment=environment) as running:
        yield running
    assert list((place / "tmp").iterdir()) == []  # when the server ends nothing is left of what came


@pytest.fixture(scope="module")
def second(server):
    """A visitor who only decodes, and what was seen before anything came, by the seed."""
    with RawClient(server.url) as client:
        yield client, {seed: decoded(client, seed) for seed in SEEDS}


@pytest.fixture(scope="module")
def visitor(server, second):
    with Visitor(server.url) as found:
        yield found


@pytest.fixture(scope="module")
def memory_before(server, visitor):
    forget(visitor, visitor.hand_in(REVERSE.items()))
    visitor.hand_in([("m.pt", b"x" * 1_000_000)])
    visitor.empty()
    visitor.rerun(page="inside", query="model=zh-en")  # whose tables import pandas
    visitor.rerun(page="open", query="model=zh-en")
    return memory(server.pid)


def forget(visitor, ended):
    assert ended.name.startswith("upload:"), ended.refused
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
        forget(visitor, ended)
    else:
        assert not ended.name
        assert said in ended.refused
        assert not [word for word in ("Traceback", str(place)) if word in ended.refused]
        visitor.empty()
    assert kept(place) == []
    if row == "wide":
        assert memory(server.pid) < memory_before + NEAR


def test_an_upload_is_its_owners_until_the_link_is_shared(server, visitor):
    """That who has the link sees the model is in `tests/browser/test_handing_in.py`."""
    ended = visitor.hand_in(REVERSE.items())
    with Visitor(server.url) as other:
        assert ended.name not in other.widgets["open_source"].options
        assert not any("uploaded" in option for option in other.widgets["model"].options)
        guessed = other.rerun(page="step", query=urlencode({"model": ended.name[:-1] + "~", "src": "glass"}))
        assert not any("ssalg" in data for data in guessed.drawn.values())
    visitor.rerun(page="open", query=urlencode({"model": "zh-en"}))
    assert any("uploaded" in option for option in visitor.widgets["model"].options)
    forget(visitor, ended)


def test_what_a_browser_would_never_send(server, visitor):
    assert visitor.send("x", b"", {"Content-Length": "-5"})[0] in (0, 400, 411)
    assert visitor.send("x", b"no form", {"Content-Type": "text/plain"})[0] in (400, 500)
    assert visitor.put("large.pt", bytes(70 * 2**20))[0] in (0, 413)
    visitor.visit()


def test_many_at_once_end_in_results_or_refusals_and_nobody_else_notices(server, second, place):
    """Of four visitors half hand in a model, half two megabytes of nothing, while the second visitor decodes."""
    noise = {"noise.safetensors": bytes(2_000_000)}
    client, seen = second

    def one(number):
        with Visitor(server.url) as found:
            ended = found.hand_in((REVERSE if number % 2 else noise).items())
            if ended.name:
                found.forget(ended.name)
            else:
                found.empty()
            return ended

    with ThreadPoolExecutor(4) as pool:
        coming = [pool.submit(one, number) for number in range(4)]
        meanwhile = {seed: decoded(client, seed) for seed in reversed(SEEDS)}
        ended = [one.result() for one in coming]
    assert meanwhile == {seed: decoded(client, seed) for seed in SEEDS} == seen
    assert [bool(one.name) for one in ended] == [bool(number % 2) for number in range(4)]
    assert all("noise.safetensors" in one.refused for one in ended[::2])
    assert kept(place) == []


def test_in_the_end_nothing_is_left(server, visitor, memory_before, place):
    until(lambda: memory(server.pid) <= memory_before + NEAR)
    assert kept(place) == []
    assert "Traceback" not in server.log_text()
