"""The bare address of the app leads to the start page, or to the Step page, which once stood there.

One that names a room leads to the page about rooms.

Every page has a path of its own, so that what a page publishes never depends on what else stood at "/". The browser
is sent on before it loads anything, so its history holds the page's own path alone.
"""

from urllib.parse import parse_qsl

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from glassformer.state.language import PARAMETER

START, STEP, ROOM = "start", "step", "room"


class Entrance:
    """Sends on whoever comes to the bare address."""

    def __init__(self, app: ASGIApp, base: str = "") -> None:
        self._app = app
        self._path = f"/{base.strip('/')}/".replace("//", "/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        app = self._app
        if scope["type"] == "http" and scope.get("path") == self._path:
            app = RedirectResponse(leads_to(scope.get("query_string", b"").decode("latin-1")), status_code=307)
        await app(scope, receive, send)


def leads_to(query: str) -> str:
    """The page that a bare address opens, relative to it."""
    names = {name for name, _ in parse_qsl(query, keep_blank_values=True)}
    if ROOM in names:
        return f"{ROOM}?{query}"
    # Streamlit's own, and the language, say nothing of what is looked at.
    asks = any(name != PARAMETER and not name.startswith("embed") for name in names)
    return (STEP if asks else START) + (f"?{query}" if query else "")
