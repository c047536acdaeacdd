"""Clients of Streamlit without a browser: they ask for reruns and count what comes back.

They speak the WebSocket protocol of Streamlit's own page, so the server does all of its work and the numbers contain
no browser time. The protocol is internal to Streamlit: written for and tried with 1.67, which requirements.txt pins.

`Conversation` knows the protocol but no socket, `RawClient` is a visitor who waits, and `AsyncClient` one of many at
once. They do not render, nor run components' JavaScript.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any, Self

from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_async
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from glassformer.components.stepper_view import rest_key

STEPPER = "stepper"  # the key of the component that reports a step
ANSWER_SECONDS = 120.0
PROTOCOL = Subprotocol("streamlit")
_LINKS = re.compile(r'<a href="(\w+)\??([^"]*)"')


class PageFailedError(RuntimeError):
    """A page drew an exception, or did not compile."""


@dataclass
class Rerun:
    """What one rerun cost and brought; `drawn` has the JSON of components."""

    seconds: float = 0.0
    received_bytes: int = 0
    elements: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    alerts: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)  # those of the alerts that the page shows as errors
    drawn: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Widget:
    """A widget of the page; to set it, send `WidgetState(id=widget.id, int_value=3)` (or `json_value`, ...)."""

    id: str
    fragment_id: str  # "" if it stands in none
    data: str = ""  # the JSON that a component was given
    options: tuple[str, ...] = ()  # of a menu


class Conversation:
    """What a browser tab remembers of its talk with the server.

    `keeps_messages`: it tells the server which large messages it has kept, as a browser does, and gets references.
    """

    def __init__(self, *, keeps_messages: bool = False) -> None:
        self.widgets: dict[str, Widget] = {}  # those that stand on the page, by their `key=`
        self.pages: dict[str, str] = {}  # the hash of each page by its path in the URL
        self.links: dict[str, str] = {}  # the address that the newest link to a page says
        self.query = ""  # what the address bar has
        self.session_id = ""  # what the server calls the session
        self._page_script_hash = ""
        self._keeps_messages = keeps_messages
        self._kept: dict[str, ForwardMsg] = {}
        self._used: dict[str, int] = {}  # in which run each of them was last drawn
        self._run, self._longest_kept = 0, 0

    def request(
        self,
        *,
        page: str | None = None,
        query: str | None = None,
        states: Sequence[WidgetState] = (),
        fragment_id: str = "",
    ) -> bytes:
        """The message that asks for a rerun.

        Args:
            page: The page's path in the URL; None stays on the page of the last rerun, at first the default.
            query: Query string without `?`; None for what the address bar has.
            states: The state of every widget that changed.
            fragment_id: Rerun only this fragment.
        """
        message = BackMsg()
        asked = message.rerun_script
        if query is not None:  # the address bar has it, too, and the server sends an address only where it is another
            self.query = query
        elif page is not None:
            self.query = self.links.get(page, "")
        asked.query_string = self.query
        if page in self.pages:
            asked.page_script_hash = self.pages[page]
        elif page:
            asked.page_name = page
        else:
            asked.page_script_hash = self._page_script_hash
        if not fragment_id:
            self.widgets = {}
        asked.fragment_id = fragment_id
        asked.widget_states.widgets.extend(states)
        asked.cached_message_hashes.extend(self._kept)
        return message.SerializeToString()

    def take(self, data: bytes | str, result: Rerun) -> bool:
        """Note one message from the server; returns whether it ends the run. A PageFailedError if the page raised."""
        if isinstance(data, str):
            return False
        result.received_bytes += len(data)
        message = ForwardMsg.FromString(data)
        kind = message.WhichOneof("type")
        if kind == "ref_hash":
            self._used[message.ref_hash] = self._run
            message, kind = self._kept[message.ref_hash], "delta"
        if kind == "delta":
            if self._keeps_messages and message.metadata.cacheable:
                self._kept[message.hash], self._used[message.hash] = message, self._run
            self._note(message.delta, result)
        elif kind == "navigation":
            self._page_script_hash = message.navigation.page_script_hash
            self.pages = {page.url_pathname: page.page_script_hash for page in message.navigation.app_pages}
        elif kind == "new_session":
            self._page_script_hash = message.new_session.page_script_hash
            self.session_id = message.new_session.initialize.session_id
            self._longest_kept = message.new_session.config.max_cached_message_age
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "page_not_found":
            raise PageFailedError("the app has no such page")
        elif kind == "session_event" and message.session_event.HasField("script_compilation_exception"):
            raise PageFailedError(message.session_event.script_compilation_exception.message)
        if kind != "script_finished":
            return False
        self._forget_old()
        early = ForwardMsg.ScriptFinishedStatus.FINISHED_EARLY_FOR_RERUN
        return bool(message.script_finished != early)  # st.rerun() starts another

    def _forget_old(self) -> None:
        """Let go of messages that were not drawn for as many runs as the server says."""
        self._run += 1
        for old in [name for name, run in self._used.items() if self._run - run > self._longest_kept]:
            del self._kept[old], self._used[old]

    def _note(self, delta: Delta, result: Rerun) -> None:
        """Remember what a drawn element is, says, and is called."""
        if delta.WhichOneof("type") != "new_element":
            return
        kind = delta.new_element.WhichOneof("type") or "empty"
        element = getattr(delta.new_element, kind)
        result.elements.append(kind)
        if kind == "exception":
            raise PageFailedError(f"{element.type}: {element.message}")
        if kind == "alert":
            result.alerts.append(element.body)
            if element.format == Alert.ERROR:
                result.errors.append(element.body)
        if kind == "html":
            self.links.update((page, unescape(query)) for page, query in _LINKS.findall(element.body))
        if kind in ("markdown", "text", "heading"):
            result.texts.append(element.body)
        # An id reads $$ID-<hash>-<key>; without a key it ends in "None".
        parts = str(getattr(element, "id", "")).split("-", 2)
        if len(parts) == 3 and parts[0] == "$$ID":
            options = tuple(element.options) if kind == "selectbox" else ()
            widget = Widget(element.id, delta.fragment_id, str(getattr(element, "json", "")), options)
            self.widgets[parts[2]] = widget
            if widget.data:
                result.drawn[parts[2]] = widget.data


def payload(data: str) -> dict[str, Any]:
    """What a component was given to draw, of its JSON."""
    found: dict[str, Any] = json.loads(data)[0]
    return found


@dataclass(frozen=True)
class Rest:
    """What a browser says when its reader has come to rest on a step."""

    state: WidgetState
    fragment_id: str
    alone: bool  # nothing has to be drawn for it: the browser has had the frames of all charts, and followed


def rest_on(widgets: Mapping[str, Widget], step: int, *, when: int, written: str = "") -> Rest:
    """What a browser says of a step, from 0, of the run that is shown; `when` grows from report to report.

    `written` is the address, which the browser writes by itself where nothing has to be drawn for the step.
    """
    sent = {key: payload(widget.data) for key, widget in widgets.items() if widget.data}
    shown = sent[STEPPER]
    asks = shown["asks"] or any(one.get("follows") == "server" for one in sent.values())
    hears = widgets[STEPPER if asks else rest_key(STEPPER)]
    report = {
        "run_id": shown["run"]["run_id"],
        "step_revision": shown["step_revision"],
        "step": step % len(shown["run"]["target"]),
        "when": when,
    } | ({} if asks else {"written": written})
    state = WidgetState(id=hears.id, json_value=json.dumps({"step": report}))
    return Rest(state, hears.fragment_id, alone=not asks)


class RawClient(Conversation):
    """One visitor. Use as a context manager."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._socket = connect(stream_address(url), subprotocols=[PROTOCOL], max_size=None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def rerun(
        self,
        *,
        page: str | None = None,
        query: str | None = None,
        states: Sequence[WidgetState] = (),
        fragment_id: str = "",
    ) -> Rerun:
        """Ask for one rerun as `request` does, and wait until it has finished. A PageFailedError if the page raised."""
        message, result = self.request(page=page, query=query, states=states, fragment_id=fragment_id), Rerun()
        started = time.perf_counter()
        self._socket.send(message)
        while not self.take(self._socket.recv(timeout=ANSWER_SECONDS), result):
            pass
        result.seconds = time.perf_counter() - started
        return result


class AsyncClient(Conversation):
    """One of many visitors who share a thread; keeps messages as a browser does."""

    def __init__(self) -> None:
        super().__init__(keeps_messages=True)
        self._socket: ClientConnection | None = None

    async def connect(self, url: str) -> None:
        """Come."""
        self._socket = await connect_async(stream_address(url), subprotocols=[PROTOCOL], max_size=None)

    async def rerun(
        self, *states: WidgetState, page: str | None = None, query: str | None = None, fragment_id: str = ""
    ) -> Rerun:
        """Ask for one rerun as `RawClient.rerun` does, and wait until it has finished."""
        if self._socket is None:
            raise ConnectionError("The visitor has not opened the app.")
        message, result = self.request(page=page, query=query, states=states, fragment_id=fragment_id), Rerun()
        started = time.perf_counter()
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._socket.send(message)
            while not self.take(await self._socket.recv(), result):
                pass
        result.seconds = time.perf_counter() - started
        return result

    async def close(self) -> None:
        """Leave."""
        if self._socket is not None:
            await self._socket.close()


def stream_address(url: str) -> str:
    """Where a server's WebSocket is."""
    return url.replace("http", "ws", 1) + "/_stcore/stream"
