"""Reader of untrusted safetensors files: header checked for dtypes, shapes and offsets; tensors read in chunks.

Layout: 8 bytes with the header's length (little-endian), the header, the tensors' bytes. The header is JSON: for each
tensor its dtype, its shape, and where its bytes begin and end; together they fill the rest of the file exactly, with no
overlap and no gap. It is read here, not by the safetensors library, so a page can say what is wrong with which tensor.

Source: the format's description in the safetensors README (github.com/huggingface/safetensors).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import torch
from torch import Tensor

from transformer.errors import CheckpointError, ClauseError, shown, within
from transformer.files import strictjson

LENGTH_BYTES = 8
MAX_HEADER = 4_000_000  # the largest model that ModelConfig allows needs a tenth of it
MAX_ELEMENTS = 2**62
CHUNK = 2**21  # values that `read_into` reads at once

# Bits of one element of each dtype that the format knows.
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip

FLOATS = {"F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64}
NARROW = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class TensorInfo:
    """What the header says of one tensor."""

    dtype: str  # the format's name of the dtype, such as "F16"
    shape: tuple[int, ...]  # lengths of the axes
    begin: int  # where its bytes are, counted from the end of the header
    end: int


@dataclass(frozen=True)
class Header:
    """The header of a file."""

    tensors: Mapping[str, TensorInfo]  # by name, in the order of their bytes
    start: int  # where the header ends, in bytes from the start of the file
    metadata: Mapping[str, str] = field(default_factory=dict)  # free text, by names of its own

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the tensors, by name."""
        return {name: info.shape for name, info in self.tensors.items()}


def read_header(file: BinaryIO, size: int, *, label: str, most: int | None = None) -> Header:
    """Read and check the header of a file that is open at its start; no more is read.

    A file with more than twice as many tensors as `most`, those the caller can use, is refused at once. A
    `CheckpointError` says that it is too short, too long or cut off, or its header is not valid.
    """
    with within(label):
        length = _header_length(file.read(LENGTH_BYTES), size)
        content = file.read(length)
        _check_number(content.count(b'"dtype"'), most)  # before the many are parsed
        try:
            record = strictjson.parse(content, max_depth=4)
        except ClauseError as error:
            raise ClauseError("its header cannot be read: {problem}", problem=error.sentence) from None
        if not isinstance(record, dict):
            raise ClauseError("its header is not a JSON object")
        said = record.pop("__metadata__", None)
        metadata = {key: text for key, text in said.items() if isinstance(text, str)} if isinstance(said, dict) else {}
        _check_number(len(record), most)  # a name can be written in other ways
        infos = [(name, _info(name, value)) for name, value in record.items()]
        infos.sort(key=lambda item: (item[1].begin, item[1].end))
        _check_layout(infos, size - LENGTH_BYTES - length)
    return Header(dict(infos), LENGTH_BYTES + length, metadata)


