"""Snapshots of a training as compressed safetensors files: writing, steps and metadata, reading within limits.

A snapshot is what a model was at some step. Those of the checkpoint `reverse` are next to its folder, in
`reverse.snapshots/`: a file for each, named by its step (`1200.safetensors.xz`). It is a safetensors file of the
parameters as bfloat16, compressed by LZMA2, which takes a third off; its metadata says when it was taken and how good
the model was. Everything else (config, tokenizers, card) is the checkpoint's. `reverse@1200` is the name of the
checkpoint as it was at step 1,200.
"""

import io
import json
import lzma
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import BinaryIO

import safetensors.torch
import torch
from torch import Tensor

from transformer.checkpoint.snapshot_names import AT as AT
from transformer.checkpoint.snapshot_names import FILE as FILE
from transformer.checkpoint.snapshot_names import FOLDER as FOLDER
from transformer.checkpoint.snapshot_names import SnapshotInfo as SnapshotInfo
from transformer.checkpoint.snapshot_names import at_step as at_step
from transformer.checkpoint.snapshot_names import folder_of as folder_of
from transformer.checkpoint.snapshot_names import meant as meant
from transformer.checkpoint.snapshot_names import split as split
from transformer.errors import CheckpointError, ClauseError, shown
from transformer.files import strictjson, tensorfile
from transformer.files.atomic_saves import sync_folder, write_whole
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import Sentence

MOST = 200  # snapshots of a checkpoint
MOST_BYTES = 2_000_000_000  # of all snapshots of a checkpoint, before they are compressed
NEAREST = 3  # steps that a message names
_KEY = "snapshot"  # of the metadata
_COUNTS = ("step", "epoch", "tokens")  # of a moment
_CHUNK = 2**16  # bytes of a file that are read at once
_MEMORY = 2**28  # that unpacking may take besides what is unpacked
# Two bytes per value: the position in a value is part of LZMA's context, so it finds that exponents are alike.
_FILTERS = ({"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 3, "lp": 1, "pb": 1},)


def write(checkpoint: Path, state: Mapping[str, Tensor], moment: SnapshotInfo) -> None:
    """Write a snapshot of a checkpoint folder; a file is there whole or not at all. An `OSError` on a full disk."""
    folder = folder_of(checkpoint)
    folder.mkdir(parents=True, exist_ok=True)
    halves = {name: value.detach().to("cpu", torch.bfloat16).contiguous() for name, value in state.items()}
    said = {name: value if value is None or math.isfinite(value) else None for name, value in asdict(moment).items()}
    content = safetensors.torch.save(halves, metadata={_KEY: json.dumps(said)})
    path = folder / f"{moment.step}{FILE}"
    write_whole(path, lzma.compress(content, filters=_FILTERS), path.with_suffix(".partial"))
    sync_folder(folder)


def steps(checkpoint: Path) -> list[int]:
    """The steps of which a checkpoint folder has a snapshot, by the names of the files."""
    try:
        names = os.listdir(folder_of(checkpoint))
    except OSError:
        return []
    there = (split(f"x{AT}{name.removesuffix(FILE)}") for name in names if name.endswith(FILE))
    return sorted(found[1] for found in there if found)[:MOST]


def moments(checkpoint: Path, *, inside: Path | None = None) -> tuple[tuple[SnapshotInfo, ...], tuple[Sentence, ...]]:
    """What the snapshots of a checkpoint folder say of themselves, in order, and a note on each that is left out.

    `inside` is the real path of a folder that no link may leave. Only the headers are unpacked.
    """
    found: list[SnapshotInfo] = []
    odd: list[Sentence] = []
    there = steps(checkpoint)
    if not there:
        return (), ()
    try:
        files = FolderFiles(folder_of(checkpoint), inside=inside)
    except CheckpointError as error:
        return (), (error.sentence,)
    for step in there:
        try:
            found.append(moment_of(files, step))
        except CheckpointError as error:
            odd.append(error.sentence)
    return tuple(found), tuple(odd)


def moment_of(files: FolderFiles, step: int) -> SnapshotInfo:
    """What a snapshot says of itself, by its header; a `CheckpointError` if the file cannot be read."""
    label = files.label(f"{step}{FILE}")
    with files.open(f"{step}{FILE}") as (packed, _):
        read = _unpacking(packed)
        try:
            length = int.from_bytes(read(tensorfile.LENGTH_BYTES), "little")
            header = strictjson.parse(read(min(length, tensorfile.MAX_HEADER)), max_depth=4)
            record = strictjson.parse(header["__metadata__"][_KEY].encode())
        except (lzma.LZMAError, KeyError, TypeError, AttributeError, UnicodeError, ClauseError):
            record = None
    names = {field.name for field in fields(SnapshotInfo)}
    if not isinstance(record, dict) or not record.keys() <= names or record.get("step") != step:
        raise CheckpointError("{label}: is not a snapshot of step {step:,}.", label=label, step=step)
    for name, value in record.items():
        kinds = (int,) if name in _COUNTS else (int, float)
        missing = value is None and name not in (*_COUNTS, "seconds")
        if not missing and (type(value) not in kinds or value < 0):
            raise CheckpointError(
                "{label}: has an invalid {name}: {found}.", label=label, name=name, found=shown(value)
            )
    return SnapshotInfo(**record)


@contextmanager
def opened(checkpoint: Path, step: int, *, most: int, inside: Path | None) -> Iterator[tuple[BinaryIO, int]]:
    """A snapshot's safetensors file with its size, of at most `most` bytes; a CheckpointError if missing or damaged."""
    there = steps(checkpoint)
    name = at_step(checkpoint.name, step)
    if not there:
        raise CheckpointError(
            "{name}: {checkpoint} has no snapshots.", name=shown(name), checkpoint=shown(checkpoint.name)
        )
    if step not in there:
        near = sorted(sorted(there, key=lambda one: abs(one - step))[:NEAREST])
        raise CheckpointError(
            "{name}: there is no snapshot of that step; the nearest are {near}.",
            name=shown(name),
            near=", ".join(f"{AT}{one}" for one in near),
        )
    files = FolderFiles(folder_of(checkpoint), inside=inside)
    with files.open(f"{step}{FILE}") as (packed, _):
        content = _whole(packed, most)
    if content is None:
        raise CheckpointError(
            "{label}: is damaged, or longer than its config allows ({most:,} bytes).",
            label=files.label(f"{step}{FILE}"),
            most=most,
        )
    yield io.BytesIO(content), len(content)


def _whole(packed: BinaryIO, most: int) -> bytes | None:
    """All that is unpacked; None if it is damaged, or longer than `most`."""
    read = _unpacking(packed)
    try:
        content = read(most + 1)
        ends = len(content) <= most and not packed.read(1)
    except lzma.LZMAError:
        return None
    return content if content and ends else None


def _unpacking(packed: BinaryIO) -> Callable[[int], bytes]:
    """Reads the next bytes of what a file unpacks to, fewer only at its end; an `LZMAError` where it is damaged."""
    opened = lzma.LZMADecompressor(memlimit=_MEMORY)

    def read(n: int) -> bytes:
        parts = bytearray()
        while len(parts) < n and not opened.eof:
            chunk = packed.read(_CHUNK) if opened.needs_input else b""
            if opened.needs_input and not chunk:
                raise lzma.LZMAError("cut off")
            parts += opened.decompress(chunk, max_length=n - len(parts))
        if opened.unused_data:
            raise lzma.LZMAError("something follows")
        return bytes(parts)

    return read
