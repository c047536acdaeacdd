"""Our scripts are served packed and to be kept, and everything else is left to the app."""

import asyncio
import gzip

import pytest

from glassformer.components import assets
from glassformer.components.assets import StaticScriptsMiddleware

SCRIPT = assets.script_file()


def answer(name, *, method="GET", base="", **headers):
    """What a client gets: headers and body, or None where the app behind is asked."""
    sent = []

    async def behind(scope, receive, send):
        sent.append(None)

    async def send(message):
        sent.append(message)

    given = {"accept_encoding": "gzip, br", **headers}
    raw = [(key.replace("_", "-").encode(), value.encode()) for key, value in given.items()]
    scope = {"type": "http", "method": method, "path": f"{base}/app/static/{name}", "headers": raw}
    asyncio.run(StaticScriptsMiddleware(behind)(scope, None, send))
    return None if sent == [None] else (dict(sent[0]["headers"]), sent[1]["body"])


@pytest.mark.parametrize("base", ["", "/below"])
@pytest.mark.parametrize("name", [SCRIPT, assets.PLOTLY_FILE])
def test_a_script_is_served_packed_and_to_be_kept(name, base):
    headers, body = answer(name, base=base)
    assert gzip.decompress(body) == assets.served()[name]
    assert headers[b"content-length"] == str(len(body)).encode()
    assert headers[b"content-type"].startswith(b"text/javascript")
    assert b"immutable" in headers[b"cache-control"]
    assert headers[b"content-encoding"] == b"gzip"


def test_who_cannot_unpack_gets_it_as_it_is_a_part_is_the_whole_and_a_head_has_no_body():
    for encoding in ("identity", "br"):
        headers, body = answer(SCRIPT, accept_encoding=encoding)
        assert (body.decode(), b"content-encoding" in headers) == (assets.script(), False)
    assert answer(SCRIPT, range="bytes=0-9") == answer(SCRIPT)
    assert answer(SCRIPT, method="HEAD") == (answer(SCRIPT)[0], b"")


@pytest.mark.parametrize(
    ("name", "method"),
    [("icon.svg", "GET"), (f"{SCRIPT}/../icon.svg", "GET"), (f"old{SCRIPT}", "GET"), (SCRIPT, "POST")],
)
def test_all_else_is_left_to_the_app(name, method):
    assert answer(name, method=method) is None


def test_sockets_are_left_to_the_app():
    asked = []

    async def behind(scope, receive, send):
        asked.append(scope["type"])

    asyncio.run(StaticScriptsMiddleware(behind)({"type": "websocket", "path": "/_stcore/stream"}, None, None))
    assert asked == ["websocket"]
