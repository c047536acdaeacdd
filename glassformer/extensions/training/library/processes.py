"""Process group of a distributed training: ranks, devices, agreement.

`torchrun` (or `--processes`) starts the same command several times with different ranks. Every process reads the same
files and learns from other rows of the same batches; only the first one writes and prints. A process broadcasts what
only it knows (its disk, its clock); if it refuses, all refuse, so no process waits forever. A training in one
process does the same without broadcasts.

Source: `torch.distributed`; its backend is gloo between CPUs, NCCL between GPUs.
"""

import ctypes
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from transformer.errors import DataError
from transformer.i18n import say_n

T = TypeVar("T")

PATIENCE = timedelta(hours=2)  # how long one may wait for another, such as while the first learns a vocabulary
_AGENT = "TORCHELASTIC_RUN_ID"  # set by torchrun, which starts processes again that fell
LAUNCHER = "GLASSFORMER_LAUNCHER"  # set by `launch`: its process id
_RESTARTS = "TORCHELASTIC_RESTART_COUNT"


@dataclass(frozen=True)
class Processes:
    """Those that train together, seen from one of them."""

    device: torch.device
    rank: int = 0
    count: int = 1
    together: bool = False  # a group was made, so that they can speak; one alone may do without

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and prints."""
        return self.rank == 0

    def from_first(self, work: Callable[[], T]) -> T:
        """What `work` gives on the first process, on every process; if it fails there, its error is raised on all."""
        if self.count == 1:
            return work()
        told: list[Any] = [None, None]
        if self.first:
            try:
                told[0] = work()
            except Exception as error:
                told[1] = error
        dist.broadcast_object_list(told, src=0)
        if told[1] is not None:
            raise told[1]
        return told[0]

    def agreed(self, work: Callable[[], T]) -> T:
        """What `work` gives on each process; if it fails on any, the error of the first such one is raised on all."""
        if self.count == 1:
            return work()
        mine: list[Any] = [None, None]
        try:
            mine[0] = work()
        except Exception as error:
            mine[1] = error
        errors: list[Any] = [None] * self.count
        dist.all_gather_object(errors, mine[1])
        for found in filter(None, errors):
            raise found
        return mine[0]

    def gathered(self, mine: Sequence[T]) -> list[T]:
        """The items of all processes, dealt out as rows are: one of each in turn."""
        if self.count == 1:
            return list(mine)
        hands: list[Any] = [None] * self.count
        dist.all_gather_object(hands, list(mine))
        rounds = range(max(map(len, hands)))
        return [hand[i] for i in rounds for hand in hands if i < len(hand)]

    def total(self, values: Tensor) -> Tensor:
        """Numbers of this process plus those of the others."""
        if self.count > 1:
            dist.all_reduce(values)
        return values

    def time(self, clock: float) -> float:
        """The time by the clock of the first process: what depends on time must be the same for all."""
        if self.count == 1:
            return clock
        told = torch.tensor(clock, dtype=torch.float64)
        dist.broadcast(told, src=0)
        return told.item()

    @contextmanager
    def first_in(self, context: AbstractContextManager[object]) -> Iterator[None]:
        """A context that only the first process enters; if it cannot, all processes fail."""
        with ExitStack() as stack:
            self.from_first(lambda: stack.enter_context(context) and None)
            yield


def of_rank(rows: Sequence[T], rank: int, count: int) -> Sequence[T]:
    """The rows of one of `count`: one in so many, as cards are dealt."""
    return rows[rank::count]


@contextmanager
def started(device: str) -> Iterator[Processes]:
    """The processes of this training, from the environment; `device` is "cpu", "cuda" or "auto".

    A `DataError` if there is no such device.
    """
    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys():
        yield Processes(_device(device, 0))
        return
    if _AGENT in os.environ:
        _end_with_parent()
    found = _device(device, int(os.environ.get("LOCAL_RANK", "0")))
    if found.type == "cuda":
        torch.cuda.set_device(found)
    dist.init_process_group("gloo" if found.type == "cpu" else "cpu:gloo,cuda:nccl", timeout=PATIENCE)
    try:
        yield Processes(found, dist.get_rank(), dist.get_world_size(), together=True)
    finally:
        dist.destroy_process_group()


def was_restarted() -> bool:
    """Whether the launcher started this training again after a process of it fell."""
    return int(os.environ.get(_RESTARTS, "0")) > 0


def is_lost(error: RuntimeError) -> bool:
    """Whether an error says that another process is gone."""
    return isinstance(error, dist.DistError) or "gloo/transport" in str(error)


def is_first() -> bool:
    """Whether this process is the one that prints, as far as the environment says."""
    return os.environ.get("RANK", "0") == "0"


def _device(name: str, local_rank: int) -> torch.device:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "cpu" or (name == "auto" and not count):
        return torch.device("cpu")
    if not count:
        raise DataError("--device cuda: torch finds no CUDA device here; use --device cpu or auto.")
    if local_rank >= count:
        raise DataError(
            say_n(
                "--device {name}: there is {n} GPU, and each process needs its own; start fewer processes.",
                "--device {name}: there are {n} GPUs, and each process needs its own; start fewer processes.",
                count,
                name=name,
            )
        )
    return torch.device("cuda", local_rank) if "LOCAL_RANK" in os.environ else torch.device("cuda")


def _end_with_parent() -> None:
    """Have the system end this process with its launcher: an orphan would continue the training and hold its lock."""
    if sys.platform == "linux":
        set_pdeathsig = 1  # PR_SET_PDEATHSIG of linux/prctl.h
        ctypes.CDLL(None).prctl(set_pdeathsig, signal.SIGKILL)
    if os.environ.get(LAUNCHER, str(os.getppid())) != str(os.getppid()):
        os.kill(os.getpid(), signal.SIGTERM)  # it was gone before


_NOTE = "GLASSFORMER_REFUSED"  # names a file that a training leaves when it refuses
REFUSED = 2


def wanted(processes: int, max_restarts: int) -> bool:
    """Whether this process is the launcher of others: requested, and not launched itself."""
    return (processes > 1 or max_restarts > 0) and "RANK" not in os.environ


def launch(arguments: Sequence[str], *, processes: int, max_restarts: int) -> int:
    """Run `python -m transformer` with these arguments in several processes; returns the exit status.

    It is torch's own launcher, `torchrun`, in this process, which restarts processes that fail, with two differences.
    Its rendezvous store is not shared with the training (`TORCH_DISABLE_SHARE_RDZV_TCP_STORE`): restarted processes
    would wait for minutes for the port of a dead one. And a training that refuses its input is not restarted: its first
    process reports why, all exit without failure, and this one returns the exit status.
    """
    os.environ.setdefault("LOGLEVEL", "CRITICAL")  # what torch's launcher says is said below, in a line
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    logging.getLogger("torch.distributed").setLevel(logging.CRITICAL)  # some of its parts go by this
    threads = str(max((os.cpu_count() or 1) // processes, 1))
    with tempfile.TemporaryDirectory(prefix="glassformer-") as folder:
        note = Path(folder) / "refused"
        os.environ |= {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", _NOTE: str(note), LAUNCHER: str(os.getpid())}
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # its warnings are about intended behaviour
        os.environ.setdefault("OMP_NUM_THREADS", threads)
        how = ["--standalone", f"--nproc-per-node={processes}", f"--max-restarts={max_restarts}"]
        try:
            run.run(run.parse_args([*how, "-m", "transformer", *arguments]))
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            code = failure.exitcode
            how_it_ended = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
            print(
                f"error: process {rank + 1} of {processes} {how_it_ended}; the same command with --resume goes on "
                "from what was stored last.",
                file=sys.stderr,
            )
            return 1
        except SignalException as error:
            return 128 + error.sigval
        return REFUSED if note.exists() else 0


def refused(error: Exception) -> int:
    """Have the first process report a refusal that all raise; raises it, or returns the exit status."""
    note = os.environ.get(_NOTE)
    if note is None and is_first():
        raise error
    if note is None:
        return REFUSED
    if is_first():
        print(f"error: {error}", file=sys.stderr, flush=True)
        Path(note).touch()
    return 0
