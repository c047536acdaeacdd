"""Atomic saving of a checkpoint folder (`CheckpointContents`), and a safetensors writer, tensor by tensor.

The files go to a hidden folder next to the old one (see `transformer.files.atomic_saves`) and are flushed to disk.
Then the two change names in one call, so a kill at any moment leaves a whole checkpoint under its name. If the system
cannot do that, the old folder is moved aside and the new one renamed. If anything fails, the old folder is restored.
Only a checkpoint or an empty folder is replaced, and only a checkpoint's own files are removed.

The place of each tensor follows from the dtypes and shapes alone, so they may come in any order. The file has the
order of the safetensors library: wide dtypes first, so each tensor begins at a multiple of its width, then by name.

Source: the format's description in the safetensors README (github.com/huggingface/safetensors).
"""

import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

import torch
from torch import Tensor

from transformer.checkpoint.consistency import Shapes, parts_of
from transformer.checkpoint.load import CARD, CONFIG, MAX_CONFIG, WEIGHTS, read_config
from transformer.checkpoint.parameter_layout import Halves
from transformer.checkpoint.tokenizer_files import TOKENIZER_NAMES, VOCABULARY, Stored, file_names, stored_tokenizers
from transformer.errors import CheckpointError
from transformer.files import atomic_saves
from transformer.files.atomic_saves import exchange
from transformer.files.atomic_saves import sync_folder as sync_folder
from transformer.files.tensorfile import FLOATS, LENGTH_BYTES
from transformer.files.untrusted_folder import FolderFiles
from transformer.model.config import ModelConfig

ALIGNMENT = 8  # bytes, of the header
_NAMES = {dtype: name for name, dtype in FLOATS.items()}


class Readable(Protocol):
    """Tensors, in memory or in a file."""

    @property
    def shapes(self) -> Shapes:
        """Their names and shapes."""

    @property
    def narrow(self) -> Halves:
        """The tensors for which 16 bits are enough, and their dtype."""

    def read(self) -> Iterable[tuple[str, Tensor]]:
        """Each tensor with its name, one at a time."""


State = Mapping[str, Tensor]
Reader = AbstractContextManager[Readable]


@dataclass(frozen=True)
class Held:
    """Tensors that are in memory, to be written in one dtype."""

    tensors: State

    @property
    def shapes(self) -> Shapes:
        """Names and shapes."""
        return {name: tuple(tensor.shape) for name, tensor in self.tensors.items()}

    @property
    def narrow(self) -> Halves:
        """16 bits are enough for what a training keeps."""
        return dict.fromkeys(self.tensors, torch.float16)

    def read(self) -> Iterable[tuple[str, Tensor]]:
        """Each with its name."""
        return self.tensors.items()


def kinds_of(readable: Readable, dtype: torch.dtype | None) -> dict[str, torch.dtype]:
    """The dtype in which each tensor is written: this one, or the smallest that it needs."""
    narrow = readable.narrow
    return {name: dtype or narrow.get(name, torch.float32) for name in readable.shapes}


def n_bytes(readable: Readable, dtype: torch.dtype | None = None) -> int:
    """The tensors' bytes on the disk."""
    kinds = kinds_of(readable, dtype)
    return sum(math.prod(shape) * kinds[name].itemsize for name, shape in readable.shapes.items())


def write(file: BinaryIO, readable: Readable, dtype: torch.dtype | None = None) -> None:
    """Write a whole file, which is empty: all tensors in one dtype, or each in the smallest that it needs.

    A `CheckpointError` says that a value is too large for its dtype, or that a tensor cannot be read.
    """
    shapes, kinds = readable.shapes, kinds_of(readable, dtype)
    header, begins = _layout(shapes, kinds)
    file.write(header)
    left = set(shapes)
    for name, tensor in readable.read():
        if tuple(tensor.shape) != tuple(shapes[name]):
            raise ValueError(f"{name} is {tuple(tensor.shape)}, announced as {shapes[name]}")
        file.seek(begins[name])
        for part in parts_of(tensor.detach()):
            file.write(_stored(name, part, kinds[name]))
        left.discard(name)
        del tensor, part  # before the next one is read
    if left:
        raise ValueError(f"{min(left)} was announced and never came")


def _layout(shapes: Shapes, kinds: Mapping[str, torch.dtype]) -> tuple[bytes, dict[str, int]]:
    """The header with its length before it, and where each tensor's bytes begin in the file."""
    record: dict[str, object] = {}
    begins: dict[str, int] = {}
    end = 0
    for name in sorted(shapes, key=lambda one: (-kinds[one].itemsize, _NAMES[kinds[one]], one)):
        begins[name], end = end, end + math.prod(shapes[name]) * kinds[name].itemsize
        record[name] = {"dtype": _NAMES[kinds[name]], "shape": list(shapes[name]), "data_offsets": [begins[name], end]}
    text = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    header = len(text).to_bytes(LENGTH_BYTES, "little") + text
    return header, {name: len(header) + begin for name, begin in begins.items()}


def _stored(name: str, part: Tensor, dtype: torch.dtype) -> memoryview:
    """The bytes of some rows of a tensor."""
    stored = part.to("cpu", dtype).contiguous()
    if bool((stored.isinf() & part.cpu().isfinite()).any()):
        raise CheckpointError(
            "{name}: a value is too large for {dtype}; save with dtype=torch.float32.", name=name, dtype=str(dtype)
        )
    return stored.reshape(-1).view(torch.uint8).numpy().data


CURVE = "training.csv"
OWN = frozenset((CONFIG, WEIGHTS, CARD, CURVE, *(name for names in TOKENIZER_NAMES.values() for name in names)))


@dataclass(frozen=True)
class CheckpointContents:
    """The contents of a checkpoint folder."""

    config: ModelConfig  # the features of the model
    # Its parameters by name; or a function that opens them, to read and write them one at a time.
    state: State | Callable[[], Reader]
    # The bytes of its SentencePiece models, source and target or one for both; or another family's files.
    tokenizers: tuple[bytes, ...] | Stored
    card: Mapping[str, object]  # the content of `card.json`


def save(parts: CheckpointContents, folder: Path, *, dtype: torch.dtype | None = None) -> None:
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
        atomic_saves.put_back(folder)
        is_checkpoint(folder)
        if folder.exists():
            atomic_saves.clear(folder, _own_files)
        new = atomic_saves.make(folder)
        try:
            state = parts.state() if callable(parts.state) else nullcontext(Held(parts.state))
            with (new / WEIGHTS).open("wb") as file, state as readable:
                write(file, readable, dtype)
                _flush_file(file)
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
            for copy in (new, atomic_saves.aside(new)):
                if folder.exists() or copy == new:  # otherwise the old one is all there is
                    atomic_saves.remove(copy, folder, _own_files)


def is_checkpoint(folder: Path) -> bool:
    """Whether a place has an undamaged checkpoint; False: empty or missing; a CheckpointError: anything else."""
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


def _card(parts: CheckpointContents, hashes: Mapping[str, str]) -> bytes:
    card = {"parameters": parts.config.count_parameters(), **parts.card, "sha256": hashes}
    return (json.dumps(card, indent=2, ensure_ascii=False) + "\n").encode()


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
    old = atomic_saves.aside(new)
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
