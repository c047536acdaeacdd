"""Snapshots of a training: what a model was at some of its steps.

Those of the checkpoint `reverse` are next to its folder, in `reverse.snapshots/`: a file for each, named by its step
(`1200.safetensors.xz`). It is a safetensors file of the parameters as bfloat16, compressed by LZMA2, which takes a
third off; its metadata says when it was taken and how good the model was. Everything else (config, tokenizers, card)
is the checkpoint's. `reverse@1200` is the name of the checkpoint as it was at step 1,200.
"""

import io
import json
import lzma
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from transformer.checkpoint.save import sync_folder
from transformer.errors import ClauseError, shown
from transformer.files import strictjson, tensorfile
from transformer.files.files import FolderFiles

FOLDER = ".snapshots"  # after the name of the checkpoint
FILE = ".safetensors.xz"  # after the step
AT = "@"  # between the name of a checkpoint and a step
MOST = 200  # snapshots of a checkpoint
MOST_BYTES = 2_000_000_000  # of all snapshots of a checkpoint, before they are compressed
MAX_STEP = 2**53
_KEY = "snapshot"  # of the metadata
# Two bytes a value: with the position in a value as part of its context, LZMA finds that exponents are alike.
_FILTERS = ({"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 3, "lp": 1, "pb": 1},)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """When a snapshot was taken, and how good the model was. Losses in nats a target token; None where not known."""

    step: int  # optimizer steps so far; 0 before the first
    epoch: int = 0  # the epoch that this step is in, from 1; 0 before the first
    tokens: int = 0  # target tokens so far
    seconds: float = 0.0  # of training so far
    loss: float | None = None  # in training, the mean of the last 50 steps
    dev_loss: float | None = None  # on the dev file
    dev_bleu: float | None = None  # 0 to 100
    dev_chrf: float | None = None  # 0 to 100
    dev_exact: float | None = None  # share of outputs that equal their reference
    learning_rate: float | None = None  # of this step


def folder_of(checkpoint: Path) -> Path:
    """The folder of the snapshots of a checkpoint folder."""
    return checkpoint.with_name(checkpoint.name + FOLDER)


def split(name: str) -> tuple[str, int] | None:
    """The checkpoint and the step of a name such as `reverse@1200`; None if it names no step."""
    before, at, step = name.rpartition(AT)
    whole = bool(at and before) and step.isascii() and step.isdigit() and len(step) <= 16
    return (before, int(step)) if whole and str(int(step)) == step and int(step) <= MAX_STEP else None


def write(checkpoint: Path, state: Mapping[str, Tensor], moment: Moment) -> None:
    """Write a snapshot of a checkpoint folder; a file is there whole or not at all. An `OSError` on a full disk."""
    folder = folder_of(checkpoint)
    folder.mkdir(parents=True, exist_ok=True)
    halves = {name: value.detach().to("cpu", torch.bfloat16).contiguous() for name, value in state.items()}
    content = safetensors.torch.save(halves, metadata={_KEY: json.dumps(asdict(moment))})
    path = folder / f"{moment.step}{FILE}"
    partial = path.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            file.write(lzma.compress(content, filters=_FILTERS))
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(folder)


def steps(checkpoint: Path) -> list[int]:
    """The steps of which a checkpoint folder has a snapshot, by the names of the files."""
    try:
        names = os.listdir(folder_of(checkpoint))
    except OSError:
        return []
    there = (split(f"x{AT}{name.removesuffix(FILE)}") for name in names if name.endswith(FILE))
    return sorted(found[1] for found in there if found)[:MOST]


def moment_of(files: FolderFiles, step: int) -> Moment:
    """What a snapshot says of itself; a `CheckpointError` or `ClauseError` if the file cannot be read.

    `files` are those of the folder of snapshots. Only the header is unpacked.
    """
    with files.open(f"{step}{FILE}") as (packed, _), lzma.LZMAFile(packed) as file:
        try:
            length = int.from_bytes(file.read(tensorfile.LENGTH_BYTES), "little")
            header = strictjson.parse(file.read(min(length, tensorfile.MAX_HEADER)), max_depth=4)
            record = strictjson.parse(header["__metadata__"][_KEY].encode())
        except (OSError, EOFError, lzma.LZMAError, KeyError, TypeError, AttributeError, ClauseError):
            record = None
    names = {field.name for field in fields(Moment)}
    if not isinstance(record, dict) or not record.keys() <= names or record.get("step") != step:
        raise ClauseError("is not a snapshot of step {step}", step=step)
    for name, value in record.items():
        missing = value is None and name not in ("step", "epoch", "tokens", "seconds")
        if not missing and type(value) not in (int, float):
            raise ClauseError("has an invalid {name}: {found}", name=name, found=shown(value))
    return Moment(**record)


def unpacked(packed: bytes, *, most: int) -> io.BytesIO:
    """The safetensors file of a snapshot, at most `most` bytes of it; a `ClauseError` if it is damaged or longer."""
    try:
        opened = lzma.LZMADecompressor(memlimit=2**28)
        content = opened.decompress(packed, max_length=most + 1)
    except (lzma.LZMAError, EOFError):
        content = b""
    if not content or len(content) > most or not opened.eof:
        raise ClauseError("is damaged, or longer than its config allows")
    return io.BytesIO(content)
