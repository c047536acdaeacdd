"""Prometheus is told what happened under few labels, and nothing where nobody asked for it."""

import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from glassformer.extensions.replicas import server_part
from glassformer.extensions.replicas.server_part import MetricsMiddleware, ReplicasServer
from glassformer.server import parts
from glassformer.server.model_runner import ModelRunner
from tests.glassformer.waiting import WAIT, until


@pytest.fixture(autouse=True)
def afresh():
    server_part.meter.cache_clear()
    yield
    server_part.meter.cache_clear()


@pytest.fixture
def client(monkeypatch):
    monkeypatch.setenv(server_part.METRICS, "on")
    page = Route("/{path:path}", lambda _: PlainTextResponse("a page"))
    app = Starlette(routes=[*ReplicasServer().routes("glass"), page], middleware=[Middleware(MetricsMiddleware)])
    monkeypatch.setattr(parts, "LISTENERS", [server_part.meter().took])
    with TestClient(app) as found:
        yield found


def told(client):
    """The values by name and labels."""
    lines = client.get("/glass/metrics").text.splitlines()
    pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name.removeprefix("glassformer_"): float(value) for name, _, value in pairs}


def test_requests_are_counted_by_route_and_status(client):
    for path in ("start", "attention?s=secret", "wp-login.php", "glass/class/ABCD/events", "frames/x", "a/static/b"):
        client.get(f"/{path}")
    client.post("/start")
    found = told(client)
    counts = {name: value for name, value in found.items() if name.startswith("requests_total")}
    expected = {("page", 200): 3, ("page", 405): 1, ("events", 200): 1, ("frames", 200): 1, ("streamlit", 200): 1}
    assert counts == {f'requests_total{{route="{of}",status="{code}"}}': n for (of, code), n in expected.items()}
    assert found['open{route="page"}'] == 0
    assert found['open{route="health"}'] == 1  # this one
    assert found["process_resident_memory_bytes"] > 1e6
    assert "secret" not in client.get("/glass/metrics").text


def test_pages_the_queue_and_the_model_are_timed(client):
    runner, begun, go = ModelRunner(), threading.Event(), threading.Event()
    server_part.meter().watch("queue_length", "Requests.", lambda: runner.n_waiting)
    with parts.drawn("step"), ThreadPoolExecutor(2) as pool:
        pool.submit(runner.compute, 1, lambda: begun.set() or go.wait(), nbytes=int)
        assert begun.wait(WAIT)
        pool.submit(runner.compute, 2, lambda: True, nbytes=int)
        until(lambda: runner.n_waiting == 2)
        since = time.monotonic()
        assert told(client)["queue_length"] == 2
        held = time.monotonic() - since
        go.set()
    found = told(client)
    assert found['page_seconds_count{page="step"}'] == 1
    assert (found["queue_seconds_count"], found["model_seconds_count"], found["queue_length"]) == (2, 2, 0)
    assert min(found["queue_seconds_sum"], found["model_seconds_sum"]) >= held > 0


def test_off_is_off_and_what_is_not_installed_is_said(monkeypatch):
    def answer():
        with TestClient(Starlette(routes=ReplicasServer().routes(""))) as client:
            return client.get("/metrics")

    monkeypatch.delenv(server_part.METRICS, raising=False)
    off = answer()
    assert (off.status_code, "GLASSFORMER_METRICS=on turns them on" in off.text) == (404, True)
    with parts.drawn("step"):
        assert server_part.meter() is None
    server_part.meter.cache_clear()
    monkeypatch.setenv(server_part.METRICS, "on")
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    lacking = answer()
    assert lacking.status_code == 404
    assert re.search(r"prometheus-client: pip install \"glassformer\[hosting\]\"", lacking.text)
