"""The session's uploads: names in URLs, files moved to the store, submitting, deleting; the server's expiry sweep.

A name in a URL is `upload:` and the upload's unguessable token. Streamlit keeps an upload in memory; it is moved into
the store at once.
"""

import asyncio
import atexit
import contextlib
import ctypes
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from starlette.middleware import Middleware
from streamlit.runtime.uploaded_file_manager import UploadedFile

from glassformer.extensions.importers import third_party_models
from glassformer.extensions.uploads.library.archives import check_all_differ, check_name, check_total
from glassformer.extensions.uploads.library.upload_folder import Received
from glassformer.extensions.uploads.library.upload_worker import MADE
from glassformer.extensions.uploads.upload_middleware import UploadLimitMiddleware
from glassformer.extensions.uploads.upload_store import RECEIVED, UploadReader, UploadStore
from glassformer.server import replicas, server_options
from glassformer.server.jobs import Job, JobRegistry, JobStatus
from glassformer.server.model_runner import BusyError
from glassformer.server.parts import ServerPart
from glassformer.server.streamlit_private import forget_upload, session_id
from glassformer.shared.i18n import st
from transformer.checkpoint.listing import Entry, entry_at
from transformer.errors import CheckpointError
from transformer.files.kinds import BESIDE

NAME: Final = "upload:"
IMPORTED: Final = ("model", "foreign")  # `Entry.holds` of what importers open; others have a source of their own
OWN: Final = "handed_in"
MOST_OWN: Final = 8
MOST_WAITING: Final = 100
SWEEP_SECONDS: Final = 30.0
STOP_SECONDS: Final = 1.0
LARGE_BLOCK: Final = 4 * 2**20  # bytes; what a decoding makes and drops is smaller
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3  # both of malloc.h
_TITLE: Final = re.compile(r"[^\w.()-]+")
_MOST_TITLE: Final = 40


@dataclass(frozen=True)
class File:
    """A file that came in."""

    number: int  # its name in the store
    name: str  # what its owner calls it
    size: int  # its bytes


@dataclass(frozen=True)
class Waiting:
    """Files of this session that are not read yet."""

    token: str = ""  # the upload that they belong to
    files: tuple[File, ...] = ()  # in the order in which they came


@st.cache_resource(show_spinner=False)
def store() -> UploadStore:
    """The uploads of this server, or of all replicas."""
    return UploadStore(
        shared=replicas.folder("models"), forgotten=lambda upload: third_party_models.forget(upload.made)
    )


@st.cache_resource(show_spinner=False)
def reader() -> UploadReader:
    """The process that reads uploads."""
    return UploadReader()


@st.cache_resource(show_spinner=False)
def queue() -> JobRegistry[str]:
    """The queue in front of it; an upload is known by its token."""
    return JobRegistry(_too_many, most=MOST_WAITING, at_once=1, room=0)


def _too_many(n: int) -> BusyError:
    return BusyError(
        "{n} uploads are already waiting to be read, the most that this server allows; try again in a minute.", n=n
    )


