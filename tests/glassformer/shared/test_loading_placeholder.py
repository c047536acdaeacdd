"""A page says that it is loading before any script has come, and the bare address leads to the start page."""

import asyncio
import gzip

import pytest
from starlette.datastructures import Headers

from glassformer.shared.loading_placeholder import LoadingPlaceholderMiddleware, RootRedirectMiddleware, leads_to

HTML = b'<html><head></head><body><div id="root"></div></body></html>'


def answer(
    *, html=HTML, kind="text/html; charset=utf-8", method="GET", status=200, query=b"", asks="", more=(),
    path="/step", base="",
):  # fmt: skip
    """What a browser gets of a file with these headers, that is sent in two parts."""

    async def app(scope, receive, send):
        headers = [
            (b"content-type", kind.encode()),
            (b"etag", b"a"),
            (b"content-length", str(len(html)).encode()),
            *more,
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": html[:20], "more_body": True})
        await send({"type": "http.response.body", "body": html[20:]})

    sent = []

    async def send(message):
        sent.append(message)

    headers = [(b"accept-language", asks.encode())] if asks else []
    scope = {"type": "http", "method": method, "path": path, "query_string": query, "headers": headers}
    asyncio.run(LoadingPlaceholderMiddleware(app, base)(scope, None, send))
    return Headers(raw=sent[0]["headers"]), b"".join(one["body"] for one in sent[1:])


@pytest.mark.parametrize(
    ("query", "asks", "language"),
    [(b"", "", "en"), (b"", "zh-CN,zh;q=0.9,en;q=0.8", "zh"), (b"model=reverse&lang=zh", "en-US,en", "zh"),
     (b"lang=en", "zh-CN", "en"), (b"lang=%3Cb%3E", "de-DE,de", "en")],
)  # fmt: skip
def test_a_page_says_in_the_readers_language_that_it_is_loading(query, asks, language):
    headers, body = answer(query=query, asks=asks)
    rest = body.removeprefix(b"<html><head></head><body>")
    assert rest.endswith(b'<div id="root"></div></body></html>')
    assert f'lang="{language}"' in rest.decode()
    assert headers["content-length"] == str(len(body))
    assert "etag" not in headers  # the next visit may be in another language
    assert "Accept-Language" in headers["vary"]


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "text/javascript"},
        {"method": "HEAD"},
        {"status": 404},
        {"more": [(b"content-encoding", b"br")]},
        {"html": b"<html><body>a handout</body></html>"},
    ],
)
def test_all_else_passes_as_it_is(other):
    headers, body = answer(**other)
    assert body == other.get("html", HTML)
    assert headers["etag"] == "a"


def test_a_packed_page_stays_packed():
    headers, body = answer(html=gzip.compress(HTML), more=[(b"content-encoding", b"gzip")])
    assert headers["content-encoding"] == "gzip"
    assert headers["content-length"] == str(len(body))
    assert b"Loading the page" in gzip.decompress(body)


@pytest.mark.parametrize(
    ("path", "base", "told"),
    [("/step", "", True), ("/glass/step", "glass", True), ("/glass/step", "/glass/", True), ("/step/", "", False),
     ("/", "", False), ("/glass", "glass", False), ("/glass/", "glass", False), ("/a/b", "", False)],
)  # fmt: skip
def test_streamlit_is_told_that_the_app_is_above_a_page(path, base, told):
    _, body = answer(path=path, base=base)
    assert (b'BACKEND_BASE_URL: new URL(".", location)' in body) is told


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("", "start"),
        ("lang=qps", "start?lang=qps"),
        ("embed=true&embed_options=dark_theme", "start?embed=true&embed_options=dark_theme"),
        ("step=3", "step?step=3"),
        ("src=", "step?src="),
        ("model=en-fr&src=a%20%26+b&lang=qps", "step?model=en-fr&src=a%20%26+b&lang=qps"),
    ],
)
def test_the_bare_address_leads_to_the_start_page_or_as_before_to_the_step_page(query, page):
    assert leads_to(query) == page


@pytest.mark.parametrize(
    ("base", "path", "kind", "sent_on"),
    [("", "/", "http", True), ("", "/attention", "http", False), ("", "/", "websocket", False),
     ("glass", "/glass/", "http", True), ("/glass/", "/", "http", False)],
)  # fmt: skip
def test_only_that_address_is_sent_on(base, path, kind, sent_on):
    sent = []

    async def app(scope, receive, send):
        sent.append("the app")

    async def send(message):
        sent.append(message)

    asyncio.run(RootRedirectMiddleware(app, base)({"type": kind, "path": path, "query_string": b"step=2"}, None, send))
    if not sent_on:
        assert sent == ["the app"]
        return
    assert sent[0]["status"] == 307
    assert dict(sent[0]["headers"])[b"location"] == b"step?step=2"
