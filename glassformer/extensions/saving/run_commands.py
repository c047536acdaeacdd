"""Commands `picture` (drawing a run) and `verify` (rerun, compared arrays); `show` and `compare` for notebooks."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.named import named
from transformer.checkpoint.opening import load
from transformer.commands import add_device
from transformer.errors import CheckpointError, DataError, GlassformerError, shown
from transformer.runs.run_file import RunFile, open_run_file
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


ROUNDING = 1e-4  # by which numbers of equal models may differ: machines sum in another order


def add_verify(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.set_defaults(run=_verify)
    parser.add_argument("file", type=Path, metavar="RUN", help="a file that `Trace.save` or the app wrote")
    parser.add_argument("--checkpoint", type=named, help="the model (default: the one that the file names)")
    add_device(parser)


def _verify(options: argparse.Namespace) -> int:
    """Status 0 if the run is the same up to rounding, 1 if not, 2 if that cannot be said."""
    found = open_run_file(options.file)
    saved = found.trace
    print(f"saved: {saved.checkpoint}, {shown(saved.query.source)} -> {shown(saved.output_text)}")
    print("made with: " + ", ".join(f"{name} {version}" for name, version in found.made_with.items()))
    checkpoint = _model(found, options)
    status = 0
    if (is_ := checkpoint.content_hash) != (was := saved.query.checkpoint):
        print(f"the model is another: its content hash is {is_[:12]}, not {was[:12]}")
        status = 1
    lines, largest = differences(saved, checkpoint.run(replace(saved.query, checkpoint=is_)))
    print("\n".join(lines) or "output, probabilities, maps and masks are the same")
    print(f"largest difference of a number: {largest:.1e}")
    return 1 if lines else status


def _model(found: RunFile, options: argparse.Namespace) -> Checkpoint:
    try:
        return load(options.checkpoint or found.trace.checkpoint, device=options.device)
    except CheckpointError as error:
        if options.checkpoint:
            raise
        raise CheckpointError(
            "the model {name} of this run cannot be opened; name it with --checkpoint. ({problem})",
            name=found.trace.checkpoint,
            problem=error.sentence,
        ) from error


def differences(saved: Trace, now: Trace) -> tuple[list[str], float]:
    """A line for each thing that is not the same, but for rounding; the largest difference in arrays of one size."""
    lines, largest = [], 0.0
    if saved.src_ids != now.src_ids:
        lines.append(f"source: {' '.join(saved.src_tokens)} is read as {' '.join(now.src_tokens)}")
    if saved.tgt_ids != now.tgt_ids:
        step = next((i for i, (a, b) in enumerate(zip(saved.tgt_ids, now.tgt_ids, strict=False)) if a != b), None)
        where = f"step {step + 1}" if step is not None else "the end"
        lines.append(f"output: {shown(saved.output_text)} becomes {shown(now.output_text)}, from {where} on")
    for name, one, other in _arrays(saved, now):
        if one.shape != other.shape:
            lines.append(f"{name}: {one.shape} becomes {other.shape}")
            continue
        gap = _gap(one, other)
        largest = max(largest, gap)
        if gap > ROUNDING:
            lines.append(f"{name}: differs by up to {gap:.1e}")
    return lines, largest


def _arrays(saved: Trace, now: Trace) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    yield "log-probabilities", saved.log_probs, now.log_probs
    for kind in saved.kinds:
        if kind in now.kinds:
            yield f"maps, {kind}", saved.maps(kind), now.maps(kind)
            yield f"mask, {kind}", saved.masks[kind].astype(float), now.masks[kind].astype(float)


def _gap(one: np.ndarray, other: np.ndarray) -> float:
    same = one == other  # closed pieces have an infinite one on both sides
    return float(np.abs(np.where(same, 0, one) - np.where(same, 0, other)).max(initial=0.0))
