"""Middleware that adds a loading placeholder to Streamlit's empty page, and routes that redirect the root URL.

Streamlit sends an empty page and then more than a megabyte of scripts: over a slow network the window stays white for
up to a minute on the first visit. So the HTML itself has a sentence and grey bars in the place of the page, the CSS
of all pages, and the app's base path, which Streamlit would first look for under the page's.

The placeholder goes once the page is complete: its run has ended, none of Streamlit's skeletons is left and each of
our components has its place (`components/common/loader.js`); or once there is a title and nothing more has come for
eight seconds. A script decides that: a `:has()` rule over the whole page would be evaluated at every later change.

The root URL redirects to a page before anything loads: the page's own path is the only history entry, and what it
publishes never depends on what was at "/". A root URL that names a room leads to the page Rooms.
"""

import gzip
from html import escape
from typing import Final
from urllib.parse import parse_qs, parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.server.streamlit_private import ABOVE, PAGE, is_on, styled
from glassformer.shared.page_style import RULES
from glassformer.state.language import PARAMETER
from transformer.i18n import ENGLISH, negotiated, said, say

LOADING: Final = say("Loading the page…")
_ROOT: Final = b'<div id="root">'  # into which Streamlit's scripts draw; what is saved as HTML has none
_SIGHT: Final = styled("""
<style>
.gf-loading {
  --line: #20272e; position: fixed; z-index: 1; inset: 0.75rem 1rem auto; pointer-events: none; color: #5f676e;
  font: 1.1rem/2.2rem "Source Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans SC", sans-serif;
  animation: gf-loading-comes 0.3s 0.3s backwards;
}
.gf-loading p { margin: 0; }
@media (max-width: 768px) { .gf-loading p { padding-left: 2.5rem; } }  /* beside the button of the menu */
.gf-loading i {
  display: block; height: 1.6rem; margin-top: 0.6rem; border-radius: 0.25rem;
  background: color-mix(in srgb, var(--line) 8%, transparent); animation: gf-loading-waits 2.4s ease-in-out infinite;
}
.gf-loading i:nth-of-type(2) { width: 70%; }
.gf-loading i:nth-of-type(3) { height: 45vh; margin-top: 2rem; }
@keyframes gf-loading-comes { from { opacity: 0; } }
@keyframes gf-loading-waits { 50% { opacity: 0.45; } }
@media (min-width: 769px) { :root:not(.gf-present) .gf-loading { inset: 0.75rem 3.25rem auto 338px; } }
@media (prefers-color-scheme: dark) {
  :root { background: #141b23; }
  .gf-loading { --line: #e4e7ea; color: #9aa3ab; }
}
@media (prefers-reduced-motion: reduce) { .gf-loading, .gf-loading i { animation: none; } }
@media print { .gf-loading { display: none; } }
:--skeleton { display: none; }
.gf-first :--main-block * { visibility: hidden !important; }
</style>
<noscript><style>.gf-loading { display: none; }</style></noscript>
<script>{
  const page = document.documentElement, begun = ':--main :is(h1, .gf-wall, :--alert, :--exception)';
  const waits = ':--app:not(:--rests), :--main :is(:--waiting, :--component:not([data-there]))';
  page.classList.add("gf-first");
  if (new URLSearchParams(location.search).get("present") === "1") page.classList.add("gf-present");
  let left = -1, looks = 0;
  const look = setInterval(() => {
    if (!document.querySelector(begun)) return;
    const now = document.querySelectorAll(waits).length;
    [left, looks] = [now, now === left ? looks + 1 : 0];
    if (looks < (left ? 160 : 1)) return;
    clearInterval(look);
    page.classList.remove("gf-first");
    document.querySelector(".gf-loading")?.remove();
  }, 50);
}</script>
""")


def sight(language: str) -> bytes:
    """The HTML of it, in a language of ours; of a page that cannot be watched only the rules."""
    if not is_on(PAGE):
        return f"<style>{RULES}</style>".encode()
    text = escape(said(LOADING, language))
    bars = "<i></i>" * 3
    waits = f'<div class="gf-loading" role="status" lang="{language}"><p>{text}</p>{bars}</div>'
    return f"<style>{RULES}</style>{_SIGHT}{waits}".encode()


class LoadingPlaceholderMiddleware:
    """Puts it into every page; all else passes as it is."""

    def __init__(self, app: ASGIApp, base: str = "") -> None:
        self._app = app
        self._path = f"/{base.strip('/')}/".replace("//", "/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        begun: Message | None = None
        body = b""

        async def send_filled(message: Message) -> None:
            nonlocal begun, body
            if message["type"] == "http.response.start" and _is_page(message):
                begun = message
            elif begun is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    filled = _filled(begun, body, self._above(scope["path"]) + sight(_language(scope)))
                    await send(begun)
                    await send({"type": "http.response.body", "body": filled})

        is_asked = scope["type"] == "http" and scope["method"] == "GET"
        await self._app(scope, receive, send_filled if is_asked else send)

    def _above(self, path: str) -> bytes:
        """Tells Streamlit where the app is, of a page whose path is one name."""
        name = path.removeprefix(self._path)
        return ABOVE.encode() if name and "/" not in name and is_on(PAGE) else b""


def _is_page(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    is_html = headers.get("content-type", "").startswith("text/html")
    return bool(start["status"] == 200 and is_html and headers.get("content-encoding", "gzip") == "gzip")


def _filled(start: Message, body: bytes, sight: bytes) -> bytes:
    """The encoded page with the placeholder, and matching headers: it varies by language and is not a file."""
    headers = MutableHeaders(scope=start)
    is_packed = "content-encoding" in headers
    page = gzip.decompress(body) if is_packed else body
    if _ROOT not in page:
        return body
    page = page.replace(_ROOT, sight + _ROOT, 1)
    filled = gzip.compress(page, compresslevel=6, mtime=0) if is_packed else page
    headers["content-length"] = str(len(filled))
    headers.add_vary_header("Accept-Language")
    for name in ("etag", "last-modified", "accept-ranges"):
        del headers[name]
    return filled


def _language(scope: Scope) -> str:
    """The language that the page will speak: the address', else the first that the browser asks for."""
    asked = parse_qs(scope.get("query_string", b"").decode("latin-1")).get(PARAMETER, [""])[-1]
    first = Headers(scope=scope).get("accept-language", "").partition(",")[0].partition(";")[0]
    return negotiated(asked) or negotiated(first) or ENGLISH


START, STEP, ROOM = "start", "step", "room"  # the first is that of old addresses


def redirects(base: str = "") -> list[Route]:
    """Routes from the bare URL, and from the address of a page that there was once, to a page."""
    root = f"/{base.strip('/')}/".replace("//", "/")

    async def to_page(request: Request) -> RedirectResponse:
        return RedirectResponse(leads_to(request.url.query), status_code=307)

    return [Route(path, to_page) for path in (root, root + START)]


def leads_to(query: str) -> str:
    """The page that a bare address opens, relative to it."""
    names = {name for name, _ in parse_qsl(query, keep_blank_values=True)}
    if ROOM in names:
        return f"{ROOM}?{query}"
    return STEP + (f"?{query}" if query else "")
