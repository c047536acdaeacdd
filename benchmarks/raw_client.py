"""A client of Streamlit without a browser: it asks for reruns and counts what comes back.

It speaks the WebSocket protocol that Streamlit's own page speaks, so the server does all of its work and the
numbers hold no browser time. The protocol is internal to Streamlit: written for and tried with 1.67, and
requirements.txt pins that version.

What it does not do: render, run components' JavaScript, or keep the forward-message cache of a real page.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import connect
from websockets.typing import Subprotocol

ANSWER_SECONDS = 120.0


class PageFailedError(RuntimeError):
    """A page drew an exception, or did not compile."""


@dataclass
class Rerun:
    """What one rerun cost and brought."""

    seconds: float = 0.0
    received_bytes: int = 0
    elements: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Widget:
    """A widget of the page: the id the server knows it by, and the fragment it stands in ("" for none).

    To set it, send `WidgetState(id=widget.id, int_value=3)` (or `trigger_value`, `json_value`, ...). `data` is the
    JSON that a component was given.
    """

    id: str
    fragment_id: str
    data: str = ""


class RawClient:
    """One visitor. Use as a context manager; `widgets` maps the `key=` of each widget drawn so far to it."""

    def __init__(self, url: str) -> None:
        address = url.replace("http", "ws", 1) + "/_stcore/stream"
        self._socket = connect(address, subprotocols=[Subprotocol("streamlit")], max_size=None)
        self._page_script_hash = ""
        self.widgets: dict[str, Widget] = {}

    def __enter__(self) -> RawClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def rerun(
        self,
        *,
        page: str = "",
        query: str = "",
        states: Sequence[WidgetState] = (),
        fragment_id: str = "",
    ) -> Rerun:
        """Ask for one rerun and wait until it has finished.

        Args:
            page: the page's path in the URL; empty stays on the page of the last rerun, at first the default.
            query: query string without `?`.
            states: the state of every widget that is off its default, as a browser sends them.
            fragment_id: rerun only this fragment.

        Raises:
            PageFailedError: if the page raised.
        """
        message = BackMsg()
        request = message.rerun_script
        request.query_string = query
        request.page_name = page
        request.page_script_hash = "" if page else self._page_script_hash
        request.fragment_id = fragment_id
        request.widget_states.widgets.extend(states)
        started = time.perf_counter()
        self._socket.send(message.SerializeToString())
        result = self._collect()
        result.seconds = time.perf_counter() - started
        return result

    def _collect(self) -> Rerun:
        """Read messages up to the one that ends the run."""
        result = Rerun()
        early = ForwardMsg.ScriptFinishedStatus.FINISHED_EARLY_FOR_RERUN
        while True:
            data = self._socket.recv(timeout=ANSWER_SECONDS)
            if isinstance(data, str):
                continue
            result.received_bytes += len(data)
            message = ForwardMsg.FromString(data)
            kind = message.WhichOneof("type")
            if kind == "script_finished" and message.script_finished != early:  # st.rerun() starts another
                return result
            if kind == "navigation":
                self._page_script_hash = message.navigation.page_script_hash
            elif kind == "new_session":
                self._page_script_hash = message.new_session.page_script_hash
            elif kind == "page_not_found":
                raise PageFailedError("the app has no such page")
            elif kind == "session_event" and message.session_event.HasField("script_compilation_exception"):
                raise PageFailedError(message.session_event.script_compilation_exception.message)
            elif kind == "delta":
                self._note(message.delta, result)

    def _note(self, delta: Delta, result: Rerun) -> None:
        """Remember what a drawn element is, says, and is called."""
        if delta.WhichOneof("type") != "new_element":
            return
        kind = delta.new_element.WhichOneof("type") or "empty"
        element = getattr(delta.new_element, kind)
        result.elements.append(kind)
        if kind == "exception":
            raise PageFailedError(f"{element.type}: {element.message}")
        if kind in ("markdown", "text", "heading"):
            result.texts.append(element.body)
        # An id reads $$ID-<hash>-<key>; without a key it ends in "None".
        parts = str(getattr(element, "id", "")).split("-", 2)
        if len(parts) == 3 and parts[0] == "$$ID":
            self.widgets[parts[2]] = Widget(element.id, delta.fragment_id, str(getattr(element, "json", "")))
