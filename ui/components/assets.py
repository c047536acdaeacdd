"""The files our components need in the browser: their own scripts and styles, and Plotly's.

Plotly's script is copied out of the installed package instead of being kept in the repository, so that Python
and the browser always run the same version and nothing is fetched from outside.

Our scripts are served from the same folder, under a name that changes with their text, and bring their styles along.
Streamlit sends an inline script or style again with every element and every change of data, so what it is given is
only a loader of a few lines.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import plotly

from charts.theme import DARK_COLORS

FOLDER = Path(__file__).resolve().parent
STATIC = FOLDER.parents[1] / "static"
PLOTLY_FILE = f"plotly-{plotly.__version__}.min.js"
PLOTLY_URL = f"app/static/{PLOTLY_FILE}"

SCRIPTS = {
    "plotly_view": (
        "shared/shared.js",
        "shared/csv.js",
        "plotly/load.js",
        "plotly/paint.js",
        "plotly/fit.js",
        "plotly/grid.js",
        "plotly/follow.js",
        "plotly/table.js",
        "plotly/tools.js",
        "plotly/view.js",
    ),
    "stepper": ("shared/shared.js", "stepper/stepper.js"),
    "flow_view": ("shared/shared.js", "shared/csv.js", "flow/draw.js", "flow/view.js"),
}

STYLES = {
    "plotly_view": ("shared/tokens.css", "plotly/view.css"),
    "stepper": ("shared/tokens.css", "stepper/stepper.css"),
    "flow_view": ("shared/tokens.css", "flow/view.css"),
}

_LOADER = """
let loading;
function load() {
  // Pages live at /step, or at /step/ when someone typed the slash: then the app is one level up.
  loading ??= import(new URL("app/static/%(file)s", location.href).href)
    .catch(() => import(new URL("../app/static/%(file)s", location.href).href));
  loading.catch(() => { loading = undefined; });  // the next call may try again
  return loading;
}
export default function (component) {
  let cleanup;
  let overtaken = false;
  load().then(
    (script) => { if (!overtaken) cleanup = script.default(component); },
    () => { component.parentElement.textContent = "A script did not load. Reload the page to try again."; },
  );
  return () => { overtaken = true; if (cleanup) cleanup(); };
}
"""


@cache
def read_asset(*names: str) -> str:
    """Read files that lie next to this one and join them.

    Args:
        names: File names, in the order in which the browser shall see them.

    Returns:
        Their text.
    """
    return "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in names) + "\n"


@cache
def script(name: str) -> str:
    """A component's script as it is served, behind its styles and the dark twins of the charts' colours.

    Args:
        name: A key of `SCRIPTS`.
    """
    constants = {"DARK_COLORS": DARK_COLORS, "STYLES": read_asset(*STYLES[name])}
    defined = "".join(f"const {key} = {json.dumps(value)};\n" for key, value in constants.items())
    return defined + read_asset(*SCRIPTS[name])


@cache
def script_file(name: str) -> str:
    """The file name under which a component's script is served; it changes with the script.

    Args:
        name: A key of `SCRIPTS`.
    """
    digest = hashlib.sha256(script(name).encode()).hexdigest()
    return f"glassformer-{name}-{digest[:12]}.js"


def loader(name: str) -> str:
    """The inline script of a component: it loads the served one, once a browser page.

    Args:
        name: A key of `SCRIPTS`.
    """
    return _LOADER % {"file": script_file(name)}


def wrapped(payload: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What to give a component as its data: Streamlit looks at each value of the outermost dict for a table."""
    return {"payload": payload}


def ensure_static(folder: Path = STATIC) -> Path:
    """Put Plotly's script and ours into the folder Streamlit serves, unless they are there already.

    Each appears whole or not at all, so several servers may start at once.

    Args:
        folder: The `static` folder beside `app.py`.

    Returns:
        The path of the script.

    Raises:
        OSError: If the folder cannot be written to.
    """
    for name in SCRIPTS:
        _provide(folder / script_file(name), script(name).encode())
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
