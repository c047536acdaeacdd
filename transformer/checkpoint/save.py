"""Write a checkpoint folder: all of it or nothing.

The files go to a hidden folder next to the old one (see `transformer.files.hidden`) and are flushed to disk. Then the
two change names in one call, so a kill at any moment leaves a whole checkpoint under its name. If the system cannot
do that, the old folder is moved aside and the new one renamed. Only then are the old files removed. If anything
fails, the old folder is restored.

Only a checkpoint or an empty folder is replaced, and only a checkpoint's own files are removed: other files stay in
the folder.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch

from transformer.checkpoint import tensorwriter
from transformer.checkpoint.exchange import exchange
from transformer.checkpoint.exchange import sync_folder as sync_folder
from transformer.checkpoint.load import CARD, CONFIG, MAX_CONFIG, WEIGHTS, read_config
from transformer.checkpoint.tensorwriter import Held, Reader, State
from transformer.checkpoint.tokenizer_files import TOKENIZER_NAMES, VOCABULARY, Stored, file_names, stored_tokenizers
from transformer.errors import CheckpointError
from transformer.files import hidden
from transformer.files.files import FolderFiles
from transformer.model.config import ModelConfig

CURVE = "training.csv"
OWN = frozenset((CONFIG, WEIGHTS, CARD, CURVE, *(name for names in TOKENIZER_NAMES.values() for name in names)))


@dataclass(frozen=True)
class Parts:
    """The contents of a checkpoint folder."""

    config: ModelConfig  # the features of the model
    # Its parameters by name; or a function that opens them, to read and write them one at a time.
    state: State | Callable[[], Reader]
    # The bytes of its SentencePiece models, source and target or one for both; or another family's files.
    tokenizers: tuple[bytes, ...] | Stored
    card: Mapping[str, object]  # the content of `card.json`


def save(parts: Parts, folder: Path, *, dtype: torch.dtype | None = None) -> None:
    """Write a checkpoint folder; an existing `training.csv` is kept, and so are files of others in the folder.

    An existing checkpoint is replaced; if `folder` is a link, its target is. Without `dtype`, parameters in memory
    are written as float16, others in the smallest dtype that each needs.

    A `CheckpointError` says that a parameter is too large for `dtype` or cannot be read, or that something else is in
    the place; an `OSError` that the disk is full or the place cannot be written: the old folder is then unchanged.
    """
    files = {CONFIG: parts.config.to_json().encode(), **stored_tokenizers(parts.tokenizers, parts.config)}
    folder = Path(os.path.realpath(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.parent):
        hidden.put_back(folder)
        is_checkpoint(folder)
        if folder.exists():
            hidden.clear(folder, _own_files)
        new = hidden.make(folder)
        try:
            _write_weights(new / WEIGHTS, parts.state, dtype)
            hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
            files[CARD] = _card(parts, {**hashes, WEIGHTS: file_sha256(new / WEIGHTS)})
            if (folder / CURVE).exists():
                files[CURVE] = (folder / CURVE).read_bytes()
            for name, content in files.items():
                _write(new / name, content)
            new.chmod(0o755)  # it was made private
            sync_folder(new)
            _take_place(new, folder)
        finally:
            for copy in (new, hidden.aside(new)):
                if folder.exists() or copy == new:  # otherwise the old one is all there is
                    hidden.remove(copy, folder, _own_files)


def is_checkpoint(folder: Path) -> bool:
    """Whether a place that may be written to has a checkpoint already, and an undamaged one.

    False if it is empty or missing; a `CheckpointError` if it is a file, or a folder of something else.
    """
    if not os.path.lexists(folder):
        return False
    files = FolderFiles(folder)
    try:
        if not any(folder.iterdir()):
            return False
        read_config(files.read(CONFIG, limit=MAX_CONFIG), label=files.label(CONFIG))
        if files.has(WEIGHTS):
            return True
    except (CheckpointError, OSError):
        pass  # it is said below what this means
    raise CheckpointError(
        "{folder}: is neither empty nor a checkpoint, so it will not be overwritten; choose another folder.",
        folder=str(folder),
    )


def _own_files(folder: Path) -> frozenset[str]:
    """The files that a checkpoint consists of; names of other families' tokenizers only where there is one."""
    return OWN | file_names() if (folder / VOCABULARY).exists() else OWN


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _card(parts: Parts, hashes: Mapping[str, str]) -> bytes:
    card = {"parameters": parts.config.count_parameters(), **parts.card, "sha256": hashes}
    return (json.dumps(card, indent=2, ensure_ascii=False) + "\n").encode()


def _write_weights(path: Path, state: State | Callable[[], Reader], dtype: torch.dtype | None) -> None:
    with path.open("wb") as file, state() if callable(state) else nullcontext(Held(state)) as readable:
        tensorwriter.write(file, readable, dtype)
        _flush_file(file)


def _flush_file(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        _flush_file(file)


def _take_place(new: Path, folder: Path) -> None:
    """Put `new` in the place of `folder`; the old folder gets the name of `new`, or another hidden one."""
    if not os.path.lexists(folder):
        os.rename(new, folder)
        _flush(new, folder, undo=lambda: os.rename(folder, new))
    elif exchange(new, folder):
        _flush(new, folder, undo=lambda: exchange(new, folder))
    else:
        _swap(new, folder)


def _flush(new: Path, folder: Path, *, undo: Callable[[], object]) -> None:
    try:
        sync_folder(folder.parent)
    except BaseException:
        undo()
        raise


def _swap(new: Path, folder: Path) -> None:
    """Two renames, where the system has no exchange; the old folder comes back if something fails."""
    old = hidden.aside(new)
    try:
        os.rename(folder, old)
        os.rename(new, folder)
        sync_folder(folder.parent)
    except BaseException:
        if not new.exists():
            os.rename(folder, new)
        if old.exists():
            os.rename(old, folder)
        raise


@contextmanager
def _alone(parent: Path) -> Iterator[None]:
    """One save at a time in a folder of checkpoints: what another one is writing is nothing left over."""
    if sys.platform == "win32":
        yield  # a folder cannot be locked there
        return
    import fcntl

    descriptor = os.open(parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)  # which unlocks it
