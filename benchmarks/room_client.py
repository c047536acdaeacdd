"""A browser in a room: a tab with a Streamlit session, the requests it posts, and the events it receives."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.raw_client import (
    ANSWER_SECONDS,
    PROTOCOL,
    Conversation,
    Rerun,
    frames_of,
    has_steps,
    rest_on,
    stream_address,
)
from tools.serve import HOST


class Tab:
    """One browser tab: a session of Streamlit's, in a room or not; by the cookie a proxy knows it."""

    def __init__(self, url: str, cookie: str = "") -> None:
        self.talk, self._url, self.cookie = Conversation(keeps_messages=True), url, cookie
        self._socket: ClientConnection | None = None

    async def rerun(
        self, *states: WidgetState, page: str | None = None, query: str | None = None, fragment_id: str = ""
    ) -> Rerun:
        """Ask for one run of the script and wait for its end."""
        if self._socket is None:
            headers = {"Cookie": self.cookie} if self.cookie else {}
            self._socket = await connect(
                stream_address(self._url), subprotocols=[PROTOCOL], max_size=None, additional_headers=headers
            )
        result = Rerun()
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._socket.send(self.talk.request(page=page, query=query, states=states, fragment_id=fragment_id))
            while not self.talk.take(await self._socket.recv(), result):
                pass
        if result.errors:
            raise RuntimeError("; ".join(result.errors))
        return result

    async def click(self, key: str) -> Rerun:
        """Press a button."""
        widget = self.talk.widgets[key]
        return await self.rerun(
            WidgetState(id=widget.id, trigger_value=True), query=self.talk.query, fragment_id=widget.fragment_id
        )

    @property
    def has_steps(self) -> bool:
        """Whether a reader can step on the page that is open."""
        return has_steps(self.talk.widgets)

    @property
    def follows(self) -> bool:
        """Whether the charts of the page follow a step without the server."""
        return rest_on(self.talk.widgets, 0, when=0).alone

    async def go_to_step(self, step: int) -> Rerun:
        """Report a step, as a browser does when it has settled."""
        rest = rest_on(self.talk.widgets, step, when=time.monotonic_ns())
        return await self.rerun(rest.state, query=self.talk.query, fragment_id=rest.fragment_id)

    async def fetch_frames(self, port: int, drawn: Rerun) -> None:
        """Fetch what charts show at other steps, as a browser does that is idle."""
        if wrong := [status for status in await get_all(port, frames_of(drawn), self.cookie) if status != 200]:
            raise RuntimeError(f"frames were answered with {wrong}")

    async def lost(self) -> None:
        """Wait until the connection has ended; the next run then asks for a new one, and gets a new session."""
        if self._socket is not None:
            await self._socket.wait_closed()
        self._socket = None

    async def close(self) -> None:
        """Leave."""
        if self._socket is not None:
            await self._socket.close()


async def cookie_of(port: int) -> str:
    """The cookie that a new visitor gets of a proxy."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(f"GET / HTTP/1.1\r\nHost: {HOST}:{port}\r\nConnection: close\r\n\r\n".encode())
    head = (await reader.read()).partition(b"\r\n\r\n")[0].decode()
    writer.close()
    found = [line.partition(":")[2] for line in head.splitlines() if line.lower().startswith("set-cookie:")]
    return "; ".join(line.partition(";")[0].strip() for line in found)


def _with(cookie: str) -> str:
    return f"Cookie: {cookie}\r\n" if cookie else ""


async def get(port: int, path: str, cookie: str = "") -> int:
    """Fetch something; the status of the answer."""
    reader, writer = await asyncio.open_connection(HOST, port)
    head = f"GET {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\n{_with(cookie)}Connection: close\r\n\r\n"
    writer.write(head.encode())
    answer = await reader.read()
    writer.close()
    return int(answer.split(None, 2)[1])


async def get_all(port: int, paths: Sequence[str], cookie: str = "") -> list[int]:
    """Fetch several things at once; the status of each answer."""
    return await asyncio.gather(*(get(port, f"/{path}", cookie) for path in paths))


async def post(port: int, path: str, said: dict[str, Any], cookie: str = "") -> tuple[int, dict[str, Any]]:
    """Post something to a room, as a page of the app does."""
    reader, writer = await asyncio.open_connection(HOST, port)
    body = json.dumps(said).encode()
    lines = (
        f"POST {path} HTTP/1.1", f"Host: {HOST}:{port}", f"Origin: http://{HOST}:{port}", "Connection: close",
        "Content-Type: application/json", f"Content-Length: {len(body)}",
    )  # fmt: skip
    writer.write("\r\n".join(lines).encode() + f"\r\n{_with(cookie)}\r\n".encode() + body)
    head, _, answer = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), json.loads(answer) if answer.startswith(b"{") else {}


async def events(port: int, path: str, cookie: str = "") -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """The events of a room: kind and data; each is a chunk of its own, so that the sizes of chunks are lines, too."""
    reader, writer = await asyncio.open_connection(HOST, port, limit=2**20)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\n{_with(cookie)}\r\n".encode())
    kind = ""
    try:
        while line := (await reader.readline()).decode().rstrip():
            pass  # the head
        while line := (await reader.readline()).decode():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ").strip()
            elif line.startswith("data: "):
                yield kind, json.loads(line.removeprefix("data: "))
    finally:
        writer.close()
