"""A class in a room: how soon a teacher's move reaches everybody, when all have redrawn, and the cost of waiting.

    python -m benchmarks.room --students 100 --seconds 300

A new server, one teacher and this many students, who speak Streamlit's protocol and the room's as browsers do: they
join, listen to its events, begin to redraw within the time that an event names, vote, and are counted. The teacher
continues when all have redrawn. Students wait for the teacher at first; the server's cost meanwhile is the idle cost.

All clients share one process, the server has its own; both share the machine's cores. An event's way is timed with
the machine's single clock. CPU and memory come from /proc, so this needs Linux. The server's memory is printed before
the class, after each page, and once all have left; it grows without bound if it is larger in the last third of the
time than in the third before by more than `GROWTH_MB`. Not measured: the browser, the network, a proxy.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from benchmarks.app import cpu_seconds, resident_mb
from benchmarks.room_client import Tab, events, post
from benchmarks.visitors import SENTENCES
from tools.serve import Server, serve

PAGES: Sequence[tuple[str, dict[str, object]]] = (
    ("step", {}),
    ("attention", {}),
    ("masks", {}),
    ("positions", {}),
    ("inside", {}),
    ("attention", {"layer": 2, "head": 1, "panel": "head"}),
    ("inside", {"inside": "lens"}),
    ("search", {}),
)
SETTLE_SECONDS = 0.2  # a stepper in a browser waits so long before it tells Python of a step
PAUSE_SECONDS = 1.0  # between two moves of the teacher, once all have redrawn
STEPS = 3  # on each page on which something moves with the step
BOUNDS = {"event": 0.1, "step": 0.5, "step drawn by the server": 2.5, "page": 4.5}
IDLE_SHARE = 0.02  # of a core
GROWTH_MB = 30.0
LEFT_SECONDS = 5.0  # after which what sessions held is counted as gone
CHOICES = 4


@dataclass
class Times:
    """What was measured, in seconds by kind, and by kind and page; and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    of_pages: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    votes: int = 0

    def note(self, kind: str, seconds: float, page: str = "") -> None:
        """Keep one."""
        self.seconds.setdefault(kind, []).append(seconds)
        if page:
            self.of_pages.setdefault((kind, page), []).append(seconds)


@dataclass
class Memory:
    """What the server had resident, in MB.

    Attributes:
        before: Before the class came.
        during: After each page of the class.
        after: Once all have left.
    """

    before: float
    during: list[float] = field(default_factory=list)
    after: float = 0.0

    @property
    def growth(self) -> float:
        """How much more the last third of the time had than the third before; 0 of too few pages."""
        third = len(self.during) // 3
        if not third:
            return 0.0
        last, earlier = self.during[-third:], self.during[-2 * third : -third]
        return sum(last) / third - sum(earlier) / third

    @property
    def grows(self) -> bool:
        """Whether it grew without bound."""
        return self.growth > GROWTH_MB

    def told(self) -> str:
        """In words."""
        verdict = "it grew without bound" if self.grows else "it did not grow without bound"
        return (
            f"Memory of the server: {self.before:.0f} MB before the class, {max(self.during):.0f} MB at the peak, "
            f"{self.after:.0f} MB after all have left; {self.growth:+.0f} MB in the last third, so {verdict} "
            f"({', '.join(f'{one:.0f}' for one in self.during)})"
        )


