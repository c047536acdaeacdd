"""Custom components: one script of all our modules, and the Python wrapper of each component.

Our modules are served as one script with a digest of its text in the name, so browsers may cache it permanently. One
request per module delayed the first picture with an empty cache by 10 %, and the first picture of another component
by 50 %. Streamlit sends inline scripts again with every element and every change of data, so it gets only a short
loader.
"""

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
            payload = said_throughout(payload, spoken) | {"lang": language.tag(), "words": browser_words(spoken)}
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
