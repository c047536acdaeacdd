"""Custom components: all JavaScript as one script, gzip and cache middleware for it, Python wrapper `Element`.

Our modules are served as one script with a digest of its text in the name, so browsers may cache it permanently. One
request per module delayed the first picture with an empty cache by 10 %, and the first picture of another component
by 50 %. Streamlit sends inline scripts again with every element and every change of data, so it gets only a short
loader.

The script is served packed, as are Plotly's and those of Streamlit's page. Nothing is written, so a read-only
installation works. Streamlit serves the scripts of an app anew at each request, and has browsers revalidate at every
visit; its own it sends unpacked, 3 MB for a first page, so they are packed here, once.
"""

import asyncio
import gzip
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path, PurePosixPath
from typing import Any, TypeGuard

import streamlit as st
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer import PACKAGE
from glassformer.charts.theme import DARK_COLORS
from glassformer.server.streamlit_private import page_selectors
from glassformer.state import language
from transformer.extensions import extensions
from transformer.i18n import ENGLISH, said_throughout
from transformer.i18n.catalogue import browser_words

PLOTLY_FILE = "plotly-cartesian-4.1.1.min.js"  # `embedding.py` says what it is

COMPONENTS = {
    "plotly_view": "components/plotly/view.js",
    "stepper": "components/stepper/view.js",
    "rest": "components/stepper/settled-step.js",
    "flow_view": "components/flow/view.js",
    "glossary_marks": "components/glossary/marks.js",
    "glossary_list": "components/glossary/list.js",
    **{name: f"extensions/{one.name}/{path}" for one in extensions() for name, path in one.components.items()},
}
"""The module that is each component, by its path in the package."""

_LOADER = "components/common/loader.js"
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "(\.[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|const|class) (\w+))", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?://|/\*\*).*\n+", re.MULTILINE)


def read_asset(name: str) -> str:
    """The text of a file of the package, by its path there."""
    return (PACKAGE / name).read_text(encoding="utf-8")


def _found(kind: str) -> list[Path]:
    """The files of that kind beside components, of the app and of the extensions that are on."""
    folders = (PACKAGE, *(PACKAGE / "extensions" / one.name for one in extensions()))
    return sorted(path for folder in folders for path in folder.glob(f"components/*/*.{kind}"))


@cache
def modules() -> dict[str, str]:
    """Every module by its name: those in the repository, and one of values."""
    names = [path.relative_to(PACKAGE).as_posix() for path in _found("js")]
    values = {
        "DARK_COLORS": DARK_COLORS,
        "PLOTLY_FILE": PLOTLY_FILE,
        "SELECTORS": page_selectors(),
        "STYLES": {sheet.parent.name: sheet.read_text(encoding="utf-8") for sheet in _found("css")},
    }
    served = "".join(f"export const {key} = {json.dumps(is_)};\n" for key, is_ in values.items())
    return {name: read_asset(name) for name in names if name != _LOADER} | {"components/common/served.js": served}


@cache
def script() -> str:
    """All modules as one, each a function that is called once, after those that it imports; never each other."""
    parts = {name: _as_function(name, text) for name, text in modules().items()}
    graph = {name: [_beside(name, path) for _, path in _IMPORT.findall(text)] for name, text in modules().items()}
    ordered = [parts[name] for name in TopologicalSorter(graph).static_order()]
    given = "({ data: [payload], ...more }) => component({ ...more, data: { payload } })"
    exports = [f'export const {name} = called(modules["{module}"].component);\n' for name, module in COMPONENTS.items()]
    return "\n".join(["const modules = {};\n", *ordered, f"const called = (component) => {given};\n", *exports])


def _as_function(name: str, text: str) -> str:
    body = _IMPORT.sub(lambda one: f'const {one[1].replace(" as ", ": ")} = modules["{_beside(name, one[2])}"];', text)
    exported = ", ".join(_EXPORT.findall(text))
    return f'modules["{name}"] = (() => {{\n{_EXPORT.sub("", body)}\nreturn {{ {exported} }};\n}})();\n'


def _beside(name: str, path: str) -> str:
    return Path(os.path.normpath(PurePosixPath(name).parent / path)).as_posix()


@cache
def script_file() -> str:
    """The name under `app/static` of the script of all modules."""
    return f"glassformer-{hashlib.sha256(script().encode()).hexdigest()[:12]}.js"


@cache
def loader(name: str) -> str:
    """The inline script of one of `COMPONENTS`: it loads the served one, once a browser page."""
    return _COMMENT.sub("", read_asset(_LOADER)).replace("SCRIPT", script_file()).replace("NAME", name)


# ------------------------------------------------------------------------------------------------ as it is served


def plotly_packed() -> bytes:
    """Plotly's script, packed."""
    return (PACKAGE / "components/plotly/vendored" / f"{PLOTLY_FILE}.gz").read_bytes()