class Student(Tab):
    """Joins, listens and redraws as a student's browser does."""

    def __init__(self, url: str, port: int, code: str, times: Times, *, seed: int, cookie: str = "") -> None:
        super().__init__(url, cookie)
        self.port, self.code, self.times = port, code, times
        self.moves, self.state, self._dice = 0, dict[str, Any](), random.Random(seed)
        self._where = ("", "")
        self.token = ""

    async def join(self) -> None:
        """Open the page about rooms with the code in its address, and get a token."""
        await self.rerun(page="room", query=f"room={self.code}")
        status, said = await post(self.port, f"/class/{self.code}/join", {}, self.cookie)
        if status != 200:
            raise RuntimeError(f"A student could not join: {status} {said}")
        self.token = said["token"]

    async def follow(self) -> None:
        """Listen, and redraw at every move, until cancelled."""
        try:
            await self.hear()
        except Exception as error:  # said in the report
            self.times.errors.append(f"student: {type(error).__name__}: {error}")

    async def hear(self) -> None:
        """Listen as long as the stream is open, and redraw at every move."""
        asked = f"/class/{self.code}/events?token={self.token}"
        async for kind, said in events(self.port, asked, self.cookie):
            self.heard(kind, said)
            if kind == "room":
                self.state = said
                if said["page"] and said["moves"] != self.moves:
                    self.times.note("event", time.time() - said["at"])
                    await self._redraw(said)
                    self.moves = said["moves"]

    def heard(self, kind: str, said: dict[str, Any]) -> None:
        """Whatever has come."""

    async def _redraw(self, state: dict[str, Any]) -> None:
        step, where = _parted(state)
        delay = self._dice.random() * state["spread"] / 1000
        kind = "step" if where == self._where and self.has_steps else "page"
        if kind == "step" and self.follows:
            self.times.note(kind, time.time() - state["at"], _named(state))
            await asyncio.sleep(delay + SETTLE_SECONDS)
            await self.go_to_step(step)
            self.times.note("step heard of", time.time() - state["at"])
            return
        await asyncio.sleep(delay + (SETTLE_SECONDS if kind == "step" else 0))
        if kind == "step":
            drawn = await self.go_to_step(step)
        else:
            query = "&".join(part for part in (state["query"], f"room={self.code}") if part)
            drawn = await self.rerun(page=state["page"], query=query)
        self._where = where
        kind = "step drawn by the server" if kind == "step" else kind
        self.times.note(kind, time.time() - state["at"], _named(state))
        await self.fetch_frames(self.port, drawn)

    async def vote(self, choice: int) -> None:
        """Vote in the round that is open."""
        said = {"token": self.token, "round": self.state["round"], "choice": choice}
        status, answer = await post(self.port, f"/class/{self.code}/vote", said, self.cookie)
        if status != 204:
            self.times.errors.append(f"vote: {status} {answer}")


def _parted(state: dict[str, Any]) -> tuple[int, tuple[str, str]]:
    """The step of an address, from 0, and all else that it says."""
    parameters = [part.partition("=") for part in state["query"].split("&") if part]
    step = next((int(value) - 1 for name, _, value in parameters if name == "step"), 0)
    kept = sorted(f"{name}={value}" for name, _, value in parameters if name not in ("step", "rev"))
    return step, (state["page"], "&".join(kept))


def _named(state: dict[str, Any]) -> str:
    """The page of an address, and its part."""
    parts = [value for name, value in parse_qsl(state["query"]) if name in ("panel", "inside")]
    return ", ".join([state["page"], *parts])


