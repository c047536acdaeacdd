"""Write a safetensors file one tensor at a time, so only one of them has to be in memory.

The place of each tensor follows from the dtypes and shapes alone, so they may come in any order. The file has the
order of the safetensors library: wide dtypes first, so each tensor begins at a multiple of its width, then by name.

Source: the format's description in the safetensors README (github.com/huggingface/safetensors).
"""

import json
import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import torch
from torch import Tensor

from transformer.checkpoint.agreement import Shapes
from transformer.checkpoint.filling import parts_of
from transformer.checkpoint.memory import Halves
from transformer.errors import CheckpointError
from transformer.files.tensorfile import FLOATS, LENGTH_BYTES

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
