"""Headers on every answer, whatever the app behind says."""

import asyncio

import pytest

from glassformer.server.descriptors import HEADERS, SecurityHeadersMiddleware


def answer(app_headers, kind="http", path="/"):
    """What a client gets from an app with these headers."""

    async def app(scope, receive, send):
        await send({"type": f"{kind}.response.start", "status": 200, "headers": app_headers})
        await send({"type": f"{kind}.response.body", "body": b"text"})

    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(SecurityHeadersMiddleware(app, "<a.js>; rel=modulepreload")({"type": kind, "path": path}, None, send))
    return sent


@pytest.mark.parametrize("name", HEADERS)
def test_every_answer_has_the_header(name):
    headers = dict(answer([(b"content-type", b"text/html")])[0]["headers"])
    assert headers[name.lower().encode()] == HEADERS[name].encode()
    assert headers[b"content-type"] == b"text/html"


def test_a_header_that_is_there_is_kept():
    headers = answer([(b"referrer-policy", b"no-referrer")])[0]["headers"]
    assert [value for name, value in headers if name == b"referrer-policy"] == [b"no-referrer"]


def test_bodies_and_sockets_pass_unchanged():
    assert answer([])[1] == {"type": "http.response.body", "body": b"text"}
    assert answer([], kind="websocket")[0]["headers"] == []


def test_nobody_may_frame_the_app():
    assert "frame-ancestors 'self'" in HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("kind", "path", "is_told"),
    [("text/html; charset=utf-8", "/", True), ("text/html", "/step", True), ("text/html", "/step/", False),
     ("text/javascript", "/static/js/index.js", False)],
)  # fmt: skip
def test_a_page_tells_which_scripts_it_will_ask_for(kind, path, is_told):
    given = [(b"content-type", kind.encode())]
    headers = dict(answer(given, path=path)[0]["headers"])
    assert headers.get(b"link") == (b"<a.js>; rel=modulepreload" if is_told else None)