async def until(done: Callable[[], bool], *, seconds: float, what: str, times: Times) -> None:
    """Wait until something is so; an error if it does not become so."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            times.errors.append(f"not within {seconds:.0f} s: {what}")
            return
        await asyncio.sleep(0.02)


class Class:
    """A teacher and students in a room; everybody waits for all with so much patience, in seconds."""

    def __init__(self, server: Server, n_students: int, *, seed: int, patience: float = 30.0) -> None:
        self.server, self.times, self.teacher = server, Times(), Tab(server.url)
        self._n, self._seed, self._patience = n_students, seed, patience
        self.students: list[Student] = []
        self._following: list[asyncio.Task[None]] = []
        self.code, self._moves = "", 0

    async def gather(self) -> None:
        """Open a room and have everybody join."""
        await self.teacher.rerun(page="room", query="")
        await self.teacher.click("room_open")
        self.code = json.loads(self.teacher.talk.widgets["room_bar"].data)[0]["code"]
        self.students = [await self.student(self._seed * 1000 + number) for number in range(self._n)]
        await asyncio.gather(*(student.join() for student in self.students))
        self._following = [asyncio.create_task(student.follow()) for student in self.students]
        await self.until(lambda: all(s.state for s in self.students), "all listen")

    async def student(self, seed: int) -> Student:
        """One who comes."""
        return Student(self.server.url, self.server.port, self.code, self.times, seed=seed)

    async def until(self, done: Callable[[], bool], what: str) -> None:
        """Wait until something is so; an error if it does not become so."""
        await until(done, seconds=self._patience, what=what, times=self.times)

    async def all_follow(self) -> None:
        """Wait until the last move has been redrawn by all."""
        self._moves += 1
        await self.until(
            lambda: all(student.moves >= self._moves for student in self.students), f"move {self._moves} redrawn"
        )
        await asyncio.sleep(PAUSE_SECONDS)

    async def teach(self, page: str, parameters: dict[str, object], sentence: str) -> None:
        """Go to a page with a sentence, and take some steps there."""
        query = urlencode({"src": sentence, "room": self.code} | parameters)
        await self.teacher.rerun(page=page, query=query)
        await self.all_follow()
        for step in range(1, STEPS + 1 if self.teacher.has_steps else 0):
            await self.teacher.go_to_step(step)
            await self.all_follow()

    async def poll(self) -> None:
        """Ask aloud, have all vote at once, and compare what is shown with what was voted."""
        await self.teacher.rerun(page="room", query=f"room={self.code}")
        await self.teacher.click("room_ask")
        await self.until(lambda: all(student.state.get("taken") for student in self.students), "all are asked")
        chosen = [number * 7 % CHOICES for number in range(self._n)]
        began = time.time()
        await asyncio.gather(*(s.vote(choice) for s, choice in zip(self.students, chosen, strict=True)))
        self.times.note("all votes posted", time.time() - began)
        if any(student.state["shown"] for student in self.students):
            self.times.errors.append("votes were seen before they were shown")
        await self.teacher.rerun(query=self.teacher.talk.query)
        await self.teacher.click("room_show")
        await self.until(lambda: all(student.state["shown"] for student in self.students), "votes are shown")
        counts = [chosen.count(choice) for choice in range(CHOICES)]
        expected = {"voted": self._n, "counts": counts if self._n >= 5 else None}
        if any(student.state["shown"][-1] != expected for student in self.students):
            self.times.errors.append(f"counted otherwise: {self.students[0].state['shown']}, not {expected}")
        self.times.votes += self._n

    async def leave(self) -> None:
        """All go."""
        for task in self._following:
            task.cancel()
        for task in self._following:
            with suppress(asyncio.CancelledError):
                await task
        await asyncio.gather(*(tab.close() for tab in (self.teacher, *self.students)))


async def lesson(server: Server, options: argparse.Namespace) -> int:
    """Hold a lesson, and print what it came to; the number of bounds that were not kept."""
    group, memory = Class(server, options.students, seed=options.seed), Memory(resident_mb(server.pid))
    await group.gather()
    await asyncio.sleep(2)
    before, began = cpu_seconds(server.pid), time.monotonic()
    await asyncio.sleep(options.idle)
    idle = (cpu_seconds(server.pid) - before) / (time.monotonic() - began)
    end, number = time.monotonic() + options.seconds, 0
    while number == 0 or time.monotonic() < end:
        await group.teach(*PAGES[number % len(PAGES)], SENTENCES[number % len(SENTENCES)])
        await group.poll()
        memory.during.append(resident_mb(server.pid))
        number += 1
    await group.leave()
    await asyncio.sleep(LEFT_SECONDS)
    memory.after = resident_mb(server.pid)
    group.times.errors += ["an exception in the server's log"] * server.log_text().count("Traceback")
    return report(group.times, idle, memory)


def report(times: Times, idle: float, memory: Memory) -> int:
    """Print the tables; the number of bounds that were not kept."""
    print("\n| from the teacher's move | count | median | last | bound |\n|---|---|---|---|---|")
    missed = int(idle > IDLE_SHARE) + len(times.errors) + int(memory.grows)
    for kind, found in times.seconds.items():
        bound = BOUNDS.get(kind)
        missed += int(bound is not None and max(found) > bound)
        shown = f"{bound:.1f} s" if bound else ""
        print(f"| {kind} | {len(found)} | {sorted(found)[len(found) // 2]:.3f} s | {max(found):.3f} s | {shown} |")
    print("\n| redrawn | count | median | last |\n|---|---|---|---|")
    for (kind, page), found in sorted(times.of_pages.items()):
        print(f"| {kind}: {page} | {len(found)} | {sorted(found)[len(found) // 2]:.2f} s | {max(found):.2f} s |")
    print(f"\nVotes counted: {times.votes}; errors: {len(times.errors)}; idle: {idle:.2%} of a core")
    print(memory.told())
    for error in dict.fromkeys(times.errors):
        print(f"- {error} ({times.errors.count(error)} times)")
    return missed


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=300, help="seconds of moving and voting")
    parser.add_argument("--idle", type=float, default=20, help="seconds of waiting before")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as folder, serve("app.py", log=Path(folder) / "log") as server:
        missed = asyncio.run(lesson(server, options))
    sys.exit(f"{missed} bounds were not kept" if missed else 0)


if __name__ == "__main__":
    main()
