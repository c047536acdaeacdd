"""Uploads are bounded before Streamlit takes them: over all, for a session, without a length, and too slow."""

import asyncio

import pytest
from starlette.requests import Request
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from glassformer.extensions.uploads import upload_middleware
from glassformer.extensions.uploads.upload_middleware import UploadLimitMiddleware
from glassformer.server import server_options

MINE = "/_stcore/upload_file/mine/1"


class Runtime:
    """Streamlit's, with a session or two."""

    def __init__(self):
        self.uploaded_file_mgr = MemoryUploadedFileManager("/_stcore/upload_file")
        self.sessions = {"mine", "other"}

    def is_active_session(self, name):
        return name in self.sessions

    def holds(self, session, *sizes):
        for number, size in enumerate(sizes):
            self.uploaded_file_mgr.add_file(session, UploadedFileRec(str(number), "x", "", bytes(size)))


class App:
    """Behind the gate: notes what comes through, and answers when it may."""

    def __init__(self):
        self.came, self.may = [], asyncio.Event()
        self.may.set()

    async def __call__(self, scope, receive, send):
        self.came.append((scope["method"], scope["path"]))
        await self.may.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def runtime(monkeypatch):
    found = Runtime()
    monkeypatch.setattr("streamlit.runtime.Runtime.instance", lambda: found)
    monkeypatch.setattr(server_options, "mode", lambda: "on")
    monkeypatch.setattr(upload_middleware, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(upload_middleware, "MOST_BYTES", 1000)
    monkeypatch.setattr(upload_middleware, "MOST_OF_SESSION", 800)
    return found


async def put(through, path=MINE, size=b"100", method="PUT", **headers):
    """Send a request; its status."""
    found = []

    async def send(message):
        found.append(message)

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    named = [(b"content-length", size)] if size is not None else []
    await through({"type": "http", "method": method, "path": path, "headers": named}, receive, send)
    return found[0]["status"]


def test_what_fits_and_says_its_length_comes_through(runtime):
    app = App()
    assert asyncio.run(put(UploadLimitMiddleware(app))) == 204
    assert asyncio.run(put(UploadLimitMiddleware(app, base="/glass"), path="/glass" + MINE)) == 204
    nobody = "/_stcore/upload_file/nobody/1"  # whom Streamlit refuses
    assert asyncio.run(put(UploadLimitMiddleware(app), path=nobody, size=b"999999")) == 204
    assert len(app.came) == 3
    for size in (None, b"-5", b"1e3", b"", b"9" * 30):
        assert asyncio.run(put(UploadLimitMiddleware(app), size=size)) == 411
    assert len(app.came) == 3


def test_with_uploads_off_nothing_is_taken(runtime, monkeypatch):
    monkeypatch.setattr(server_options, "mode", lambda: "off")
    app = App()
    for method in ("PUT", "POST", "PATCH"):
        assert asyncio.run(put(UploadLimitMiddleware(app), method=method)) == 403
    assert app.came == []
    assert asyncio.run(put(UploadLimitMiddleware(app), path="/_stcore/health", method="GET")) == 204


def test_a_session_has_its_own_bound(runtime, monkeypatch):
    runtime.holds("mine", 750)
    assert asyncio.run(put(UploadLimitMiddleware(App()))) == 413
    assert asyncio.run(put(UploadLimitMiddleware(App()), path="/_stcore/upload_file/other/1")) == 204
    monkeypatch.setattr(upload_middleware, "MOST_FILES", 1)
    assert asyncio.run(put(UploadLimitMiddleware(App()), size=b"1")) == 413


def test_who_comes_when_it_is_full_waits_until_there_is_room(runtime, monkeypatch):
    runtime.holds("other", 950)

    async def go():
        waiting = asyncio.create_task(put(UploadLimitMiddleware(App())))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        runtime.uploaded_file_mgr.remove_file("other", "0")
        return await waiting

    assert asyncio.run(go()) == 204
    runtime.holds("other", 950)
    monkeypatch.setattr(upload_middleware, "WAIT_SECONDS", 0.01)
    assert asyncio.run(put(UploadLimitMiddleware(App()))) == 503


def test_what_is_on_its_way_counts(runtime, monkeypatch):
    monkeypatch.setattr(upload_middleware, "WAIT_SECONDS", 0.01)

    async def go():
        app = App()
        app.may.clear()
        door = UploadLimitMiddleware(app)
        first = asyncio.create_task(put(door, size=b"700"))
        await asyncio.sleep(0.01)
        second = await put(door, path="/_stcore/upload_file/other/1", size=b"700")
        app.may.set()
        return second, await first, await put(door, path="/_stcore/upload_file/other/1", size=b"700")

    assert asyncio.run(go()) == (503, 204, 204)


def upload(door, *parts, path=MINE, size=700, wait=None):
    """An upload that sends these parts of its body, then waits, and ends or is gone; its task."""
    body = [{"type": "http.request", "body": bytes(n), "more_body": True} for n in parts]

    async def receive():
        if body:
            return body.pop(0)
        if wait is not None:
            await wait.wait()
        return {"type": "http.disconnect"}

    found = []

    async def send(message):
        found.append(message.get("status"))

    async def go():
        headers = [(b"content-length", str(size).encode())]
        await door({"type": "http", "method": "PUT", "path": path, "headers": headers}, receive, send)
        return found

    return asyncio.create_task(go())


class Reader(App):
    """Reads what comes, as Streamlit does."""

    async def __call__(self, scope, receive, send):
        async for _ in Request(scope, receive).stream():
            pass


@pytest.mark.parametrize("parts", [(), (0,), (5,)])
def test_who_announces_much_and_sends_nothing_holds_up_nobody(runtime, monkeypatch, parts):
    monkeypatch.setattr(upload_middleware, "GRACE_SECONDS", -1.0)  # of sending nothing more
    runtime.sessions |= {"third", "fourth"}

    async def go():
        door, wait = UploadLimitMiddleware(Reader()), asyncio.Event()
        held = [upload(door, *parts, path=f"/_stcore/upload_file/{name}/1", wait=wait) for name in ("other", "third")]
        await asyncio.sleep(0.01)
        door._app = App()
        status = await put(door, size=b"700")
        wait.set()
        await asyncio.gather(*held)
        return status, door._coming

    assert asyncio.run(go()) == (204, set())


def test_who_was_slow_and_goes_on_waits_for_room_again(runtime, monkeypatch):
    monkeypatch.setattr(upload_middleware, "GRACE_SECONDS", -1.0)
    monkeypatch.setattr(upload_middleware, "WAIT_SECONDS", 0.01)

    class Meanwhile(Reader):
        async def __call__(self, scope, receive, send):
            await receive()
            runtime.holds("other", 850)
            await super().__call__(scope, receive, send)

    async def go():
        return await upload(UploadLimitMiddleware(Meanwhile()), 100, 100, size=700)

    assert asyncio.run(go())[0] == 408


def test_an_upload_that_ends_early_is_one_line_in_the_log(runtime, caplog):
    async def go():
        return await upload(UploadLimitMiddleware(Reader()), 100, 50, size=700)

    with caplog.at_level("INFO"):
        assert asyncio.run(go()) == []
    assert [record.getMessage() for record in caplog.records if record.name.startswith("glassformer")] == [
        "An upload ended after 150 of 700 bytes."
    ]


def test_what_nobody_takes_over_is_dropped_and_what_takes_too_long_given_up(runtime, monkeypatch):
    runtime.holds("other", 950)
    monkeypatch.setattr(upload_middleware, "STALE_SECONDS", 0.01)
    assert asyncio.run(put(UploadLimitMiddleware(App()))) == 204
    assert runtime.uploaded_file_mgr.get_files("other", ["0"]) == []
    monkeypatch.setattr(upload_middleware, "TAKE_SECONDS", 0.01)

    async def go():
        app = App()
        app.may.clear()
        return await put(UploadLimitMiddleware(app))

    assert asyncio.run(go()) == 408
