"""Where the bare address leads."""

import asyncio

import pytest

from glassformer.shared.loading_placeholder import RootRedirectMiddleware, leads_to


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
