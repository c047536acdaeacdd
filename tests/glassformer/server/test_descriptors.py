"""Answers have protecting headers and say at once that a page loads; beyond a server's limits they refuse."""

import gzip
import os
import subprocess
import sys
from unittest.mock import Mock

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse

from glassformer.server import descriptors
from glassformer.server.descriptors import HEADERS, DescriptorLimitMiddleware, SecurityHeadersMiddleware
from glassformer.shared.loading_placeholder import LoadingPlaceholderMiddleware, leads_to, redirects
from tests.source_code import ROOT


@pytest.fixture
def scarce(monkeypatch):
    monkeypatch.setattr(descriptors, "limit", lambda: 1024)
    monkeypatch.setattr(descriptors, "n_open", lambda: 1024 * 3 / 4)


def test_the_soft_limit_becomes_the_hard_one():
    program = (
        "import resource as r; from glassformer.server import descriptors\n"
        "r.setrlimit(r.RLIMIT_NOFILE, (128, 200)); descriptors.limit(raised=True)\n"
        "print(*r.getrlimit(r.RLIMIT_NOFILE))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["200", "200"]


def test_new_pages_are_refused_with_a_sentence_and_nothing_else_is(scarce):
    async def socket(websocket):
        await websocket.accept()
        await websocket.close()

    page = Route("/{path:path}", lambda _: PlainTextResponse("a page"))
    stream = WebSocketRoute("/_stcore/stream", socket)
    others = [Route(f"/{path}", page.endpoint) for path in ("class/{room}/events", "healthz")]
    limited = Middleware(DescriptorLimitMiddleware, routes=others)
    with TestClient(Starlette(routes=[stream, page], middleware=[limited])) as client:
        answer = client.get("/step?s=secret")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "60")
        assert "as many connections and files open as it may have (1,024)" in answer.text
        assert "ulimit -n" in answer.text
        with pytest.raises(WebSocketDenialResponse) as denied, client.websocket_connect("/_stcore/stream"):
            pass
        assert denied.value.status_code == 503
        for path in ("static/js/x.js", "class/ABCD/events", "_stcore/upload_file/x/y", "healthz"):
            assert client.get(f"/{path}").text == "a page"
    assert str(descriptors.problem()) == answer.text


def test_where_there_is_room_all_may_come_and_none_left_is_scarce(monkeypatch):
    for limit, found in ((0, 10_000), (1024, 767), (65_536, 10_000)):
        monkeypatch.setattr(descriptors, "limit", lambda limit=limit: limit)
        monkeypatch.setattr(descriptors, "n_open", lambda found=found: found)
        assert descriptors.problem() is None
    monkeypatch.undo()
    monkeypatch.setattr(descriptors, "limit", lambda: 1024)
    monkeypatch.setattr(os, "listdir", Mock(side_effect=OSError(24, os.strerror(24))))
    assert descriptors.problem() is not None


def answer(path="/", **headers):
    """The headers that a client gets from an app with these."""
    app = PlainTextResponse("text", headers={name.replace("_", "-"): value for name, value in headers.items()})
    return TestClient(SecurityHeadersMiddleware(app, "<a.js>; rel=modulepreload")).get(path).headers


def test_every_answer_has_the_headers_one_that_is_there_is_kept_and_a_page_tells_which_scripts_it_will_ask_for():
    found = answer(referrer_policy="no-referrer")
    assert {name: found[name] for name in HEADERS} == HEADERS | {"Referrer-Policy": "no-referrer"}
    assert found["Content-Security-Policy"] == "frame-ancestors 'self'"
    kinds = {"/": "text/html; charset=utf-8", "/step/": "text/html", "/a.js": "text/javascript"}
    told = [answer(path, content_type=kind).get("link") for path, kind in kinds.items()]
    assert told == ["<a.js>; rel=modulepreload", None, None]


TOLD = 'BACKEND_BASE_URL: new URL(".", location)'
HTML = b'<html><head></head><body><div id="root"></div></body></html>'


def loaded(path="/step", *, html=HTML, kind="text/html; charset=utf-8", base="", asks="", encoding="", **more):
    """What a browser gets of a file that is sent in two parts."""
    headers = {"content-type": kind, "etag": "a", "content-length": str(len(html))}
    headers |= {"content-encoding": encoding} if encoding else {}
    method = more.pop("method", "GET")

    async def app(scope, receive, send):
        await StreamingResponse(iter([html[:20], html[20:]]), headers=headers, **more)(scope, receive, send)

    client = TestClient(LoadingPlaceholderMiddleware(app, base))
    return client.request(method, path, headers={"accept-language": asks})


@pytest.mark.parametrize(
    ("query", "asks", "language"),
    [
        ("", "", "en"),
        ("", "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("model=reverse&lang=zh", "en-US,en", "zh"),
        ("lang=en", "zh-CN", "en"),
        ("lang=%3Cb%3E", "de-DE,de", "en"),
    ],
)
def test_a_page_says_in_the_readers_language_that_it_is_loading(query, asks, language):
    found = loaded(f"/step?{query}", asks=asks)
    assert found.text.startswith("<html><head></head><body>")
    assert found.text.endswith('<div id="root"></div></body></html>')
    assert f'lang="{language}"' in found.text
    assert found.headers["content-length"] == str(len(found.content))
    assert "etag" not in found.headers  # the next visit may be in another language
    assert "Accept-Language" in found.headers["vary"]


def test_a_packed_page_stays_packed_and_all_else_passes_as_it_is():
    packed = loaded(html=gzip.compress(HTML), encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert "Loading the page" in packed.text
    for other in ({"kind": "text/javascript"}, {"status_code": 404}, {"html": b"<html><body>a handout</body></html>"}):
        found = loaded(**other)
        assert (found.content, found.headers["etag"]) == (other.get("html", HTML), "a")
    assert loaded(method="HEAD").headers["etag"] == "a"


def test_streamlit_is_told_that_the_app_is_above_a_page():
    for path, base in (("/step", ""), ("/glass/step", "/glass/")):
        assert TOLD in loaded(path, base=base).text
    for path, base in (("/step/", ""), ("/", ""), ("/glass", "glass"), ("/glass/", "glass"), ("/a/b", "")):
        assert TOLD not in loaded(path, base=base).text


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("", "step"),
        ("embed=true&embed_options=dark_theme", "step?embed=true&embed_options=dark_theme"),
        ("src=", "step?src="),
        ("model=en-fr&src=a%20%26+b&lang=qps", "step?model=en-fr&src=a%20%26+b&lang=qps"),
    ],
)
def test_the_bare_address_leads_to_the_first_page(query, page):
    assert leads_to(query) == page
    for base, path, sent_on in (("", "/", True), ("", "/attention", False), ("glass", "/glass/", True)):
        client = TestClient(Starlette(routes=redirects(base)))
        found = client.get(f"{path}?{query}", follow_redirects=False)
        assert found.status_code == (307 if sent_on else 404)
        assert found.headers.get("location") == (page if sent_on else None)