def read_into(
    file: BinaryIO,
    header: Header,
    name: str,
    out: Tensor,
    *,
    label: str,
    seen: Callable[[bytearray], object] | None = None,
) -> Tensor:
    """One tensor, read and converted a few megabytes at a time, so it is never in memory twice; returns `out`.

    It is read, not mapped: cutting off a mapped file would end the whole process. `out` has the tensor's shape, any
    floating-point dtype and any layout. `seen` gets all of the tensor's bytes in order. A `CheckpointError` says that
    its dtype is not in `FLOATS`, or that the file has become shorter.
    """
    info = header.tensors[name]
    if info.dtype not in FLOATS:
        raise CheckpointError(
            "{label}: tensor {tensor} has dtype {dtype}; weights must be {dtypes}.",
            label=label,
            tensor=shown(name),
            dtype=info.dtype,
            dtypes=", ".join(FLOATS),
        )
    if tuple(out.shape) != info.shape:
        raise ValueError(f"{name} is {info.shape}, out is {tuple(out.shape)}")
    rows = out.unsqueeze(0) if out.dim() == 0 else out
    row = max(math.prod(rows.shape[1:]), 1)
    file.seek(header.start + info.begin)
    for begin in range(0, len(rows) if info.end > info.begin else 0, max(CHUNK // row, 1)):
        part = rows[begin : begin + max(CHUNK // row, 1)]
        content = bytearray(part.numel() * _BITS[info.dtype] // 8)
        if file.readinto(content) != len(content):  # type: ignore[attr-defined]  # every file on disk has it
            raise CheckpointError("{label}: changed while it was being read; try again.", label=label)
        if seen is not None:
            seen(content)
        part.copy_(torch.frombuffer(content, dtype=FLOATS[info.dtype]).view(part.shape))
    return out


def _header_length(start: bytes, size: int) -> int:
    if size < LENGTH_BYTES or len(start) < LENGTH_BYTES:
        raise ClauseError(
            "is too short for a safetensors file ({n} byte)", "is too short for a safetensors file ({n} bytes)", size
        )
    if start.startswith(b"version "):
        raise ClauseError("is a Git LFS pointer, not the file itself; fetch it with `git lfs pull`")
    length = int.from_bytes(start, "little")
    if length > MAX_HEADER:
        raise ClauseError(
            "is not a safetensors file, or is damaged: its first bytes give the header a length of {length:,} bytes; "
            "the limit is {most:,}",
            length=length,
            most=MAX_HEADER,
        )
    if (needed := length + LENGTH_BYTES) > size:
        raise ClauseError(
            "is cut off: its header needs {needed:,} bytes, but the file has {size:,}", needed=needed, size=size
        )
    return length


def _check_number(n: int, most: int | None) -> None:
    if most is not None and n > 2 * most:
        raise ClauseError("has {n:,} tensors, but config.json requires only {most:,}", n=n, most=most)


def _info(name: str, value: Any) -> TensorInfo:
    tensor = shown(name)
    if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "data_offsets"}:
        raise ClauseError(
            "in the header, tensor {tensor} must have the keys dtype, shape and data_offsets and no others",
            tensor=tensor,
        )
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _BITS:
        raise _impossible(tensor, "dtype", dtype)
    if not _is_counts(shape) or math.prod(shape) > MAX_ELEMENTS:
        raise _impossible(tensor, "shape", shape)
    if not _is_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise _impossible(tensor, "data_offsets", offsets)
    needed, found = math.prod(shape) * _BITS[dtype], (offsets[1] - offsets[0]) * 8
    if needed != found:
        raise ClauseError(
            "tensor {tensor} of shape {shape} and dtype {dtype} needs {needed:,} bytes, but its data_offsets cover "
            "{given:,}",
            tensor=tensor,
            shape=shown(shape),
            dtype=dtype,
            needed=needed // 8,
            given=found // 8,
        )
    return TensorInfo(dtype, tuple(shape), *offsets)


def _impossible(tensor: str, key: str, found: object) -> ClauseError:
    return ClauseError("tensor {tensor} has the impossible {key} {found}", tensor=tensor, key=key, found=shown(found))


def _is_counts(value: Any) -> bool:
    """Whether a value is a short list of whole numbers from 0."""
    return isinstance(value, list) and len(value) <= 8 and all(type(n) is int and 0 <= n <= MAX_ELEMENTS for n in value)


def _check_layout(infos: list[tuple[str, TensorInfo]], size: int) -> None:
    """The tensors' bytes follow one another and end with the file."""
    end = 0
    for name, info in infos:
        if info.begin != end:
            raise ClauseError(
                "tensor {tensor} begins at byte {begin:,} instead of byte {end:,}, where the one before it ends",
                tensor=shown(name),
                begin=info.begin,
                end=end,
            )
        end = info.end
    if size < end:
        raise ClauseError(
            "is cut off: its tensors need {end:,} bytes, but only {size:,} bytes of the file are left for them",
            end=end,
            size=size,
        )
    if size > end:
        raise ClauseError(
            "is {n:,} byte too long: its tensors end before the file does",
            "is {n:,} bytes too long: its tensors end before the file does",
            size - end,
        )
