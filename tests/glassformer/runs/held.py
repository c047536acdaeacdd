"""A made-up model for tests of the queue: it writes down what it ran, and can be held."""

import threading
from types import SimpleNamespace

from glassformer.server.model_runner import ModelRunner
from tests.glassformer.waiting import WAIT, until
from transformer.errors import QueryError
from transformer.runs.query import Beam, Query

CHECKPOINT = SimpleNamespace(name="made up")


def query(text, **options):
    return Query(checkpoint="hash", source=text, **options)


class Model:
    """A made-up model: it writes down what it ran, and can be held."""

    def __init__(self, *, nbytes=1000, held=False, rounds=0, round=lambda: None):
        self.ran, self.finished, self.batches, self.nbytes = [], [], [], nbytes
        self.rounds, self.round = rounds, round
        self.go, self.started = threading.Event(), threading.Semaphore(0)
        if not held:
            self.go.set()

    def __call__(self, checkpoint, queries, *, pause):
        self.batches.append([query.source for query in queries])
        for query in queries:
            self.ran.append(query.source)
            self.started.release()
            assert self.go.wait(WAIT)
            for _ in range(self.rounds if isinstance(query.decoding, Beam) else 0):
                self.round()
                pause()
            yield QueryError("refused") if query.source.startswith("bad") else self.trace(checkpoint, query)
            self.finished.append(query.source)

    def trace(self, checkpoint, query):
        return SimpleNamespace(query=query, nbytes=self.nbytes, n_steps=1, seconds=0.0, checkpoint=checkpoint.name)

    def wait_until_it_runs(self):
        assert self.started.acquire(timeout=WAIT)


def runner(model, **options):
    return ModelRunner(runs=model, **options)


def until_waiting(runner, count):
    """Return once `count` requests are in the queue."""
    until(lambda: len(runner._under_way) >= count)
