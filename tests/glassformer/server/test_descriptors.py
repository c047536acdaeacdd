"""A server stays within what a process may have open, and every answer has the headers that protect a reader."""

import os
import subprocess
import sys
from unittest.mock import Mock

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse

from glassformer.server import descriptors
from glassformer.server.descriptors import HEADERS, DescriptorLimitMiddleware, SecurityHeadersMiddleware
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
    with TestClient(
        Starlette(routes=[stream, page], middleware=[Middleware(DescriptorLimitMiddleware, routes=others)])
    ) as client:
        answer = client.get("/step?s=secret")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "60")
        assert answer.text.startswith(
            "This server has nearly as many connections and files open as it may have (1,024)"
        )
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
