"""`python -m transformer picture`, and `Trace.show()` and `transformer.compare()` for notebooks; no server."""

import argparse
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from transformer.checkpoint.named import named
from transformer.commands import add_device
from transformer.errors import DataError, GlassformerError, shown
from transformer.runs.trace import LabelledMaps, NotebookDisplay, Trace

_ENDINGS = (".svg", ".pdf", ".png", ".html", ".dot", ".tex")
_DRAWS = "glassformer.extensions.saving.notebook"


def show(trace: Trace | LabelledMaps, picture: str, view: Mapping[str, object]) -> NotebookDisplay:
    """One run, or maps; see `Trace.show`."""
    return drawing().show(trace, picture, view)


def compare(left: Trace, right: Trace, picture: str = "step", **view: object) -> NotebookDisplay:
    """Two runs side by side for a notebook's cell, of checkpoints still open; the rest is as of `Trace.show`."""
    return drawing().compare(left, right, picture, view)


def drawing() -> Any:
    """The module that draws. Raises GlassformerError if the app is not installed with this library."""
    try:
        return import_module(_DRAWS)
    except ModuleNotFoundError as error:
        raise GlassformerError(
            "pictures of a run are drawn by the app, but its module {name} is missing; `pip install "
            "glassformer` brings it.",
            name=error.name,
        ) from error


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.set_defaults(run=_run)
    parser.add_argument("checkpoint", type=named, help="a checkpoint folder, or a name such as zh-en")
    parser.add_argument("sentence", help="what the model reads")
    parser.add_argument(
        "looks", nargs="*", metavar="WORD=VALUE",
        help="what to show, as in the app's address: step=2 layer=3 head=1 how=beam beam=4; counted from 1",
    )  # fmt: skip
    parser.add_argument("--panel", default="attention.head_map", help="the picture, such as step.candidates")
    parser.add_argument("--out", type=Path, required=True, help=f"the file: {', '.join(_ENDINGS)}")
    parser.add_argument("--width", type=float, default=160, help="width of SVG, PDF and PNG, in mm (160)")
    parser.add_argument("--height", type=float, help="height of SVG, PDF and PNG, in mm (default: the picture's own)")
    parser.add_argument("--dpi", type=float, default=300, help="resolution of PNG (300)")
    parser.add_argument("--language", default="en", help="en or zh")
    add_device(parser)


def _run(options: argparse.Namespace) -> None:
    form = options.out.suffix.lower().removeprefix(".")
    if options.out.suffix.lower() not in _ENDINGS:
        raise DataError("{file}: a picture must be {endings}.", file=str(options.out), endings=", ".join(_ENDINGS))
    pairs = [look.partition("=") for look in options.looks]
    for word, equals, _ in pairs:
        if not equals:
            raise DataError("{word}: write it as WORD=VALUE, for example layer=3.", word=shown(word))
    parameters = {word: (value,) for word, _, value in pairs}
    content, notes = drawing().picture_file(
        options.checkpoint, options.sentence, parameters, options.panel, form=form, language=options.language,
        width=options.width, height=options.height, dpi=options.dpi, device=options.device,
    )  # fmt: skip
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    options.out.write_bytes(content)
