"""The files our components need in the browser: their own modules and styles, and Plotly's script.

Plotly's script is copied out of the installed package instead of being kept in the repository, so that Python
and the browser always run the same version and nothing is fetched from outside.

Our modules are served as they are written, in a folder that is named after all their text: a change of any gives
every module a new address. Streamlit sends an inline script again with every element and every change of data, so
what it is given is only a loader of a few lines. What the loader asks for is the entry of a component, which asks for
all the modules at once: found one import after the other, they would each wait for the one before.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

import plotly

from charts.theme import DARK_COLORS
from ui.shared.door import here
from ui.state import language
from words import ENGLISH
from words.browser import browser_words

FOLDER = Path(__file__).resolve().parent
STATIC = FOLDER.parents[1] / "static"
PLOTLY_FILE = f"plotly-{plotly.__version__}.min.js"

COMPONENTS = {"plotly_view": "plotly/view.js", "stepper": "stepper/view.js", "flow_view": "flow/view.js"}
"""The module that is each component."""

AHEAD = {"plotly_view": (f"../{PLOTLY_FILE}",)}
"""Other scripts that a component will ask for."""

LATER = {"plotly_view": ("flow_view",)}
"""Components that a reader of this one may come to: they are fetched once the first pictures stand.

Any sooner they would delay these by a tenth."""

STYLES = {
    "common": "common/tokens.css",
    "plotly": "plotly/view.css",
    "stepper": "stepper/view.css",
    "flow": "flow/view.css",
}

_LOADER = "common/loader.js"
_IMPORT = re.compile(r'^(?:import|export) [^;]*?from "(\.[^"]+)";', re.MULTILINE)
_COMMENT = re.compile(r"^ *(?://|/\*\*).*\n+", re.MULTILINE)
_ENTRY = """
const address = (name) => new URL(name, import.meta.url).href;
const links = [...%(modules)s.map((name) => ["modulepreload", name, ""]),
  ...%(scripts)s.map((name) => ["preload", name, "script"])];
document.head.append(...links.map(([rel, name, as]) =>
  Object.assign(document.createElement("link"), { rel, as, href: address(name) })));
const { default: component } = await import(address("%(module)s"));
export default component;
setTimeout(() => document.head.append(...%(later)s.map((name) =>
  Object.assign(document.createElement("link"), { rel: "prefetch", href: address(name) }))), 3000);
"""


def read_asset(name: str) -> str:
    """The text of a file that lies next to this one."""
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def modules() -> dict[str, str]:
    """Every module that is served, by its name: those in the repository, one of values, and an entry a component."""
    names = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.js"))
    written = {name: read_asset(name) for name in names if name != _LOADER}
    values = {
        "DARK_COLORS": DARK_COLORS,
        "PLOTLY_FILE": PLOTLY_FILE,
        "STYLES": {folder: read_asset(name) for folder, name in STYLES.items()},
    }
    written["common/served.js"] = "".join(f"export const {key} = {json.dumps(is_)};\n" for key, is_ in values.items())
    entries = {f"{name}.js": _entry(name, written) for name in COMPONENTS}
    return {**written, **entries}


def _entry(name: str, written: dict[str, str]) -> str:
    module = COMPONENTS[name]
    first = needed(module, written)
    return _ENTRY.lstrip() % {
        "modules": json.dumps(first),
        "scripts": json.dumps(AHEAD.get(name, ())),
        "module": module,
        "later": json.dumps([path for path in _all_of(LATER.get(name, ()), written) if path not in first]),
    }


def needed(module: str, written: dict[str, str]) -> list[str]:
    """A module and all that it imports, from near to far.

    Args:
        module: Its name.
        written: The text of each module by its name.
    """
    found = [module]
    for name in found:
        imported = [_beside(name, path) for path in _IMPORT.findall(written[name])]
        found += [other for other in dict.fromkeys(imported) if other not in found]
    return found


def _beside(name: str, path: str) -> str:
    return Path(os.path.normpath(PurePosixPath(name).parent / path)).as_posix()


@cache
def folder_name() -> str:
    """The folder under `static` that the modules are served from."""
    text = json.dumps(modules(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def loader(name: str) -> str:
    """The inline script of a component: it loads the served one, once a browser page.

    Args:
        name: A key of `COMPONENTS`.
    """
    return _COMMENT.sub("", read_asset(_LOADER)).replace("ENTRY", f"{folder_name()}/{name}.js")


@cache
def links(*names: str) -> str:
    """A `Link` header that has a browser fetch components before Streamlit asks for them.

    They come behind Streamlit's own scripts, in the time in which those start. Plotly's script is not among them: it
    is as large as all of Streamlit's, and with it in front everything else came later.

    Args:
        names: Keys of `COMPONENTS`.
    """
    folder = f"app/static/{folder_name()}"
    return ", ".join(f"<{folder}/{path}>; rel=modulepreload; fetchpriority=low" for path in _all_of(names, modules()))


def _all_of(names: tuple[str, ...], written: dict[str, str]) -> list[str]:
    """Entries of components, and the modules that they need."""
    entries = [f"{name}.js" for name in names]
    return list(dict.fromkeys([*entries, *(path for name in names for path in needed(COMPONENTS[name], written))]))


def wrapped(payload: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What to give a component as its data. Every payload passes here.

    Streamlit looks at each value of the outermost dict for a table, so there is only one. For another language than
    English a payload also holds `lang`, its tag, and `words`, which `common/words.js` describes.
    """
    if (spoken := language.current()) == ENGLISH:
        return {"payload": payload}
    return {"payload": here(payload) | {"lang": language.tag(), "words": browser_words(spoken)}}


def ignore() -> None:
    """Do nothing: Streamlit only keeps state and returns events that have a callback."""


def ensure_static(folder: Path = STATIC) -> Path:
    """Put Plotly's script and our modules into the folder Streamlit serves, unless they are there already.

    Each appears whole or not at all, so several servers may start at once.

    Args:
        folder: The `static` folder beside `app.py`.

    Returns:
        The path of Plotly's script.

    Raises:
        OSError: If the folder cannot be written to.
    """
    for name, text in modules().items():
        _provide(folder / folder_name() / name, text.encode())
    source = files("plotly").joinpath("package_data", "plotly.min.js")
    return _provide(folder / PLOTLY_FILE, source.read_bytes())


def _provide(target: Path, content: bytes) -> Path:
    if not (target.is_file() and target.stat().st_size == len(content)):
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_atomically(target, content)
    return target


def _write_atomically(target: Path, content: bytes) -> None:
    """Write a file beside its final place and move it there in one step."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".part-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as part:
            part.write(content)
        os.chmod(name, 0o644)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
