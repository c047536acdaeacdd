"""Benchmark: does a training slow down other users?

    python -m benchmarks.watching --turns 5 --count 40

As in `benchmarks.examination`, two clients without a browser. One steps through a run and asks for new sentences. The
other has begun the training of the first preset on the page Training, and looks at it as often as the page does; it
is stopped between the turns and goes on with the next. Not measured: the browser, the network, many visitors at once.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from pathlib import Path

from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.examination import KINDS, report, turn
from benchmarks.raw_client import RawClient
from benchmarks.visitors import more_sentences
from glassformer.extensions.training_page.watch.watch_panels import LOOK_SECONDS
from tools.serve import Server, serve

START, STOP, RESUME, NEW = (f"watch_{name}" for name in ("start", "stop", "resume", "new"))
READY_SECONDS = 20.0  # until the process has loaded everything, or has ended


class Learner:
    """A visitor for whom a model is trained."""

    def __init__(self, client: RawClient) -> None:
        self._client, self._looked_at = client, time.monotonic()
        client.rerun(page="training", query="training=watch")

    @property
    def is_learning(self) -> bool:
        """Whether it was under way when the page looked last."""
        return STOP in self._client.widgets

    def look(self) -> None:
        """Look as the page does: its fragment each time."""
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        stop = self._client.widgets.pop(STOP, None)
        if stop is not None:
            self._client.rerun(fragment_id=stop.fragment_id)

    def learn(self) -> None:
        """Have it trained, from where it was stopped."""
        if RESUME not in self._client.widgets and NEW in self._client.widgets:
            self._press(NEW)  # it was done
        self._press(RESUME if RESUME in self._client.widgets else START)
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            self.look()
            time.sleep(LOOK_SECONDS / 2)

    def rest(self) -> None:
        """Stop it."""
        if self.is_learning:
            self._press(STOP)
            time.sleep(READY_SECONDS / 4)

    def _press(self, key: str) -> None:
        widget = self._client.widgets[key]
        self._client.widgets.clear()
        self._client.rerun(page="training", states=[WidgetState(id=widget.id, trigger_value=True)])


def compare(server: Server, *, turns: int, count: int, seed: int) -> dict[tuple[str, bool], list[list[float]]]:
    """The milliseconds of each turn, by kind and by whether a model was trained meanwhile."""
    found: dict[tuple[str, bool], list[list[float]]] = {key: [] for key in itertools.product(KINDS, (False, True))}
    sentences = more_sentences(seed=seed)
    with RawClient(server.url) as visitor, RawClient(server.url) as other:
        learner = Learner(other)
        turn(visitor, sentences, 5, None)
        for _ in range(turns):
            for trains in (False, True):
                if trains:
                    learner.learn()
                times = turn(visitor, sentences, count, learner if trains else None)
                if trains and not learner.is_learning:
                    raise SystemExit("the training was over before the turn; take fewer steps")
                for kind in KINDS:
                    found[kind, trains].append(times[kind])
            learner.rest()
    return found


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--count", type=int, default=40, help="steps and sentences per turn")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serve(log=Path(folder) / "app.log") as server:
        report(compare(server, turns=given.turns, count=given.count, seed=given.seed), "a model is trained")


if __name__ == "__main__":
    main()
