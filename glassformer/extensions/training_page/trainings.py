"""Trainings started by users: one at a time, each in a process of its own; queue, limits, resuming, expiry.

The process runs `python -m transformer train ...` (`training_worker`); a training of several models runs it for one
after the other, within the same limits. The server reads its folder: the checkpoint, its snapshots, `progress.json`. A
training has an unguessable name; anyone with it sees the training. A stopped or failed one can resume from its last
state. A training without views for some hours is removed, all of them when the server ends. `ABOUT` describes each
training. The server that runs it holds its lock; in a folder that replicas share, the others show its folder and stop
it by a file, and any of them can resume one that has ended.
"""

import json
import logging
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from glassformer.extensions.training.library.state import PROGRESS_FILE, folder_beside, has_state
from glassformer.extensions.training_page import training_worker
from glassformer.server import replicas
from glassformer.server.jobs import Job, JobRegistry, JobStatus
from glassformer.server.model_runner import BusyError
from glassformer.server.replicas import OwnFolder
from transformer import sandbox
from transformer.checkpoint.load import CONFIG
from transformer.errors import DataError
from transformer.i18n import Sentence, say

PREFIX: Final = "glassformer-trainings-"
MOST_MINUTES: Final = 10.0
MOST_WAITING: Final = 6  # of up to ten minutes each, the one that runs included
MOST_KEPT: Final = 20
MOST_BYTES: Final = 200 * 2**20  # of the folder of one training
KEPT_SECONDS: Final = 3 * 3600.0  # without a look
MEMORY: Final = 2 * 2**30  # bytes of address space; a tiny model takes about 1.5 GB, mostly torch itself
LATE_SECONDS: Final = 180.0  # beyond the minutes: for loading before and scoring after them
STOP_SECONDS: Final = 20.0  # for an interrupted process to finish writing
LOOK_SECONDS: Final = 0.5
FULL_SECONDS: Final = 5.0  # between checks of the written bytes
MOST_POINTS: Final = 2_000  # of a curve
_ONE_THREAD: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "SYSTEMROOT")  # of the environment
_MINUTES, _WRITTEN = "--max-minutes", "log.txt"
ABOUT, HELD, STOP = ".about.json", ".held", ".stop"
_LOG = logging.getLogger("glassformer.trainings")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A training to run."""

    name: str  # of the checkpoint folder; of several the last one
    commands: tuple[tuple[str, ...], ...]  # arguments of `python -m transformer`
    files: Mapping[str, bytes] = field(default_factory=dict)  # that the commands read, by name
    minutes: float  # in all; the command of a single model says them, too

    @property
    def trains(self) -> Mapping[str, tuple[str, ...]]:
        """The commands that train, by the names of the checkpoint folders; a single one is the last command."""
        found = {one[one.index("--out") + 1]: one for one in self.commands if one[0] == "train" and "--out" in one}
        return found if len(found) > 1 else {self.name: self.commands[-1]}


@dataclass(frozen=True)
class TrainingProgress:
    """Where a training is, as its process wrote it last; all 0 before that."""

    step: int = 0
    steps: int = 0
    epoch: int = 0
    loss: float = 0.0  # nats a target token
    tokens_a_second: float = 0.0
    seconds: float = 0.0
    left: float = 0.0  # seconds


@dataclass(eq=False)
class Training:
    """One training; the thread that runs it changes it."""

    token: str  # its unguessable name
    plan: Plan
    folder: Path  # all that belongs to it
    times: int = 1  # how often it was begun
    points: dict[str, list[tuple[int, float]]] = field(default_factory=dict)  # step and loss, by name of the model
    due: list[tuple[float, Callable[[], None]]] = field(default_factory=list)  # scheduled calls
    is_gone: bool = False

    def __post_init__(self) -> None:
        self.lock = replicas.Lock(self.folder / HELD)

    @property
    def out(self) -> Path:
        """The checkpoint folder; it may not be there yet."""
        return self.folder / self.plan.name

    @property
    def outs(self) -> Mapping[str, Path]:
        """The folders of all its models, by name, in the order in which they are trained."""
        return {name: self.folder / name for name in self.plan.trains}

    @property
    def models(self) -> dict[str, Path]:
        """Those that can be opened already."""
        return {name: out for name, out in self.outs.items() if (out / CONFIG).exists()}

    @property
    def now(self) -> Path:
        """The folder of the model that was begun last."""
        begun = [out for out in self.outs.values() if folder_beside(out).exists()]
        return [next(iter(self.outs.values())), *begun][-1]

    @property
    def has_model(self) -> bool:
        """Whether the checkpoint can be opened."""
        return self.plan.name in self.models

    @property
    def key(self) -> str:
        """Of its job."""
        return f"{self.token} {self.times}"

    def progress(self) -> TrainingProgress:
        """Where it is, with the model that was begun last."""
        try:
            record, kinds = json.loads((folder_beside(self.now) / PROGRESS_FILE).read_bytes()), vars(TrainingProgress())
            return TrainingProgress(**{name: type(value)(record[name]) for name, value in kinds.items()})
        except (OSError, ValueError, TypeError, KeyError):
            return TrainingProgress()

    def note(self) -> None:
        """Remember where it is as a point of its curve."""
        name, now = self.now.name, self.progress()
        points = self.points.setdefault(name, [])
        if now.step and (not points or points[-1][0] < now.step):
            points.append((now.step, now.loss))
        if len(points) > MOST_POINTS:
            self.points[name] = points[::2]


class Trainings(OwnFolder):
    """All trainings of a server.

    Their folder is made in `place`, unless it is `shared`; each has so many bytes of `memory`, and is stopped if it is
    `late` by so many seconds or has written `most_bytes`. Their process runs the module `child`.
    """

    def __init__(
        self,
        place: Path | None = None,
        *,
        shared: Path | None = None,
        memory: int = MEMORY,
        late: float = LATE_SECONDS,
        most_bytes: int = MOST_BYTES,
        child: str = training_worker.__name__,
    ) -> None:
        super().__init__(PREFIX, place, shared)
        self._memory, self._late, self._most_bytes, self._child = memory, late, most_bytes, child
        self._lock = threading.RLock()
        self._found: dict[str, Training] = {}
        self._jobs: JobRegistry[str] = JobRegistry(
            _too_many, most=MOST_WAITING, at_once=1, room=4 * MOST_KEPT, keeps_stopped=True
        )
        self._running: Training | None = None
        self._is_closed = False

    def begin(self, plan: Plan) -> Training:
        """Start or queue a training; returns at once.

        Raises `BusyError`: too many are queued or kept; `DataError`: the files cannot be written.
        """
        self.sweep()
        with self._lock:
            self._make_room()
            token = secrets.token_urlsafe(16)
            made = Training(token, plan, self.root / token)
            try:
                made.folder.mkdir(mode=0o700)
                for name, content in plan.files.items():
                    (made.folder / name).write_bytes(content)
                self._ask(made)
            except OSError:
                shutil.rmtree(made.folder, ignore_errors=True)
                raise DataError("The files could not be written on this server; try again later.") from None
            except BusyError:
                shutil.rmtree(made.folder, ignore_errors=True)
                raise
            self._found[token] = made
        return made

    def find(self, token: str) -> Training | None:
        """A training by its name; that counts as looking at it."""
        with self._lock:
            self._adopt(token)
            found = self._found.get(token)
            if found is not None:
                replicas.touch(found.folder)
            return found

    def _adopt(self, token: str) -> None:
        """Load a training of another replica, or drop one that was removed."""
        folder = replicas.named(self.root, token)
        if folder is None:
            self._found.pop(token, None)
        elif token not in self._found:
            with suppress(OSError, ValueError, TypeError, KeyError):
                about = json.loads((folder / ABOUT).read_bytes())
                commands = tuple(tuple(command) for command in about["commands"])
                plan = Plan(name=Path(about["name"]).name, commands=commands, minutes=float(about["minutes"]))
                self._found[token] = Training(token, plan, folder)

    def look(self, training: Training) -> JobStatus:
        """How far its job is; of one that another replica has, whether it is under way."""
        seen = self._jobs.look(training.key) or JobStatus("cancelled")
        if seen.is_under_way:
            return seen
        if training.lock.is_others():
            training.times += 1  # what it came to here counts no more
            training.note()
            return JobStatus("running")
        now = training.progress()
        is_done = seen.state == "cancelled" and 0 < now.steps <= now.step and training.now == training.out
        return JobStatus("done") if is_done else seen

    def before(self, training: Training) -> int:
        """How many come before one that waits."""
        return self._jobs.before(training.key)

    def seconds_left(self) -> tuple[float, float] | None:
        """For how long one has run, and for how long it may run yet at most; None if none does."""
        running = self._running
        job = None if running is None else self._jobs.find(running.key)
        if running is None or job is None:
            return None
        ran = time.monotonic() - job.began
        return ran, max(0.0, self._limit(running.plan) - ran)

    def _limit(self, plan: Plan) -> float:
        """The most seconds; several models need more of them for loading and scoring."""
        return 60 * plan.minutes + self._late * (2 + len(plan.trains)) / 3

    def cancel(self, training: Training) -> None:
        """Stop it; its state is kept."""
        if training.lock.is_others():
            with suppress(OSError):
                (training.folder / STOP).touch()
        self._jobs.withdraw(training.key)
        if self._running is not training:
            training.lock.let_go()

    def resume(self, training: Training, *, minutes: float | None = None) -> None:
        """Go on with one that has ended, with more minutes or with those that are left. Raises `BusyError`."""
        if not self.look(training).is_under_way:
            self._jobs.look(training.key, patience=STOP_SECONDS)  # it counts as ended while its thread holds the lock
        with self._lock:
            if self.look(training).is_under_way:
                return
            before = training.plan
            minutes = before.minutes if minutes is None else min(minutes, MOST_MINUTES)
            training.plan, training.times = _with_minutes(before, minutes), training.times + 1
            try:
                self._ask(training)
            except (BusyError, OSError):
                training.plan, training.times = before, training.times - 1
                raise

    def when(self, training: Training, seconds: float, do: Callable[[], None]) -> None:
        """Have something done when so many seconds are over, or the training is."""
        if training.lock.is_others():
            timer = threading.Timer(seconds, do)
            timer.daemon = True  # the server's end does not wait for it
            timer.start()
            return
        training.due.append((time.monotonic() + seconds, do))
        if not self.look(training).is_under_way:
            _do_what_is_due(training, everything=True)

    def forget(self, training: Training) -> None:
        """Stop it, and remove it with its files."""
        with self._lock:
            self._found.pop(training.token, None)
            training.is_gone = True
            with suppress(OSError):
                (training.folder / ABOUT).unlink()  # it is not found again while its process ends
            self._jobs.withdraw(training.key)
            if self._running is not training:
                training.lock.let_go()
                shutil.rmtree(training.folder, ignore_errors=True)

    def sweep(self) -> None:
        """Remove trainings without views for long."""
        with self._lock:
            for token in {*self._found, *replicas.names(self.root)}:
                self._adopt(token)
                folder = self.root / token
                if token not in self._found and replicas.seconds_since(folder) > KEPT_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)  # what never became a training
            old = [one for one in self._idle() if replicas.seconds_since(one.folder) > KEPT_SECONDS]
        for one in old:
            self.forget(one)

    def close(self) -> None:
        """End all of them, and remove everything that belongs to this server only; idempotent."""
        self._is_closed = True
        self._jobs.end(STOP_SECONDS)
        with self._lock:
            for one in self._found.values():
                one.lock.let_go()
            self._found.clear()
        super().close()

    def _idle(self) -> list[Training]:
        """Ended trainings, the least recently viewed first."""
        over = [one for one in self._found.values() if not self.look(one).is_under_way]
        return sorted(over, key=lambda one: replicas.seconds_since(one.folder), reverse=True)

    def _make_room(self) -> None:
        while len(self._found) >= MOST_KEPT:
            idle = self._idle()
            if not idle:  # more are kept than may wait, but at several replicas
                raise _too_many(len(self._found))
            self.forget(idle[0])

    def _ask(self, training: Training) -> None:
        if not training.lock.take():
            raise BusyError("Another replica is at this training.")
        try:
            (training.folder / STOP).unlink(missing_ok=True)
            about = {name: getattr(training.plan, name) for name in ("name", "commands", "minutes")}
            (training.folder / ABOUT).write_text(json.dumps(about), encoding="utf-8")
            self._jobs.ask(training.key, lambda job: self._train(training, job))
        except (BusyError, OSError):
            training.lock.let_go()
            raise

    # ---------------------------------------------------------------- in the thread

    def _train(self, training: Training, job: Job) -> None:
        self._running = training
        end = time.monotonic() + self._limit(training.plan)
        try:
            for command in _to_run(training):
                self._run(training, command, job, end)
        finally:
            _do_what_is_due(training, everything=True)
            training.lock.let_go()
            with self._lock:
                self._running = None
                if training.is_gone:
                    shutil.rmtree(training.folder, ignore_errors=True)

    def _run(self, training: Training, command: tuple[str, ...], job: Job, end: float) -> None:
        """Run a command to its end. Raises `StoppedError`; `DataError`: it failed, or exceeded a limit."""
        _LOG.info("training %s: %s", training.plan.name, " ".join(command))
        process = self._process(training, command)
        looked = time.monotonic()
        took_too_much: Sentence | None = None
        try:
            while process.poll() is None and not job.stopped.wait(LOOK_SECONDS) and took_too_much is None:
                training.note()
                _do_what_is_due(training)
                if (training.folder / STOP).exists():  # as another replica asks
                    job.stopped.set()
                if time.monotonic() > end:
                    took_too_much = say("The training took much longer than it may, so it was stopped.")
                elif time.monotonic() - looked > FULL_SECONDS:
                    looked = time.monotonic()
                    if sandbox.bytes_below(training.folder) > self._most_bytes:
                        took_too_much = say(
                            "The training wrote more than {most:,} bytes, so it was stopped.", most=self._most_bytes
                        )
            if self._is_closed and not self.is_shared:  # nothing of it will be kept
                process.kill()
            status = _stopped(process)
        finally:
            sandbox.end(process)
        training.note()
        job.pause()
        if took_too_much is not None:
            raise DataError(took_too_much)
        if status:
            raise DataError(_why(training, status, self._memory))

    def _process(self, training: Training, command: tuple[str, ...]) -> subprocess.Popen[bytes]:
        root = str(training_worker.ROOT)
        environment = {key: os.environ[key] for key in _KEPT if key in os.environ} | _ONE_THREAD
        environment |= {"TMPDIR": str(training.folder)}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
        with (training.folder / _WRITTEN).open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-B", "-m", self._child, str(self._memory), *command],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=training.folder,
                start_new_session=True,  # Ctrl-C is for the server, which ends its trainings itself
            )


def _to_run(training: Training) -> list[tuple[str, ...]]:
    """The commands of the first run, or the one that resumes and those after it; without a state it starts again."""
    plan, out = training.plan, training.now
    if training.times == 1:
        return list(plan.commands)
    train = plan.trains[out.name]
    at = plan.commands.index(train)
    if has_state(out):
        return [(*train, "--resume"), *plan.commands[at + 1 :]]
    before = [command for command in plan.commands[:at] if command not in plan.trains.values()]
    return [*before, (*train, *["--force"] * (out / CONFIG).exists()), *plan.commands[at + 1 :]]


def _with_minutes(plan: Plan, minutes: float) -> Plan:
    *before, last = plan.commands
    train = list(last)
    if _MINUTES in train and len(plan.trains) == 1:
        train[train.index(_MINUTES) + 1] = f"{minutes:g}"
    return replace(plan, commands=(*before, tuple(train)), minutes=minutes)


def _stopped(process: subprocess.Popen[bytes]) -> int:
    """Interrupt a process that still runs, so it can save its state; returns its exit status."""
    if process.poll() is None and process.stdin is not None:
        with suppress(OSError):  # it ends by itself
            process.stdin.write(b"\n")
        with suppress(subprocess.TimeoutExpired):
            return process.wait(STOP_SECONDS)
        process.kill()
    return process.wait()


def _do_what_is_due(training: Training, *, everything: bool = False) -> None:
    now = time.monotonic()
    ready = [one for one in training.due if everything or one[0] <= now]
    training.due = [one for one in training.due if one not in ready]
    for _, do in ready:
        try:
            do()
        except Exception:  # the training must continue
            _LOG.exception("what was due could not be done")


def _why(training: Training, status: int, memory: int) -> Sentence:
    """The reason that a process failed; its output is logged."""
    with suppress(OSError):
        last = (training.folder / _WRITTEN).read_bytes()[-4000:].decode(errors="replace").splitlines()
        told = [line.removeprefix("error: ") for line in last if line.startswith("error: ")]
        _LOG.warning("a training ended with status %d:\n%s", status, "\n".join(last[-20:]))
        if status == 2 and told:
            return say("The training could not go on: {problem}", problem=told[-1])
    if status in (training_worker.NO_MEMORY, -signal.SIGKILL):
        return say(
            "The training needed more memory than it may have ({most:,} MB). Choose fewer layers or shorter pairs.",
            most=memory // 2**20,
        )
    return say("The training stopped unexpectedly; the reason is in the server's log.")


def _too_many(n: int) -> BusyError:
    return BusyError(
        "{n} training is waiting or running, the most that this server allows. Try again in some minutes.",
        "{n} trainings are waiting or running, the most that this server allows. Try again in some minutes.",
        n,
    )
