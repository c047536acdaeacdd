"""Worker pool for the shards of a corpus: processes of this machine with pipes and restarts, or Ray on a cluster.

Each process has its own pipe, so one that dies leaves no lock: another is started and gets its shard. On Linux they are
forked and share the checkpoint's memory; elsewhere, and in a program with threads or a model on another device, each
loads the checkpoint once.

On a cluster every machine needs this program, and the checkpoint under the same path. Ray measures the shard of a lost
process or machine again. Only the calling process writes files.
"""

import ctypes
import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

import pyarrow as pa

from glassformer.extensions.corpus.library.lines import Shard
from glassformer.extensions.corpus.library.shards import CorpusJob, Files
from transformer.checkpoint.free_memory import keep_freed_memory
from transformer.checkpoint.load import in_memory
from transformer.errors import DataError, GlassformerError

_ATTEMPTS = 3  # at one shard: what ends a process each time will also end the next


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    pipe: Connection
    shard: Shard | None = None  # what it is measuring


def measured(job: CorpusJob, shards: Iterable[Shard], *, processes: int) -> Iterator[tuple[int, Files]]:
    """The files of each shard, with its number, as they become ready; bounded by the shards in progress.

    A `GlassformerError` where a shard fails or its process dies repeatedly. No process is left, however it ends.
    """
    context = _context(job)
    waiting, again, ended = iter(shards), list[Shard](), Counter[int]()
    workers = [_start(context, job) for _ in range(processes)]

    def give(worker: _Worker) -> None:
        worker.shard = again.pop() if again else next(waiting, None)
        if worker.shard is not None:
            with suppress(OSError):  # it is dead, which its pipe will say
                worker.pipe.send(worker.shard)

    try:
        for worker in workers:
            give(worker)
        while busy := {worker.pipe: worker for worker in workers if worker.shard is not None}:
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                answer, shard = _answer(worker), worker.shard
                assert shard is not None
                if answer is None:
                    ended[shard.number] += 1
                    if ended[shard.number] == _ATTEMPTS:
                        raise _hopeless(shard, worker)
                    _end(worker)
                    again.append(shard)
                    place, worker = workers.index(worker), _start(context, job)
                    workers[place] = worker
                give(worker)
                if answer is not None:
                    yield shard.number, answer
    finally:
        for worker in workers:
            _end(worker)


def _context(job: CorpusJob) -> BaseContext:
    """Fork only where nothing can be half done: a copied thread would not run, and what it locked stay locked."""
    held = in_memory(job.content_hash)
    alone = sys.platform == "linux" and threading.active_count() == 1
    forks = alone and held is not None and held.device.type == "cpu"
    return multiprocessing.get_context("fork" if forks else "spawn")


def _start(context: BaseContext, job: CorpusJob) -> _Worker:
    ours, theirs = Pipe()
    forks = context.get_start_method() == "fork"
    process = context.Process(target=_serve, args=(job, theirs, ours if forks else None), daemon=True)  # type: ignore[attr-defined]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python counts the idle threads of numpy and Arrow, too
        process.start()
    theirs.close()
    return _Worker(process, ours)


def _answer(worker: _Worker) -> Files | None:
    """What a process found; None if it is dead. What it raised is raised here."""
    try:
        found = worker.pipe.recv()
    except (EOFError, OSError):
        return None
    if isinstance(found, Exception):
        raise found
    return found


def _hopeless(shard: Shard, worker: _Worker) -> DataError:
    worker.process.join(timeout=1)
    first, last = shard.lines[0].number, shard.lines[-1].number
    return DataError(
        "lines {first:,} to {last:,}: the process that measures them was ended {n} times (exit code {code}), perhaps "
        "for want of memory; use fewer --processes or a smaller --shard.",
        first=first,
        last=last,
        n=_ATTEMPTS,
        code=worker.process.exitcode,
    )


def _end(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.terminate()
    worker.process.join(timeout=5)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()


def _serve(job: CorpusJob, pipe: Connection, parents: Connection | None) -> None:
    """A process of the pool: one shard after another, until the caller's end of the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the caller ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # in this way, whatever a fork of the caller would do instead
    if parents is not None:
        parents.close()  # else a caller that was killed would never be missed
    gc.freeze()  # looking through what was there before would only copy its memory
    pa.set_memory_pool(pa.system_memory_pool())
    keep_freed_memory()  # for the next batch; a shard's end gives it back
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None  # glibc has it
    with suppress(EOFError, OSError):
        while True:
            shard = pipe.recv()
            try:
                pipe.send(job.files(shard))
            except GlassformerError as error:
                pipe.send(error)
            except Exception as error:
                pipe.send(RuntimeError(f"{error}\n{traceback.format_exc()}"))
            if trim:
                trim(0)  # else what one large batch needed would be kept to the end


def measured_with_ray(
    job: CorpusJob, shards: Iterable[Shard], *, processes: int, address: str | None = None
) -> Iterator[tuple[int, Files]]:
    """As `measured`, with Ray: on the cluster at `address`, or started here with `processes` logical CPUs.

    A `DataError` where Ray is not installed or there is no such cluster.
    """
    try:
        import ray
    except ModuleNotFoundError:
        raise DataError("--engine ray needs Ray; pip install 'glassformer[ray]' brings it.") from None
    how: dict[str, Any] = (
        {"address": address} if address else {"address": "local", "num_cpus": processes, "include_dashboard": False}
    )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray sends usage statistics otherwise
    try:
        ray.init(**how, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise DataError("Ray cannot be reached ({reason}).", reason=str(error).split("\n")[0]) from None
    try:
        if job.device != "cpu" and not ray.cluster_resources().get("GPU"):
            raise DataError("device {device}: this Ray cluster has no GPU; use cpu.", device=job.device)
        files = ray.remote(num_cpus=1, num_gpus=int(job.device != "cpu"), max_retries=3)(CorpusJob.files)
        n_at_once = int(ray.cluster_resources().get("CPU", 1))
        waiting = iter(shards)
        running = {files.remote(job, shard): shard.number for shard in islice(waiting, n_at_once)}
        while running:
            (ready, *_), _ = ray.wait(list(running))
            number = running.pop(ready)
            try:
                found = ray.get(ready)
            except ray.exceptions.RayTaskError as error:
                raise error.cause if isinstance(error.cause, GlassformerError) else error from None
            except ray.exceptions.RayError as error:
                raise DataError("Ray gave up a shard ({reason}).", reason=str(error).split("\n")[0]) from None
            running |= {files.remote(job, shard): shard.number for shard in islice(waiting, 1)}
            yield number, found
    finally:
        ray.shutdown()
