"""Checkpoints and runs, shared by all sessions of the server.

Checkpoints are looked for in the folder `checkpoints/` of the project, in the folders of the environment variable
`GLASSFORMER_CHECKPOINTS` (separated as in `PATH`), and in those given as `--checkpoints DIR` after `--` on the
command line.
"""

from __future__ import annotations

import gc
import itertools
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from transformer.checkpoint.listing import Entry, Seen, Signature, listing, signature
from transformer.checkpoint.load import Checkpoint, load
from transformer.runs.query import Query
from transformer.runs.replay import replay as record
from transformer.runs.running import run_batch
from transformer.runs.trace import Trace
from ui.runs.work import Runner
from ui.shared.door import st
from words import say

ENVIRONMENT = "GLASSFORMER_CHECKPOINTS"
OPTION = "--checkpoints"
SHIPPED = Path(__file__).resolve().parents[2] / "checkpoints"
DEFAULT_NAME = "zh-en"
LOOK_AGAIN_SECONDS = 10
PATIENCE_SECONDS = 0.3  # that a visitor waits for a newer list


def folders(arguments: Sequence[str] | None = None) -> list[Path]:
    """The folders that hold checkpoint folders, the project's own first.

    Args:
        arguments: The app's command line; the real one when not given.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    given = [after for word, after in itertools.pairwise(arguments) if word == OPTION]
    given += [word.removeprefix(OPTION + "=") for word in arguments if word.startswith(OPTION + "=")]
    from_environment = [part for part in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if part]
    return list(dict.fromkeys([SHIPPED, *(Path(part).expanduser() for part in (*from_environment, *given))]))


class _Listed:
    """What some folders hold, looked at in the background: only the very first to ask waits for all of it.

    Args:
        where: Folders of checkpoint folders.
    """

    def __init__(self, where: Sequence[Path]) -> None:
        self._where, self._seen = where, Seen()
        self._found: tuple[Entry, ...] | None = None
        self._looked_at, self._looking = 0.0, threading.Thread()
        self._lock = threading.Lock()

    def entries(self) -> tuple[Entry, ...]:
        """What was found last; what is there now, if that takes no more than a moment to see."""
        with self._lock:
            old = time.monotonic() - self._looked_at >= LOOK_AGAIN_SECONDS
            if not self._looking.is_alive() and (old or self._found is None):
                self._looking = threading.Thread(target=self._look, daemon=True)
                self._looking.start()
            looking = self._looking
        if looking.is_alive():
            looking.join(None if self._found is None else PATIENCE_SECONDS)
        return self._found or ()

    def _look(self) -> None:
        self._found = tuple(listing(self._where, seen=self._seen))
        self._looked_at = time.monotonic()


@st.cache_resource(max_entries=8, show_spinner=False)
def _listed(where: tuple[str, ...]) -> _Listed:
    return _Listed([Path(part) for part in where])


def entries() -> tuple[Entry, ...]:
    """Every checkpoint folder that is there, the broken ones with their error; new ones appear after a moment."""
    return _listed(tuple(map(str, folders()))).entries()


def usable() -> dict[str, Entry]:
    """The checkpoint folders that can be opened, by name, the default first."""
    found = {entry.name: entry for entry in entries() if entry.error is None}
    if DEFAULT_NAME in found:
        return {DEFAULT_NAME: found.pop(DEFAULT_NAME), **found}
    return found


def open_checkpoint(entry: Entry) -> Checkpoint:
    """The checkpoint of a folder; loaded once, and again when its files change.

    Raises:
        GlassformerError: The folder cannot be loaded.
    """
    which = str(entry.folder), str(entry.root), signature(entry.folder)
    if which in _opened():
        return _open(*which)
    with st.spinner(say("Opening the checkpoint…")):  # here, as a cached function would keep one language for all
        checkpoint = _open(*which)
    _opened().add(which)
    return checkpoint


@st.cache_resource(show_spinner=False)
def _opened() -> set[tuple[str, str, Signature]]:
    """What has been opened before, so that it will not take long."""
    return set()


@st.cache_resource(max_entries=8, show_spinner=False)
def _open(folder: str, root: str, sign: Signature) -> Checkpoint:
    return load(Path(folder), inside=Path(root))


@st.cache_resource(show_spinner=False)
def runner() -> Runner:
    """The one queue in front of the model."""
    return Runner()


def replay(checkpoint: Checkpoint, trace: Trace, sites: Sequence[str]) -> dict[str, np.ndarray]:
    """What a run had at some sites; see `transformer.runs.replay.replay`.

    Raises:
        QueryError: The trace is of another checkpoint, or a pattern matches no site.
        BusyError: The model has too much to do.
    """
    return runner().compute(
        ("replay", trace.query, trace.src_ids, trace.read_ids, tuple(sites)),  # a batch adds padding
        lambda: record(checkpoint, trace, sites),
        nbytes=lambda values: sum(value.nbytes for value in values.values()),
    )


def batch(checkpoint: Checkpoint, queries: Sequence[Query]) -> tuple[Trace, ...]:
    """Several queries run as one padded batch, without their maps; see `transformer.runs.running.run_batch`.

    Raises:
        QueryError: There is no query, or one does not fit the checkpoint.
        BusyError: The model has too much to do.
    """
    return runner().compute(
        ("batch", *queries),
        lambda: run_batch(checkpoint, queries, maps=False),
        nbytes=lambda traces: sum(trace.nbytes for trace in traces),
    )


def warm_up() -> None:
    """Do what the first visitor would otherwise wait for: load the default checkpoint and run it once."""
    for entry in list(usable().values())[:1]:
        checkpoint = open_checkpoint(entry)
        for example in checkpoint.card.examples[:1]:
            runner().trace(checkpoint, checkpoint.query(example))
    # What is alive now stays alive: later collections need not look at it again.
    gc.collect()
    gc.freeze()
