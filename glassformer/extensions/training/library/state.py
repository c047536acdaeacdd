"""The state of a training on disk: what `--resume` goes on from.

It lies beside the checkpoint folder, in `<name>.training/state.pt`, as it is for the trainer alone: float32
parameters, the optimizer's moments, the rows so far, the place in the epoch, the vocabularies, and what the training
was started with. It is the same for any number of processes.

The file begins with a line of its own: a name, a version and the SHA-256 of everything after it, so that a bit that
turned is noticed. The state before it stays as `state.before.pt`: should the newer one be damaged or missing, the
training goes on from that one, a little earlier. A state is on the disk before it takes its place.
"""

import contextlib
import hashlib
import io
import logging
import os
import pickle
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer.checkpoint.save import sync_folder
from transformer.errors import ClauseError, DataError, shown
from transformer.i18n import joined, say

START = b"glassformer training state 3 "  # the version is that of what a state holds
_FIRST_LINE = re.compile(re.escape(START) + rb"([0-9a-f]{64})\n")
_LINE_LENGTH = len(START) + 64 + 1

# What torch raises on bytes that are no state of ours; each was seen, or is what the parts of torch.load may raise.
_UNREADABLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
)

log = logging.getLogger("glassformer.training")


def write_state(out: Path, state: Mapping[str, object]) -> None:
    """Replace the state that belongs to the checkpoint folder `out`; the one before it is kept beside it.

    An `OSError` where the disk is full or the place cannot be written; the states there are as they were.
    """
    path, before = paths(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    torch.save(dict(state), content)
    digest = hashlib.sha256(content.getbuffer()).hexdigest().encode()
    partial = path.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            file.write(START + digest + b"\n")
            file.write(content.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.replace(path, before)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # the state is there, if not yet for good
        sync_folder(path.parent)


def read_state(out: Path, identity: Mapping[str, str]) -> dict[str, object]:
    """The newest whole state of the checkpoint folder `out`; of what its parts hold, only "job" is looked at.

    `identity` is what the training that goes on was started with, by name; the state holds its own under "job". A
    `DataError` where there is none, each is damaged, or it belongs to another training; it names the differences.
    """
    path, before = paths(out)
    there = [file for file in (path, before) if file.exists()]
    if not there:
        raise DataError("{file}: there is no training to resume; leave out --resume to start over.", file=str(path))
    problem = None
    for file in there:
        try:
            state = _read(file)
        except ClauseError as error:
            problem = problem or error
            continue
        if file is not path:
            log.warning("%s: %s; going on from the state before it.", path, problem or "is missing")
        _check_job(state["job"], identity, file)
        return state
    assert problem is not None  # as no file could be read
    raise DataError(
        "{file}: {problem}; leave out --resume to start over.", file=str(there[0]), problem=problem.sentence
    )


def read_tokenizers(state: Mapping[str, object], *, count: int) -> tuple[bytes, ...]:
    """The bytes of the vocabularies that a state holds, `count` of them, or a `ClauseError`.

    Whether they are vocabularies is not looked at.
    """
    found = state.get("tokenizers")
    if not isinstance(found, list) or len(found) != count:
        raise ClauseError("its vocabularies are invalid: {found}", found=shown(found))
    return tuple(map(_bytes, found))


def paths(out: Path) -> tuple[Path, Path]:
    """Where the state of the training of `out` lies, and the one before it."""
    folder = folder_beside(out)
    return folder / "state.pt", folder / "state.before.pt"


def folder_beside(out: Path) -> Path:
    """The folder of all that a training needs and a checkpoint does not."""
    return out.with_name(out.name + ".training")


def _read(path: Path) -> dict[str, Any]:
    """A state whose SHA-256 is right and which says what it was started with."""
    try:
        with path.open("rb") as file:
            first = _FIRST_LINE.fullmatch(file.read(_LINE_LENGTH))
            content = file.read() if first else b""
    except (OSError, MemoryError) as error:
        raise ClauseError("cannot be read ({reason})", reason=str(error)[:120]) from None
    if first is None:
        raise ClauseError("is damaged, or comes from another version of this program")
    if hashlib.sha256(content).hexdigest().encode() != first[1]:
        raise ClauseError("is damaged (its SHA-256 does not match)")
    try:
        state = torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")
    except _UNREADABLE:
        state = None
    if not isinstance(state, dict) or "job" not in state:
        raise ClauseError("is damaged, or comes from another version of this program")
    return state


def _check_job(before: object, identity: Mapping[str, str], path: Path) -> None:
    if not isinstance(before, dict) or not all(isinstance(text, str) for pair in before.items() for text in pair):
        raise DataError(
            "{file}: has {found} instead of the settings with which its training was started; leave out --resume "
            "to start over.",
            file=str(path),
            found=shown(before),
        )
    names = (*before, *(name for name in identity if name not in before))
    none = say("none")
    changed = [
        say(
            "{name} was {before} and is now {now}",
            name=_short(name),
            before=_short(before[name]) if name in before else none,
            now=identity.get(name, none),
        )
        for name in names
        if before.get(name) != identity.get(name)
    ]
    if changed:
        shortened = [*changed[:8], *(["..."] if len(changed) > 8 else [])]
        raise DataError(
            "{file} belongs to a training run with different settings: {changes}.",
            file=str(path),
            changes=joined("; ", shortened),
        )


def has_state(out: Path) -> bool:
    """Whether there is a state to go on from."""
    return any(file.exists() for file in paths(out))


@contextlib.contextmanager
def writing(out: Path) -> Iterator[None]:
    """Say in a `DataError` what keeps a training from being written, and what there is to go on from."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
    except RuntimeError as error:
        if "inline_container" not in str(error) and "writing" not in str(error):
            raise
        reason = say("the disk is full, or a file would be too large")  # torch's own writer does not say which
    else:
        return
    if has_state(out):
        raise DataError(
            "{out}: the training cannot be written ({reason}). What was kept before is intact: solve this problem, "
            "then continue with --resume.",
            out=str(out),
            reason=reason,
        )
    raise DataError("{out}: the training cannot be written ({reason}).", out=str(out), reason=reason)


def _short(text: str) -> str:
    """A stored word as a message shows it: one line that a terminal can print, and cut when it is long."""
    return text if len(text) <= 60 and text.isprintable() else shown(text)


def _bytes(found: object) -> bytes:
    if isinstance(found, Tensor) and found.dtype == torch.uint8 and found.dim() == 1:
        with contextlib.suppress(RuntimeError, TypeError):  # a tensor without values of its own
            return found.numpy().tobytes()
    raise ClauseError("its vocabularies are not stored as bytes")
