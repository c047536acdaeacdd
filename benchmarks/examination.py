"""Benchmark: does a doctor examination slow down other users?

    python -m benchmarks.examination --turns 5 --count 40

Two clients without a browser (raw_client.py). One steps through a run and asks for new sentences, as fast as it gets
answers, with a short pause after each. The other has the page Doctor open, restarts the examination as soon as it is
done, and looks as often as the page does. The same without the examination is measured in turns. Not measured: the
browser, the network, many visitors at once.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Protocol
from urllib.parse import urlencode

from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.app import by_stepper
from benchmarks.load import percentile
from benchmarks.raw_client import RawClient
from benchmarks.visitors import more_sentences
from glassformer.extensions.doctor.doctor_panels import AGAIN, LOOK_SECONDS, STOP
from tools.serve import Server, serve

MODEL = "zh-en"
REST_SECONDS = 0.05
KINDS = ("step", "sentence")


class Busy(Protocol):
    """Another visitor, for whom the server works."""

    def look(self) -> None:
        """Look as a page does."""


class Doctor:
    """A visitor whose page has the model examined again and again."""

    def __init__(self, client: RawClient) -> None:
        self._client, self._looked_at = client, time.monotonic()
        self.n_begun = 0
        client.rerun(page="doctor", query=urlencode({"model": MODEL}))

    @property
    def is_examined(self) -> bool:
        """Whether an examination was under way when the page looked last."""
        return STOP in self._client.widgets

    def look(self) -> None:
        """Look as the page does: its fragment each time, the whole page when it is over; then examine again."""
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        stop = self._client.widgets.get(STOP)
        if stop is not None:
            del self._client.widgets[STOP]
            self._client.rerun(fragment_id=stop.fragment_id)
        if not self.is_examined and AGAIN in self._client.widgets:
            self.n_begun += 1
            again = self._client.widgets[AGAIN]
            self._client.rerun(states=[WidgetState(id=again.id, trigger_value=True)])

    def rest(self) -> None:
        """Look until the examination is over."""
        while self.is_examined:
            time.sleep(LOOK_SECONDS)
            stop = self._client.widgets.pop(STOP)
            self._client.rerun(fragment_id=stop.fragment_id)


def turn(client: RawClient, sentences: Iterator[str], count: int, other: Busy | None) -> dict[str, list[float]]:
    """Milliseconds of `count` steps and `count` new sentences, each after the other."""
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    client.rerun(page="step", query=urlencode({"model": MODEL}))
    for number in range(count):
        if other is not None:
            other.look()
        started = time.perf_counter()
        by_stepper(client, number + 1)
        found["step"].append(1000 * (time.perf_counter() - started))
        time.sleep(REST_SECONDS)
        started = time.perf_counter()
        client.rerun(page="step", query=urlencode({"model": MODEL, "src": next(sentences)}))
        found["sentence"].append(1000 * (time.perf_counter() - started))
        time.sleep(REST_SECONDS)
    return found


def compare(server: Server, *, turns: int, count: int, seed: int) -> dict[tuple[str, bool], list[list[float]]]:
    """The milliseconds of each turn, by kind and by whether the doctor examined meanwhile."""
    found: dict[tuple[str, bool], list[list[float]]] = {key: [] for key in itertools.product(KINDS, (False, True))}
    sentences = more_sentences(seed=seed)
    with RawClient(server.url) as visitor, RawClient(server.url) as other:
        doctor = Doctor(other)
        doctor.rest()
        turn(visitor, sentences, 5, None)
        for _ in range(turns):
            for examines in (False, True):
                times = turn(visitor, sentences, count, doctor if examines else None)
                for kind in KINDS:
                    found[kind, examines].append(times[kind])
            doctor.rest()
        print(f"{doctor.n_begun} examinations were begun.")
    return found


def report(found: dict[tuple[str, bool], list[list[float]]], meanwhile: str = "the doctor examines") -> None:
    """Print the table and the ratios."""
    print("| | p50 ms | p95 ms | p95 of turns, ms | n |\n|---|---|---|---|---|")
    for kind in KINDS:
        for examines in (False, True):
            every = [one for times in found[kind, examines] for one in times]
            each = sorted(percentile(times, 0.95) for times in found[kind, examines])
            name = f"{kind}, {f'while {meanwhile}' if examines else 'alone'}"
            turns = f"{each[0]:.1f} to {each[-1]:.1f}"
            print(f"| {name} | {median(every):.1f} | {percentile(every, 0.95):.1f} | {turns} | {len(every)} |")
    for kind in KINDS:
        with_it, alone = (
            percentile([one for times in found[kind, examines] for one in times], 0.95) for examines in (True, False)
        )
        print(f"p95 of a {kind}: {with_it / alone:.2f} times as long while {meanwhile}")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--count", type=int, default=40, help="steps and sentences per turn")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serve(log=Path(folder) / "app.log") as server:
        report(compare(server, turns=given.turns, count=given.count, seed=given.seed))


if __name__ == "__main__":
    main()
