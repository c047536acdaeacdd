"""A page says that it is loading before any script has come, and the bare address leads to the first page."""

import gzip

import pytest
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.testclient import TestClient

from glassformer.shared.loading_placeholder import LoadingPlaceholderMiddleware, RootRedirectMiddleware, leads_to

TOLD = 'BACKEND_BASE_URL: new URL(".", location)'
HTML = b'<html><head></head><body><div id="root"></div></body></html>'


def answer(path="/step", *, html=HTML, kind="text/html; charset=utf-8", base="", asks="", encoding="", **more):
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
    found = answer(f"/step?{query}", asks=asks)
    assert found.text.startswith("<html><head></head><body>")
    assert found.text.endswith('<div id="root"></div></body></html>')
    assert f'lang="{language}"' in found.text
    assert found.headers["content-length"] == str(len(found.content))
    assert "etag" not in found.headers  # the next visit may be in another language
    assert "Accept-Language" in found.headers["vary"]


def test_a_packed_page_stays_packed_and_all_else_passes_as_it_is():
    packed = answer(html=gzip.compress(HTML), encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert "Loading the page" in packed.text
    for other in ({"kind": "text/javascript"}, {"status_code": 404}, {"html": b"<html><body>a handout</body></html>"}):
        found = answer(**other)
        assert (found.content, found.headers["etag"]) == (other.get("html", HTML), "a")
    assert answer(method="HEAD").headers["etag"] == "a"


def test_streamlit_is_told_that_the_app_is_above_a_page():
    for path, base in (("/step", ""), ("/glass/step", "/glass/")):
        assert TOLD in answer(path, base=base).text
    for path, base in (("/step/", ""), ("/", ""), ("/glass", "glass"), ("/glass/", "glass"), ("/a/b", "")):
        assert TOLD not in answer(path, base=base).text


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
        client = TestClient(RootRedirectMiddleware(PlainTextResponse("the app"), base))
        found = client.get(f"{path}?{query}", follow_redirects=False)
        assert found.status_code == (307 if sent_on else 200)
        assert found.headers.get("location") == (page if sent_on else None)
