"""App server in a thread (`serve`: port, start, end) for models in memory; the menu's `Source` that lists them.

It listens on this machine alone. The server's settings are those of `.streamlit/config.toml` beside the app.
"""

import atexit
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from runpy import run_path
from socket import socket
from typing import Any, Final
from urllib.parse import urlencode

from glassformer import APP
from glassformer.extensions.live.memory_reader import from_memory
from glassformer.runs.sources import Source
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.opening import NO_ANSWERS, load
from transformer.errors import GlassformerError
from transformer.i18n import say

MODELS: Final[dict[str, Checkpoint]] = {}  # what is served, by the names that the app has for it
HOST: Final = "127.0.0.1"
PORTS: Final = range(8501, 8601)
START_SECONDS: Final = 60.0
END_SECONDS: Final = 10.0


@dataclass(frozen=True)
class ServedModel:
    """A model that the app shows."""

    name: str  # in the app
    url: str  # the page that opens on it

    def stop(self) -> None:
        """Let go of the model; the server goes on for the others, and ends with the process."""
        MODELS.pop(self.name, None)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.url}>"

    def _repr_html_(self) -> str:
        return f'<a href="{escape(self.url)}" target="_blank" rel="noopener">{escape(self.url)}</a>'


def serve(
    model: object,
    tokenizer: object = None,
    text: str = "",
    *,
    answers: Mapping[str, Any] = NO_ANSWERS,
    name: str = "",
    port: int | None = None,
) -> ServedModel:
    """Show a model in the app, served from this process; nothing is left on the disk.

    Args:
        model: As for `transformer.from_memory`; or a checkpoint, or the folder, file or name of one.
        tokenizer: As there.
        text: What it reads first.
        answers: As there.
        name: What the app calls it; an older model of this name is replaced.
        port: Where the app listens; by default the first of 8501 to 8600 that is free. Only the first call decides.

    Raises:
        CheckpointError: The model is not understood.
        GlassformerError: No port is free, or the server does not start.
    """
    if isinstance(model, str | Path):
        checkpoint = load(model, answers=answers, given=tokenizer)
    elif isinstance(model, Checkpoint):
        checkpoint = model
    else:
        checkpoint = from_memory(model, tokenizer, answers=answers, name=name)
    shown = name or checkpoint.name
    MODELS.pop(shown, None)  # the newest is listed first
    MODELS[shown] = checkpoint
    words = {"model": shown} | ({"src": text} if text else {})
    return ServedModel(shown, f"http://localhost:{_running(port)}/?{urlencode(words)}")


_LOCK: Final = threading.Lock()
_PORT: Final[list[int]] = []  # of the server, once it runs


def _running(port: int | None) -> int:
    with _LOCK:
        if not _PORT:
            _PORT.append(_start(port))
        return _PORT[0]


def _start(port: int | None) -> int:
    """Start the server; its port."""
    import uvicorn  # the app's, as is the next: the library is imported without

    from glassformer.server.streamlit_private import read_settings

    chosen = port if port is not None else next((one for one in PORTS if _is_free(one)), None)
    if chosen is None or not _is_free(chosen):
        where = str(chosen) if chosen is not None else f"{PORTS[0]} to {PORTS[-1]}"
        raise GlassformerError("port {port}: something else listens there; name another one with port=.", port=where)
    read_settings(APP / "app.py")
    sys.path.append(str(APP))
    try:
        app = run_path(str(APP / "app.py"), run_name="glassformer_app")["app"]
    except SystemExit as error:
        raise GlassformerError("The app does not start: {problem}", problem=str(error)) from None
    server = uvicorn.Server(uvicorn.Config(app, host=HOST, port=chosen, log_level="warning"))
    thread = threading.Thread(target=server.run, name="glassformer", daemon=True)
    thread.start()
    # Before executors end, which it needs for its own end; `atexit` comes after them.
    getattr(threading, "_register_atexit", atexit.register)(_end, server, thread)
    end = time.monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > end:
            raise GlassformerError("The app does not start; its log says why.")
        time.sleep(0.05)
    return chosen


def _end(server: Any, thread: threading.Thread) -> None:
    """Stop the server before the interpreter takes apart what it still uses."""
    server.should_exit = True
    thread.join(END_SECONDS)


def _is_free(port: int) -> bool:
    with socket() as one:
        try:
            one.bind((HOST, port))
        except OSError:
            return False
        return True


# ------------------------------------------------------------------------------------------------ in the app

HOLDS: Final = "live"


class LiveSource(Source):
    """What `serve` was given; every visitor of this server sees it."""

    holds = HOLDS

    def own(self) -> dict[str, Entry]:
        """All of them, the newest first."""
        return {name: _entry(name) for name in reversed(MODELS)}

    def at(self, name: str) -> Entry | None:
        """One of them."""
        return _entry(name) if name in MODELS else None

    def open(self, entry: Entry) -> Checkpoint:
        """It is open already."""
        return MODELS[entry.name]

    def opened(self, content_hash: str) -> Checkpoint | None:
        """The same by its hash."""
        return next((one for one in MODELS.values() if one.content_hash == content_hash), None)

    def label(self, entry: Entry) -> str | None:
        """The name, marked as a model in memory."""
        return say("{name} (in memory)", name=entry.name) if entry.holds == HOLDS else None


def _entry(name: str) -> Entry:
    return Entry(name, Path(name), None, name, Path(name), examples=MODELS[name].card.examples[:1], holds=HOLDS)


SOURCE = LiveSource()