def packed(text: str | bytes) -> bytes:
    """A text as gzip, the same bytes at any time."""
    return gzip.compress(text.encode("utf-8", "replace") if isinstance(text, str) else text, 9, mtime=0)


def link() -> str:
    """A `Link` header with which a browser prefetches our script and Plotly's, after Streamlit's, while those start."""
    ours, low = f"<app/static/{script_file()}>; rel=modulepreload", "fetchpriority=low"
    return f"{ours}; {low}, <app/static/{PLOTLY_FILE}>; rel=preload; as=script; {low}"


@cache
def served() -> dict[str, bytes]:
    """What is served beside Streamlit's own scripts, packed, by the names under `app/static`: ours and Plotly's."""
    return {script_file(): packed(script()), PLOTLY_FILE: plotly_packed()}


_MOUNT = "/app/static/"
_STREAMLITS = re.compile(r"/static/(?:js|css)/[^/]+$")
_VARY = (b"vary", b"Accept-Encoding")
_HEADERS = [
    (b"content-type", b"text/javascript; charset=utf-8"),
    _VARY,
    (b"cache-control", b"public, max-age=31536000, immutable"),
]
_PACKED = (b"content-encoding", b"gzip")


class StaticScriptsMiddleware:
    """Answers for the two scripts, always with the whole, packs Streamlit's, and leaves all else to the app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._names = (script_file(), PLOTLY_FILE)
        # Of Streamlit's scripts: headers, content.
        self._packed: dict[tuple[str, ...], tuple[list[tuple[bytes, bytes]], bytes]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        name = scope["path"].partition(_MOUNT)[2]
        unpacks = "gzip" in Headers(scope=scope).get("accept-encoding", "")
        if name not in self._names:
            packs = unpacks and scope["method"] == "GET" and _STREAMLITS.search(scope["path"])
            await (self._streamlits if packs else self._app)(scope, receive, send)
            return
        body, headers = (await asyncio.to_thread(served))[name], [*_HEADERS, _PACKED]
        if not unpacks:
            body, headers = await asyncio.to_thread(gzip.decompress, body), _HEADERS
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [*headers, length]})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _streamlits(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a file of Streamlit's; one whose name changes with its content is packed once for everybody."""
        # By folder and name alone: nobody fills the memory with one file under many paths.
        path, answer = tuple(scope["path"].split("/")[-2:]), list[Message]()
        if path not in self._packed:
            await self._app(scope, receive, _kept(answer))
            headers = Headers(raw=answer[0]["headers"])
            if answer[0]["status"] != 200 or "immutable" not in headers.get("cache-control", ""):
                for message in answer:
                    await send(message)
                return
            body = b"".join(message.get("body", b"") for message in answer[1:])
            named = [(name, value) for name, value in headers.raw if name in (b"content-type", b"cache-control")]
            self._packed[path] = ([*named, _VARY, _PACKED], await asyncio.to_thread(packed, body))
        headers_sent, body = self._packed[path]
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [*headers_sent, length]})
        await send({"type": "http.response.body", "body": body})


def _kept(answer: list[Message]) -> Send:
    async def keep(message: Message) -> None:
        answer.append(message)

    return keep


# ------------------------------------------------------------------------------------------------ in Python

Hears = Mapping[str, Callable[[], None] | None]
"""What the browser says, by its name, and what is called then, before the page runs again."""


class Element:
    """A component, by its name in `COMPONENTS`; what is not isolated shares the page's styles."""

    def __init__(self, name: str, *, isolated: bool = True) -> None:
        self._mount = st.components.v2.component(f"glassformer_{name}", js=loader(name), isolate_styles=isolated)

    def draw(self, payload: dict[str, Any], *, key: str, hears: Hears | None = None) -> Any:
        """Draw it; the key names its place on the page. Gives back what the browser said that caused this run.

        Streamlit looks for tables in a dict, for which it imports pandas, so it gets a list, which `script` takes away.
        For another language than English a payload also holds `lang`, its tag, and `words`: see `common/i18n.js`.
        """
        if (spoken := language.current()) != ENGLISH:
            payload = said_throughout(payload, spoken)
            payload |= {"lang": language.tag_of(spoken), "words": browser_words(spoken)}
        # Streamlit only keeps state and returns events that have a callback.
        calls: dict[str, Any] = {f"on_{said}_change": call or (lambda: None) for said, call in (hears or {}).items()}
        return self._mount(key=key, data=[payload], **calls)


def told(key: str, name: str) -> Any:
    """What the component drawn under a key last said by a name, whatever that is; None if it said nothing."""
    state = st.session_state.get(key)
    return state.get(name) if isinstance(state, dict) else None


def told_text(key: str, name: str) -> str:
    """What it last said, if that is a text, else ""."""
    text = told(key, name)
    return text if isinstance(text, str) else ""


def is_count(value: object) -> TypeGuard[int]:
    """Whether what a browser said is a whole number from 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
