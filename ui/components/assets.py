"""The files our components need in the browser: their own scripts and styles, and Plotly's.

Plotly's script is copied out of the installed package instead of being kept in the repository, so that Python
and the browser always run the same version and nothing is fetched from outside.
"""

from __future__ import annotations

import os
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path

import plotly

FOLDER = Path(__file__).resolve().parent
STATIC = FOLDER.parents[1] / "static"
PLOTLY_FILE = f"plotly-{plotly.__version__}.min.js"
PLOTLY_URL = f"app/static/{PLOTLY_FILE}"


@cache
def read_asset(*names: str) -> str:
    """Read files that lie next to this one and join them.

    Args:
        names: File names, in the order in which the browser shall see them.

    Returns:
        Their text. It always holds a line break: Streamlit takes a single line for a path.
    """
    return "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in names) + "\n"


def ensure_static(folder: Path = STATIC) -> Path:
    """Copy Plotly's script into the folder Streamlit serves, unless it is there already.

    The copy appears whole or not at all, so several servers may start at once.

    Args:
        folder: The `static` folder beside `app.py`.

    Returns:
        The path of the script.

    Raises:
        OSError: If the folder cannot be written to.
    """
    source = files("plotly").joinpath("package_data", "plotly.min.js")
    content = source.read_bytes()
    target = folder / PLOTLY_FILE
    if target.is_file() and target.stat().st_size == len(content):
        return target
    folder.mkdir(parents=True, exist_ok=True)
    _write_atomically(target, content)
    return target


def _write_atomically(target: Path, content: bytes) -> None:
    """Write a file beside its final place and move it there in one step."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".plotly-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as part:
            part.write(content)
        os.chmod(name, 0o644)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
