"""Prefetcher of neighbouring training snapshots: a thread opens and runs them before they are requested.

Prefetching starts when no page is being rendered, one snapshot at a time, behind all requests in the model's queue.
Only a user's newest request counts.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from glassformer.runs import loading
from glassformer.runs.sources import Source
from glassformer.server.model_runner import BusyError
from glassformer.server.render_lock import RENDER_LOCK
from glassformer.state.link import Link
from glassformer.state.view import Slot
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.snapshots import AT, at_step
from transformer.errors import GlassformerError

MOST: Final = 64  # wishes that wait
REST_SECONDS: Final = 0.05  # for which nothing was drawn
LONGEST_SECONDS: Final = 2.0  # that a wish waits for that
_LOOK_SECONDS: Final = 0.02


class Prefetcher:
    """Prefetches what users are likely to open next, in one thread; drops the oldest requests if there are many."""

    def __init__(self, do: Callable[[Entry, Link], object]) -> None:
        """Begin with an empty queue; `do` is called with each snapshot."""
        self._do, self._lock = do, threading.Lock()
        self._wishes: OrderedDict[Hashable, tuple[Sequence[Entry], Link]] = OrderedDict()
        self._thread: threading.Thread | None = None

    def wish(self, visitor: Hashable, entries: Sequence[Entry], link: Link) -> None:
        """Have some checkpoints opened, and a link run on them."""
        with self._lock:
            self._wishes[visitor] = entries, link
            self._wishes.move_to_end(visitor)
            while len(self._wishes) > MOST:
                self._wishes.popitem(last=False)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        while True:
            began = time.monotonic()
            while RENDER_LOCK.rest_seconds() < REST_SECONDS and time.monotonic() - began < LONGEST_SECONDS:
                time.sleep(_LOOK_SECONDS)
            with self._lock:
                if not self._wishes:
                    self._thread = None
                    return
                visitor, (entries, link) = self._wishes.popitem(last=False)
            for entry in entries:
                with suppress(GlassformerError, BusyError, OSError):  # shown when a user opens it
                    self._do(entry, link)
                if visitor in self._wishes:  # a newer request
                    break


def neighbours(name: str) -> list[Entry]:
    """The snapshots beside one, the next first; of a checkpoint, the last one."""
    whole = loading.whole(name)
    if whole is None:
        return []
    names = [*(at_step(whole.name, moment.step) for moment in loading.moments(whole)[0]), whole.name]
    at = names.index(name) if name in names else len(names)
    near = [names[place] for place in (at + 1, at - 1) if 0 <= place < len(names)]
    return [entry for one in near if (entry := loading.found(one)) is not None]


def _run(entry: Entry, link: Link) -> None:
    checkpoint = loading.open_ahead(entry)
    link = replace(link, max_new=min(link.max_new, checkpoint.config.max_len))
    loading.runner().trace(checkpoint, link.query(checkpoint.content_hash), ahead=True)


PREFETCHER: Final = Prefetcher(_run)  # of this process


class SnapshotSource(Source):
    """What comes next of any checkpoint's snapshots."""

    def ran(self, slot: Slot, link: Link) -> None:
        """Prefetch the runs of the snapshots next to the selected one."""
        if AT in link.model:
            PREFETCHER.wish((loading.visitor(), slot), neighbours(link.model), link)


SOURCE = SnapshotSource()