class UploadsServer(ServerPart):
    """The limit on uploads, and the folder that they are kept in."""

    def inner(self, base: str) -> Sequence[Middleware]:
        """The limit, for what the app itself would let through."""
        return [Middleware(UploadLimitMiddleware, base=base)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the server runs: remove unused uploads, and all of them at the end."""
        if server_options.mode() == "off":
            yield
            return
        _large_blocks_go_back()
        atexit.register(store().close)  # a server that is not asked to end in order
        sweeping = asyncio.create_task(_sweep())
        try:
            yield
        finally:
            sweeping.cancel()
            queue().end(STOP_SECONDS)
            reader().end()
            store().close()


SERVER = UploadsServer()


async def _sweep() -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        await asyncio.to_thread(store().sweep)
        reader().rest()


def _large_blocks_go_back() -> None:
    """Have glibc allocate large blocks with mmap, which returns each to the system when it is freed.

    By default it raises the threshold to the size of freed blocks, keeps them in up to eight arenas per core, and trims
    an arena only beyond an even larger size (mallopt(3), M_MMAP_THRESHOLD).
    """
    if sys.platform == "linux":
        set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's alone
        if set_option is not None:
            set_option(_MMAP_THRESHOLD, LARGE_BLOCK)
            set_option(_TRIM_THRESHOLD, LARGE_BLOCK)


def is_name(name: str) -> bool:
    """Whether a name in a URL is an upload's."""
    return name.startswith(NAME)


def at(name: str) -> Entry | None:
    """What an upload's name leads to; None if it leads nowhere, or nowhere any more."""
    if not is_name(name) or server_options.mode() == "off":
        return None
    upload = store().find(name.removeprefix(NAME))
    if upload is None:
        return None
    found = entry_at(upload.made, name, upload.made)
    if upload.native:
        return replace(found, error=None, holds="model")
    if found.holds in IMPORTED:
        return replace(found, error=None, holds="foreign", title=upload.title)
    return found


def own() -> dict[str, Entry]:
    """This session's uploads that still exist, by name."""
    there = {name: at(name) for name in st.session_state.get(OWN, ())}
    found = {name: entry for name, entry in there.items() if entry is not None}
    if len(found) < len(there):
        st.session_state[OWN] = tuple(found)
    return found


def take_over(files: Sequence[UploadedFile], waiting: Waiting) -> Waiting:
    """Move files into the store and free Streamlit's copies; a CheckpointError if they do not fit: none is taken."""
    try:
        _check(files, waiting)
        fresh = not waiting.token or store().is_gone(waiting.token)
        waiting = Waiting(store().begin().token) if fresh else waiting
        store().count(waiting.token, sum(file.size for file in files))
        first = waiting.files[-1].number + 1 if waiting.files else 0
        found = tuple(File(number, file.name, file.size) for number, file in enumerate(files, start=first))
        for came, file in zip(found, files, strict=True):
            _path(waiting.token, came.number).write_bytes(file.getbuffer())
        return replace(waiting, files=(*waiting.files, *found))
    except OSError:
        raise CheckpointError("The files could not be written on this server; try again later.") from None
    finally:
        _let_go(files)


def without(waiting: Waiting, file: File) -> Waiting:
    """The files but one, which is removed."""
    with contextlib.suppress(OSError):
        _path(waiting.token, file.number).unlink()
    return replace(waiting, files=tuple(one for one in waiting.files if one != file))


def submit(waiting: Waiting) -> Job:
    """Have the files read; CheckpointError: they are gone, or this session has too many uploads; BusyError."""
    if len(own()) >= MOST_OWN:
        raise CheckpointError(
            "You have already uploaded {n} models from this page; delete one of them first.", n=len(own())
        )
    received = [Received(file.name, _path(waiting.token, file.number)) for file in waiting.files]
    store().count(waiting.token, 0)  # they are used now
    folder, pickles = store().root / waiting.token, server_options.mode() == "on"
    return queue().ask(waiting.token, reader().work(received, folder, title=_title(waiting), pickles=pickles))


def keep(waiting: Waiting, seen: JobStatus) -> str:
    """Keep what was read; its name. Raises CheckpointError if it was refused."""
    if seen.problem is not None:
        raise CheckpointError(seen.problem)
    if seen.result is None:
        raise CheckpointError("Reading stopped because no page was waiting for the result.")
    made = store().root / waiting.token / MADE / _title(waiting)
    upload = store().keep(waiting.token, made, native=seen.result.native, left_out=seen.result.left_out)
    name = NAME + upload.token
    st.session_state[OWN] = (*st.session_state.get(OWN, ()), name)
    return name


def forget(name: str) -> None:
    """Remove an upload of this session."""
    st.session_state[OWN] = tuple(one for one in st.session_state.get(OWN, ()) if one != name)
    store().forget(name.removeprefix(NAME))


def _check(files: Sequence[UploadedFile], waiting: Waiting) -> None:
    for file in files:
        check_name(file.name)
    every: list[File | UploadedFile] = [*waiting.files, *files]
    check_all_differ(file.name for file in every)
    check_total(len(every), sum(file.size for file in every))


def _let_go(files: Sequence[UploadedFile]) -> None:
    session = session_id()
    for file in files:
        if session is not None:
            forget_upload(session, file.file_id)
        with contextlib.suppress(BufferError):
            file.close()


def _path(token: str, number: int) -> Path:
    return store().root / token / RECEIVED / str(number)


def _title(waiting: Waiting) -> str:
    """The model's title: its archive's or weights' name, unless that is a default name."""
    names = [file.name for file in waiting.files]
    telling = sorted(
        (name for name in names if Path(name).suffix.lower() not in BESIDE),
        key=lambda name: not name.lower().endswith(".zip"),
    )
    stem = _TITLE.sub("-", Path(telling[0]).stem if telling else "")[:_MOST_TITLE].strip("-.")
    return stem or "model"
