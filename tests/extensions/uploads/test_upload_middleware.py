"""Uploads are bounded before Streamlit takes them: over all, for a session, without a length, and too slow."""

import asyncio

import pytest
from starlette.requests import Request
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from glassformer.extensions.uploads import upload_middleware
from glassformer.extensions.uploads.upload_middleware import UploadLimitMiddleware
from glassformer.server import server_options

MINE, OTHERS, NOBODYS = (f"/_stcore/upload_file/{name}/1" for name in ("mine", "other", "nobody"))


class Runtime:
    """Streamlit's, with a session or two."""

    def __init__(self):
        self.uploaded_file_mgr = MemoryUploadedFileManager("/_stcore/upload_file")
        self.sessions = {"mine", "other"}

    def is_active_session(self, name):
        return name in self.sessions

    def holds(self, session, size):
        self.uploaded_file_mgr.add_file(session, UploadedFileRec("0", "x", "", bytes(size)))


class App:
    """Behind the gate: notes what comes through, and answers when it may."""

    def __init__(self, *, may=True):
        self.came, self.may = [], asyncio.Event()
        if may:
            self.may.set()

    async def __call__(self, scope, receive, send):
        self.came.append(scope["path"])
        await self.may.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Reader:
    """Reads what comes, as Streamlit does."""

    async def __call__(self, scope, receive, send):
        async for _ in Request(scope, receive).stream():
            pass


@pytest.fixture
def runtime(monkeypatch):
    found = Runtime()
    monkeypatch.setattr("streamlit.runtime.Runtime.instance", lambda: found)
    monkeypatch.setattr(server_options, "mode", lambda: "on")
    limits = {"LOOK_SECONDS": 0.001, "MOST_BYTES": 1000, "MOST_OF_SESSION": 800, "WAIT_SECONDS": 0.02}
    for name, limit in limits.items():
        monkeypatch.setattr(upload_middleware, name, limit)
    return found


async def put(door, *parts, path=MINE, size=b"100", method="PUT", wait=None):
    """Send a request; its status. One with parts of a body, or that waits, is gone after them."""
    body = [{"type": "http.request", "body": bytes(n), "more_body": True} for n in parts]
    body += [] if parts or wait else [{"type": "http.request"}]
    found = []

    async def receive():
        if not body and wait is not None:
            await wait.wait()
        return body.pop(0) if body else {"type": "http.disconnect"}

    async def send(message):
        found.append(message.get("status"))

    headers = [] if size is None else [(b"content-length", size)]
    await door({"type": "http", "method": method, "path": path, "headers": headers}, receive, send)
    return found[0] if found else None


def status(door=None, **how):
    return asyncio.run(put(door or UploadLimitMiddleware(App()), **how))


@pytest.mark.parametrize(
    ("mode", "how", "expected"),
    [
        ("on", {}, 204),
        ("on", {"path": NOBODYS, "size": b"999999"}, 204),  # whom Streamlit refuses
        *(("on", {"size": size}, 411) for size in (None, b"-5", b"1e3", b"", b"9" * 30)),
        ("on", {"size": b"801"}, 413),
        *(("off", {"method": method}, 403) for method in ("PUT", "POST", "PATCH")),
        ("off", {"path": "/_stcore/health", "method": "GET"}, 204),
    ],
)
def test_what_fits_and_says_its_length_comes_through_and_nothing_with_uploads_off(
    runtime, monkeypatch, mode, how, expected
):
    monkeypatch.setattr(server_options, "mode", lambda: mode)
    app = App()
    assert status(UploadLimitMiddleware(app), **how) == expected
    assert len(app.came) == (expected == 204)
    path = f"/glass{how.get('path', MINE)}"
    assert status(UploadLimitMiddleware(app, base="/glass"), **how | {"path": path}) == expected


def test_a_session_has_its_own_bound(runtime, monkeypatch):
    runtime.holds("mine", 750)
    assert status() == 413
    assert status(path=OTHERS) == 204
    monkeypatch.setattr(upload_middleware, "MOST_FILES", 1)
    assert status(size=b"1") == 413


def test_what_is_on_its_way_counts_for_its_session_and_for_all(runtime):
    async def go():
        app = App(may=False)
        door = UploadLimitMiddleware(app)
        first = asyncio.create_task(put(door, size=b"700"))
        await asyncio.sleep(0.01)
        meanwhile = [await put(door, path=path, size=b"700") for path in (MINE, OTHERS)]
        app.may.set()
        return meanwhile, await first, await put(door, path=OTHERS, size=b"700")

    assert asyncio.run(go()) == ([413, 503], 204, 204)


def test_who_comes_when_it_is_full_waits_until_there_is_room(runtime, monkeypatch):
    runtime.holds("other", 950)
    assert status() == 503

    async def go():
        waiting = asyncio.create_task(put(UploadLimitMiddleware(App())))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        runtime.uploaded_file_mgr.remove_file("other", "0")
        return await waiting

    monkeypatch.setattr(upload_middleware, "WAIT_SECONDS", 60)
    assert asyncio.run(go()) == 204


@pytest.mark.parametrize("parts", [(), (0,), (5,)])
def test_who_announces_much_and_sends_nothing_holds_up_nobody(runtime, monkeypatch, parts):
    monkeypatch.setattr(upload_middleware, "GRACE_SECONDS", -1.0)  # of sending nothing more
    runtime.sessions |= {"third"}

    async def go():
        door, wait = UploadLimitMiddleware(Reader()), asyncio.Event()
        paths = (OTHERS, OTHERS.replace("other", "third"))
        held = [asyncio.create_task(put(door, *parts, path=path, size=b"700", wait=wait)) for path in paths]
        await asyncio.sleep(0.01)
        door._app = App()
        found = await put(door, size=b"700")
        wait.set()
        await asyncio.gather(*held)
        return found, door._coming

    assert asyncio.run(go()) == (204, set())


def test_who_was_slow_and_goes_on_waits_for_room_again(runtime, monkeypatch):
    monkeypatch.setattr(upload_middleware, "GRACE_SECONDS", -1.0)

    class Meanwhile(Reader):
        async def __call__(self, scope, receive, send):
            await receive()
            runtime.holds("other", 850)
            await super().__call__(scope, receive, send)

    assert asyncio.run(put(UploadLimitMiddleware(Meanwhile()), 100, 100, size=b"700")) == 408


def test_an_upload_that_ends_early_is_one_line_in_the_log(runtime, caplog):
    with caplog.at_level("INFO"):
        assert asyncio.run(put(UploadLimitMiddleware(Reader()), 100, 50, size=b"700")) is None
    told = [record.getMessage() for record in caplog.records if record.name.startswith("glassformer")]
    assert told == ["An upload ended after 150 of 700 bytes."]


def test_what_nobody_takes_over_is_dropped_and_what_takes_too_long_given_up(runtime, monkeypatch):
    runtime.holds("other", 950)
    monkeypatch.setattr(upload_middleware, "WAIT_SECONDS", 60)
    monkeypatch.setattr(upload_middleware, "STALE_SECONDS", 0.01)
    assert status() == 204
    assert runtime.uploaded_file_mgr.get_files("other", ["0"]) == []
    monkeypatch.setattr(upload_middleware, "TAKE_SECONDS", 0.01)

    async def go():
        return await put(UploadLimitMiddleware(App(may=False)))

    assert asyncio.run(go()) == 408
