"""Clients of Streamlit without a browser: they ask for reruns and count what comes back.

They speak the WebSocket protocol of Streamlit's own page, so the server does all of its work and the numbers contain
no browser time. The protocol is internal to Streamlit: written for and tried with 1.67, which requirements.txt pins.

`Conversation` knows the protocol but no socket, `RawClient` is one visitor who waits, and `visitors.py` has many at
once. They do not render, nor run components' JavaScript.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlencode

from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
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
    """What one rerun cost and brought.

    `errors` are those of the alerts that the page shows as errors, `drawn` has the JSON of components.
    """

    seconds: float = 0.0
    received_bytes: int = 0
    elements: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    alerts: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    drawn: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Widget:
    """A widget of the page: the id the server knows it by, and the fragment it stands in ("" for none).

    To set it, send `WidgetState(id=widget.id, int_value=3)` (or `trigger_value`, `json_value`, ...). `data` is the
    JSON that a component was given, `options` are those of a menu.
    """

    id: str
    fragment_id: str
    data: str = ""
    options: tuple[str, ...] = ()


class Conversation:
    """What a browser tab remembers of its talk with the server.

    Args:
        keeps_messages: Keep large messages and tell the server which ones, as a browser does: then it sends a
            reference in place of what the tab has already.

    Attributes:
        widgets: The widgets that stand on the page, by their `key=`.
        pages: The hash of each page by its path in the URL.
        query: The query string that the address bar has.
        session_id: What the server calls the session.
    """

    def __init__(self, *, keeps_messages: bool = False) -> None:
        self.widgets: dict[str, Widget] = {}
        self.pages: dict[str, str] = {}
        self.links: dict[str, str] = {}  # the address that the newest link to a page says
        self.query = ""
        self.session_id = ""
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
        """The message that asks for a rerun; the arguments are those of `RawClient.rerun`."""
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

    def write_step(self, step: int) -> None:
        """Have the address and the links to other pages say a step, from 0, as a browser does at once."""
        self.query = at_step(self.query, step)
        self.links = {page: at_step(query, step) for page, query in self.links.items()}

    def take(self, data: bytes | str, result: Rerun) -> bool:
        """Note one message from the server; returns whether it ends the run.

        Raises:
            PageFailedError: If the page raised.
        """
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


def at_step(query: str, step: int) -> str:
    """A query that says a step, from 0; the first one is not said."""
    others = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != "step"]
    return urlencode([*others, ("step", str(step + 1))] if step else others)


@dataclass(frozen=True)
class Rest:
    """What a browser says when its reader has come to rest on a step."""

    state: WidgetState
    fragment_id: str
    alone: bool  # nothing has to be drawn for it: the browser has had the frames of all charts, and followed


def has_steps(widgets: Mapping[str, Widget]) -> bool:
    """Whether a reader can step on the page that is open: if nothing moves with the step, there are no controls."""
    stepper = widgets.get(STEPPER)
    return stepper is not None and not json.loads(stepper.data)[0]["run"]["still"]


def rest_on(widgets: Mapping[str, Widget], step: int, *, when: int, written: str = "") -> Rest:
    """What a browser says of a step, from 0, of the run that is shown; `when` grows from report to report.

    `written` is the address, which the browser writes by itself where nothing has to be drawn for the step.
    """
    sent = {key: json.loads(widget.data)[0] for key, widget in widgets.items() if widget.data}
    shown = sent[STEPPER]
    asks = shown["asks"] or any(payload.get("follows") == "server" for payload in sent.values())
    hears = widgets[STEPPER if asks else rest_key(STEPPER)]
    report = {
        "run_id": shown["run"]["run_id"],
        "step_revision": shown["step_revision"],
        "step": step % len(shown["run"]["target"]),
        "when": when,
    } | ({} if asks else {"written": written})
    state = WidgetState(id=hears.id, json_value=json.dumps({"step": report}))
    return Rest(state, hears.fragment_id, alone=not asks)


def frames_of(result: Rerun) -> list[str]:
    """The paths behind the app's own of the frames of what was drawn, which a browser fetches when it is idle."""
    follows = [json.loads(data)[0].get("follows", "still") for data in result.drawn.values()]
    return [f"frames/{name}" for name in follows if name not in ("still", "server")]


class RawClient:
    """One visitor. Use as a context manager; `widgets` maps the `key=` of each widget of the page to it."""

    def __init__(self, url: str) -> None:
        self._conversation = Conversation()
        self._socket = connect(stream_address(url), subprotocols=[PROTOCOL], max_size=None)

    @property
    def widgets(self) -> dict[str, Widget]:
        """The widgets that stand on the page, by their `key=`."""
        return self._conversation.widgets

    @property
    def session_id(self) -> str:
        """What the server calls the session; known after the first rerun."""
        return self._conversation.session_id

    @property
    def query(self) -> str:
        """The query string that the address bar has."""
        return self._conversation.query

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def rerun(
        self,
        *,
        page: str | None = None,
        query: str | None = None,
        states: Sequence[WidgetState] = (),
        fragment_id: str = "",
    ) -> Rerun:
        """Ask for one rerun and wait until it has finished.

        Args:
            page: The page's path in the URL; None stays on the page of the last rerun, at first the default.
            query: Query string without `?`; None for what the address bar has.
            states: The state of every widget that changed.
            fragment_id: Rerun only this fragment.

        Raises:
            PageFailedError: If the page raised.
        """
        message = self._conversation.request(page=page, query=query, states=states, fragment_id=fragment_id)
        result = Rerun()
        started = time.perf_counter()
        self._socket.send(message)
        while not self._conversation.take(self._socket.recv(timeout=ANSWER_SECONDS), result):
            pass
        result.seconds = time.perf_counter() - started
        return result


def stream_address(url: str) -> str:
    """Where a server's WebSocket is."""
    return url.replace("http", "ws", 1) + "/_stcore/stream"
