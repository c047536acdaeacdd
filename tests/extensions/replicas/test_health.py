"""A proxy is told which replica takes visitors, SIGTERM waits for them, and the log has nothing that one typed."""

import io
import json
import logging
import signal
import threading
import time

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from glassformer.extensions.replicas import server_part
from glassformer.extensions.replicas.server_part import DRAIN, ReplicasServer, drain_seconds
from glassformer.extensions.rooms.registry import ROOMS
from glassformer.server import descriptors
from glassformer.server.replicas import STORE
from tests.glassformer.server.test_descriptors import scarce as scarce
from tests.glassformer.waiting import until
from transformer.errors import DataError


def answers(health, base=""):
    with TestClient(Starlette(routes=health.routes(base))) as client:
        start = f"/{base}/" if base else "/"
        return [client.get(f"{start}{name}") for name in ("healthz", "readyz")]


@pytest.mark.parametrize(
    ("base", "stopping", "store", "says"),
    [
        ("glass", False, True, "ready"),
        ("", True, True, "This replica is stopping."),
        ("", False, False, "The store of the rooms cannot be reached."),
    ],
)
def test_only_who_can_take_visitors_is_ready(monkeypatch, base, stopping, store, says):
    monkeypatch.setattr(ROOMS.store, "away", "" if store else "redis:6379")
    health = ReplicasServer()
    health.stopping = stopping
    alive, ready = answers(health, base)
    assert alive.status_code == 200
    assert (ready.status_code, ready.text) == (200 if says == "ready" else 503, says)


@pytest.fixture
def ended():
    """When SIGTERM was passed on; it does nothing else."""
    times = []
    before = signal.signal(signal.SIGTERM, lambda *_: times.append(time.monotonic()))
    yield times
    signal.signal(signal.SIGTERM, before)


def test_sigterm_waits_once(ended):
    health = ReplicasServer()
    with health.drained(0.2):
        began = time.monotonic()
        signal.raise_signal(signal.SIGTERM)
        assert health.stopping
        assert not ended
        until(lambda: ended)
        assert ended[0] - began >= 0.2
    signal.raise_signal(signal.SIGTERM)  # as before
    assert len(ended) == 2
    with ReplicasServer().drained(60):
        signal.raise_signal(signal.SIGTERM)
        assert len(ended) == 2
        signal.raise_signal(signal.SIGTERM)  # a second one does not wait
        assert len(ended) == 3


@pytest.mark.parametrize(
    ("said", "store", "seconds"), [("", "", 0.0), ("", "redis://x", 5.0), ("0", "redis://x", 0.0), ("7.5", "", 7.5)]
)
def test_how_long_it_waits(monkeypatch, said, store, seconds):
    monkeypatch.setenv(DRAIN, said)
    monkeypatch.setenv(STORE, store)
    assert drain_seconds() == seconds
    for wrong in ("soon", "-1", "301", "nan"):
        monkeypatch.setenv(DRAIN, wrong)
        with pytest.raises(DataError, match=f"{DRAIN} is “{wrong}”; it must be a number of seconds from 0 to 300"):
            drain_seconds()


def test_health_says_what_who_comes_is_told(scarce):
    assert str(ReplicasServer().problem()) == str(descriptors.problem())
    assert descriptors.problem() is not None


def record(message, *of, error=None):
    raised = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord("glassformer.x", logging.INFO, "x.py", 1, message, of, raised)


def told(*of, **error):
    text = server_part.AsJson().format(record(*of, **error))
    assert "\n" not in text
    return json.loads(text)


def test_an_event_is_one_line():
    found = told("model run %d: %s", 3, "猫\ndefg")
    assert (found["level"], found["logger"], found["message"]) == ("info", "glassformer.x", "model run 3: 猫")
    assert found["time"].endswith("+00:00")


def test_an_error_says_where_it_is_and_not_what_it_quotes():
    try:
        raise ValueError("a visitor's sentence")
    except ValueError as error:
        found = told("failed for %s", "a visitor's name", error=error)
    assert (found["error"], found["message"]) == ("ValueError", "failed for %s")
    assert found["where"][-1].startswith(__file__)
    assert "visitor" not in json.dumps(found)


@pytest.fixture
def logs(monkeypatch):
    """A function that begins to log, and gives a logger a new handler; the process stays as it is."""
    monkeypatch.setattr(logging.StreamHandler, "format", logging.StreamHandler.format)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(logging, "captureWarnings", lambda _: None)

    def begun(name, how="json"):
        monkeypatch.setenv(server_part.LOG, how)
        server_part.begin()
        handler = logging.StreamHandler(io.StringIO())
        handler.setFormatter(logging.Formatter("%(message)s"))
        monkeypatch.setattr(logging.getLogger(name), "handlers", [handler])
        monkeypatch.setattr(logging.getLogger(name), "propagate", False)
        return handler.stream

    return begun


@pytest.mark.parametrize("how", ["json", ""])
def test_only_where_it_is_asked_for(monkeypatch, logs, how):
    requests = logging.getLogger("uvicorn.error")
    monkeypatch.setattr(requests, "filters", [])
    there = logs("streamlit.made", how)
    server_part.begin()
    logging.getLogger("streamlit.made").error("failed")
    assert there.getvalue().startswith("{") == (how == "json")
    assert bool(requests.filter(record('127.0.0.1 - "WebSocket /?token=x" [accepted]'))) == (how != "json")


def test_a_traceback_of_a_logger_that_gets_its_handler_later_is_one_object(logs):
    """As Streamlit does with those of uvicorn, each time its settings are read."""
    found = logs("uvicorn.made")
    try:
        raise ValueError("a visitor's sentence")
    except ValueError:
        logging.getLogger("uvicorn.made").exception("Exception in ASGI application\n")
    (line,) = found.getvalue().splitlines()
    assert (json.loads(line)["error"], json.loads(line)["message"]) == ("ValueError", "Exception in ASGI application")
    assert "visitor" not in line


def test_a_thread_that_fails_is_one_object(logs):
    found = logs("glassformer")
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    assert json.loads(found.getvalue())["error"] == "ZeroDivisionError"
