"""A class that is spread over two replicas behind HAProxy, against one replica; then one is killed, and Redis is.

    python -m benchmarks.replicas --students 200

Real programs: the app once, then twice, `deploy/haproxy.cfg` with its sticky cookie, redis-server that keeps nothing
on disk. Students do what those of `benchmarks.room` do, through the proxy; the teacher is at the first replica. All
share the machine's cores with the process of the students.

Then, with two replicas: half of the class has voted when the second replica gets SIGKILL. Its students come again as
browsers do (events after 2 s, Streamlit's page after 0.5 to 1 s), those who had voted try to vote a second time, the
others vote, and the votes are compared. Then redis-server gets SIGKILL and is started again, empty, 3 s later: what
is said meanwhile is printed, and how soon a move of the teacher is with all again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from websockets.exceptions import WebSocketException

from benchmarks.app import cpu_seconds
from benchmarks.room import PAGES, Class, Student, Times
from benchmarks.room_client import Tab, cookie_of, post
from benchmarks.visitors import SENTENCES
from tests.deploy.by_hand import configuration, needed
from tests.extensions.replicas.redis_server import RedisServer
from tools.serve import HOST, Server, free_port, serve, wait_until_healthy

RETRY_SECONDS = 2.0  # of a stream of events, as the server says
PATIENCE_SECONDS = 240.0
BACK_SECONDS = 10.0  # the bar
AWAY_SECONDS = 3.0
MOVE_SECONDS = 0.15  # the bar for a move of the teacher


class Pupil(Student):
    """A student who comes again when a replica has ended, as a browser does."""

    broken = hello = drawn = away = 0.0  # when that was last
    voted = 0

    async def hear(self) -> None:
        """Listen, whichever replica answers."""
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await super().hear()
            self.broken = time.monotonic()
            await asyncio.sleep(RETRY_SECONDS)

    def heard(self, kind: str, said: dict[str, Any]) -> None:
        """Note what is told of the room as a whole."""
        if kind == "hello":
            self.hello = time.monotonic()
        elif kind == "away" or said.get("why") == "away":
            self.away = time.monotonic()
        elif kind in ("ended", "refused"):
            self.times.errors.append(f"{kind}: {said}")

    async def stay(self) -> None:
        """Have the page drawn anew whenever its session is lost."""
        while True:
            await self.lost()
            await asyncio.sleep(0.5 + self._dice.random() / 2)
            with contextlib.suppress(OSError, WebSocketException):
                await self.rerun(query=self.talk.query)
                self.drawn = time.monotonic()

    async def try_to_vote(self, choice: int) -> str:
        """Vote; how it is answered."""
        said = {"token": self.token, "round": self.state["round"], "choice": choice}
        status, answer = await post(self.port, f"/class/{self.code}/vote", said, self.cookie)
        return str(answer.get("why", status))


@dataclass
class Site:
    """What serves: replicas, Redis, and the proxy, as which it is known."""

    replicas: list[Server]
    redis: RedisServer
    proxy: Server

    def cpu(self) -> list[float]:
        """The processor's seconds so far: of all replicas, Redis, the proxy."""
        replicas = sum(cpu_seconds(one.pid) for one in self.replicas)
        return [replicas, cpu_seconds(self.redis.pid), cpu_seconds(self.proxy.pid)]


@contextlib.contextmanager
def served(n: int) -> Iterator[Site]:
    """Start one or two replicas with all that they need."""
    with contextlib.ExitStack() as left:
        folder = Path(left.enter_context(tempfile.TemporaryDirectory()))
        redis = left.enter_context(RedisServer(folder))
        ports, port = [free_port(), free_port()], free_port()
        said = {"GLASSFORMER_STORE": redis.url, "GLASSFORMER_DRAIN_SECONDS": "0"}
        replicas = [
            left.enter_context(serve("app.py", log=folder / f"{one}.log", port=one, environment=said))
            for one in ports[:n]
        ]
        (folder / "haproxy.cfg").write_text(configuration(port, ports), encoding="utf-8")
        with (folder / "haproxy.log").open("wb") as log:
            command = [needed("haproxy"), "-f", str(folder / "haproxy.cfg")]
            process = left.enter_context(subprocess.Popen(command, stderr=log))
        left.callback(process.kill)
        proxy = Server(f"http://{HOST}:{port}", port, folder / "haproxy.log", process)
        wait_until_healthy(proxy)
        yield Site(replicas, redis, proxy)


