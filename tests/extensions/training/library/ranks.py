"""Runs a command as the processes of one training, as torchrun would: quickly, as forks of one that knows torch."""

import contextlib
import multiprocessing
import os
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from unittest import mock


class Ended(NamedTuple):
    """How one of the processes ended."""

    status: int
    out: str
    error: str


def together(arguments: list[str], folder: Path, *, count: int = 2, most_bytes: int | None = None) -> list[Ended]:
    """Run `python -m transformer` with the arguments in `count` processes; what they say goes through files."""
    context = multiprocessing.get_context("forkserver")
    slow = ["torch._dynamo", "torch.distributed.fsdp"]  # to import, which each training does
    context.set_forkserver_preload(["glassformer.extensions.training.library.run", *slow])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = [
        context.Process(target=_run, args=(arguments, str(folder), rank, count, port, most_bytes))
        for rank in range(count)
    ]
    # The processes would run the main module, too, and a test of a page leaves the page there.
    with mock.patch.dict(sys.modules, {"__main__": ModuleType("__main__")}):
        for rank in ranks:
            rank.start()
    for rank in ranks:
        rank.join(60)
        if rank.exitcode is None:
            rank.kill()
            raise AssertionError("a process waits for another one")
    said = [[(folder / f"{name}{rank}.txt").read_text() for name in ("out", "error")] for rank in range(count)]
    return [Ended(rank.exitcode or 0, *texts) for rank, texts in zip(ranks, said, strict=True)]


def _run(arguments: list[str], folder: str, rank: int, count: int, port: int, most_bytes: int | None) -> None:
    import resource

    import torch

    from glassformer.extensions.training.library import run
    from transformer.__main__ import main

    torch.set_num_threads(1)
    run.keep_freed_memory = lambda: None
    where = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in where.items()}
    with (
        open(f"{folder}/out{rank}.txt", "w") as out,
        open(f"{folder}/error{rank}.txt", "w") as error,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
    ):
        if most_bytes is not None:
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
        status = main(arguments)
    raise SystemExit(status)
