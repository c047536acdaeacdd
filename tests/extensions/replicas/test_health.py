"""A proxy is told which replica takes visitors, and SIGTERM waits once for those who are there."""

import signal
import time

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from glassformer.extensions.replicas.server_part import DRAIN, Health, drain_seconds
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
def test_only_who_can_take_visitors_is_ready(base, stopping, store, says):
    health = Health(lambda: store)
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
    health = Health()
    with health.drained(0.2):
        began = time.monotonic()
        signal.raise_signal(signal.SIGTERM)
        assert health.stopping
        assert not ended
        until(lambda: ended)
        assert ended[0] - began >= 0.2
    signal.raise_signal(signal.SIGTERM)  # as before
    assert len(ended) == 2
    with Health().drained(60):
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
    assert str(Health().problem()) == str(descriptors.problem())
    assert descriptors.problem() is not None
