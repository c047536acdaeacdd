"""Saves that are killed: a process for each place, which SIGKILL ends there.

Each copy is saved to by a process that is killed at a place of its own; the last copy by one that was not killed.
Nothing is really flushed to the disk: what a process wrote is there although it was killed.
"""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformer.checkpoint import save as saving
from transformer.checkpoint.load import load

CALLS = ("mkdir", "fsync", "rename", "unlink", "rmdir")


class _Killer:
    """Counts what is called, and kills the process before or after one of the calls."""

    def __init__(self, place: int) -> None:
        self._left = place

    def _pass(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with a place before it and one after it."""

        def killing(*arguments: Any, **options: Any) -> Any:
            self._pass()
            result = call(*arguments, **options)
            self._pass()
            return result

        return killing


def _save(parts: saving.CheckpointContents, folder: Path, place: int, way: str) -> None:
    killer = _Killer(place)
    os.fsync = lambda descriptor: None
    for name in CALLS:
        setattr(os, name, killer.around(getattr(os, name)))
    exchange = saving.exchange if way == "exchange" else lambda a, b: False
    saving.exchange = killer.around(exchange)
    saving.save(parts, folder)


def kill_saves(source: Path, copies: dict[str, Path]) -> None:
    """Kill saves of each way until one comes to its end."""
    checkpoint = load(source)
    models = tuple((source / name).read_bytes() for name in ("source.model", "target.model"))
    parts = saving.CheckpointContents(checkpoint.config, checkpoint.model.state_dict(), models, {"title": "New"})
    for way, folder in copies.items():
        kill(source, parts, folder, way)


def kill(source: Path, parts: saving.CheckpointContents, copies: Path, way: str) -> None:
    """Kill one save after the other, each behind its next call: before the one after it, all that is there is alike."""
    for place in range(1, 1_000, 2):
        folder = copies / f"{place:03}" / "tiny"
        shutil.copytree(source, folder)
        (folder / "NOTES.md").write_text("my notes", encoding="utf-8")
        child = os.fork()
        if child == 0:
            _save(parts, folder, place, way)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            return