class Spread(Class):
    """A class that comes through the proxy."""

    def __init__(self, site: Site, n_students: int, *, seed: int) -> None:
        super().__init__(site.proxy, n_students, seed=seed, patience=PATIENCE_SECONDS)
        self.site, self.teacher = site, Tab(site.replicas[0].url)
        self.pupils: list[Pupil] = []

    async def student(self, seed: int) -> Pupil:
        """See `Class`."""
        cookie = await cookie_of(self.server.port)
        found = Pupil(self.server.url, self.server.port, self.code, self.times, seed=seed, cookie=cookie)
        self.pupils.append(found)
        return found

    async def gather(self) -> None:
        """See `Class`."""
        await super().gather()
        self._following += [asyncio.create_task(pupil.stay()) for pupil in self.pupils]

    async def lose_a_replica(self) -> None:
        """Kill the second replica in the middle of a round, and say how soon its students are back."""
        await self.teacher.rerun(page="room", query=f"room={self.code}")
        await self.teacher.click("room_ask")
        await self.until(lambda: all(pupil.state.get("taken") for pupil in self.pupils), "all are asked")
        early, late = self.pupils[: self._n // 2], self.pupils[self._n // 2 :]
        answers = await asyncio.gather(*(pupil.try_to_vote(0) for pupil in early))
        began = time.monotonic()
        os.killpg(self.site.replicas[1].pid, signal.SIGKILL)
        await asyncio.sleep(1.0)
        lost = [pupil for pupil in self.pupils if pupil.broken > began]
        await self.until(lambda: all(pupil.hello > began for pupil in lost), "all are in the room again")
        back = sorted(pupil.hello - began for pupil in lost)
        again = await asyncio.gather(*(pupil.try_to_vote(1) for pupil in early))
        answers += await asyncio.gather(*(pupil.try_to_vote(2) for pupil in late))
        await self.until(lambda: all(pupil.drawn > began for pupil in lost), "all pages are drawn again")
        drawn = sorted(pupil.drawn - began for pupil in lost)
        print(f"\nThe second replica got SIGKILL. Of {self._n} students it had {len(lost)}; in the room again after "
              f"{back[len(back) // 2]:.1f} s (median), the last {back[-1]:.1f} s; the page drawn by another after "
              f"{drawn[len(drawn) // 2]:.1f} s (median), the last {drawn[-1]:.1f} s.")  # fmt: skip
        print(f"Votes: {answers.count('204')} of {self._n} counted; {again.count('voted')} of {len(early)} second "
              "votes refused.")  # fmt: skip
        await self.teacher.click("room_show")
        await self.until(lambda: all(pupil.state["shown"] for pupil in self.pupils), "votes are shown")
        counts = [len(early), 0, len(late), 0]
        if any(pupil.state["shown"][-1] != {"voted": self._n, "counts": counts} for pupil in self.pupils):
            self.times.errors.append(f"counted otherwise: {self.pupils[0].state['shown']}, not {counts}")
        if not back or back[-1] > BACK_SECONDS:
            self.times.errors.append(f"of {len(lost)} the last was back after {back[-1:]} s")

    async def lose_redis(self) -> None:
        """Kill Redis, start it again, and say what is said and how soon all is back."""
        began = time.monotonic()
        await asyncio.to_thread(self.site.redis.stop)
        await self.until(lambda: all(pupil.away > began for pupil in self.pupils), "all are told that Redis is away")
        away = max(pupil.away for pupil in self.pupils) - began
        shown = await self.teacher.rerun(page="room", query=f"room={self.code}")
        pages = await asyncio.gather(*(pupil.rerun(query=pupil.talk.query) for pupil in self.pupils[:5]))
        await asyncio.sleep(max(0.0, began + AWAY_SECONDS - time.monotonic()))
        started = time.monotonic()
        await asyncio.to_thread(self.site.redis.start)
        await self.until(lambda: all(pupil.hello > started for pupil in self.pupils), "all are told that it is back")
        back = max(pupil.hello for pupil in self.pupils) - started
        print(f"\nredis-server got SIGKILL: all streams said so after {away:.1f} s and stayed open; the teacher's "
              f"page said: “{' '.join(shown.alerts)}”; {len(pages)} students' pages were drawn without an error. "
              f"Started again, empty: all streams were told after {back:.1f} s.")  # fmt: skip


@dataclass
class Held:
    """What a lesson came to: its times, the processor's seconds, how long it took, the students of each replica."""

    times: Times
    cpu: list[float]
    seconds: float
    shares: list[int]


async def lesson(site: Site, options: argparse.Namespace) -> Held:
    """Hold a lesson; where there are two replicas, lose one, and then Redis."""
    group = Spread(site, options.students, seed=options.seed)
    await group.gather()
    await asyncio.sleep(2)
    before, began = site.cpu(), time.monotonic()
    for number in range(options.pages):
        await group.teach(*PAGES[number % len(PAGES)], SENTENCES[number % len(SENTENCES)])
        await group.poll()
    cookies = [pupil.cookie for pupil in group.pupils]
    held = Held(
        group.times, [now - then for now, then in zip(site.cpu(), before, strict=True)], time.monotonic() - began,
        [cookies.count(one) for one in sorted(set(cookies))],
    )  # fmt: skip
    if len(site.replicas) > 1:
        usual, group.times.seconds = group.times.seconds, {}
        await group.lose_a_replica()
        await group.lose_redis()
        await group.teach("masks", {}, SENTENCES[-1])
        await group.poll()
        moves = group.times.seconds["event"]
        print(f"Then a move reached all after {max(moves):.3f} s, and all {options.students} votes were counted.")
        group.times.seconds = usual
        group.times.votes -= options.students
    await group.leave()
    return held


def report(held: Sequence[Held]) -> int:
    """Print one replica against two; the number of things that went wrong."""
    print(f"\n| | {' | '.join(f'{len(one.shares)} replica(s)' for one in held)} |\n|---|{'---|' * len(held)}")
    rows = {"students at each replica": [" + ".join(map(str, one.shares)) for one in held]}
    for kind in held[0].times.seconds:
        found = [sorted(one.times.seconds.get(kind, [0.0])) for one in held]
        rows[f"{kind}: median, last"] = [f"{one[len(one) // 2]:.3f} s, {one[-1]:.3f} s" for one in found]
    on_time = [sum(o <= MOVE_SECONDS for o in one.times.seconds["event"]) for one in held]
    n = [len(one.times.seconds["event"]) for one in held]
    rows[f"events within {MOVE_SECONDS} s"] = [f"{a:,} of {b:,}" for a, b in zip(on_time, n, strict=True)]
    rows["votes counted"] = [str(one.times.votes) for one in held]
    for place, name in enumerate(("the app", "Redis", "HAProxy")):
        rows[f"processor of {name}"] = [f"{one.cpu[place]:.1f} s" for one in held]
    rows["the lesson took"] = [f"{one.seconds:.0f} s" for one in held]
    for name, values in rows.items():
        print(f"| {name} | {' | '.join(values)} |")
    errors = [error for one in held for error in one.times.errors]
    print(f"\nErrors: {len(errors)}")
    for error in dict.fromkeys(errors):
        print(f"- {error} ({errors.count(error)} times)")
    return len(errors)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=200)
    parser.add_argument("--pages", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2], choices=(1, 2))
    options = parser.parse_args(arguments)
    held = []
    for n in options.replicas:
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}", flush=True)
        with served(n) as site:
            held.append(asyncio.run(lesson(site, options)))
    wrong = report(held)
    sys.exit(f"{wrong} things went wrong" if wrong else 0)


if __name__ == "__main__":
    main()
