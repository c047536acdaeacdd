"""A file of arrays that numpy or Marian wrote, as tensors that are read where they lie.

An `.npz` is a zip archive with a `.npy` file for each array. Nothing of it is unpacked or unpickled: an array that is
compressed, that holds objects, or that lies in another order is refused, and all that the archive and the headers
claim is compared with the file's own size first.

Source: numpy.lib.format; PKWARE's APPNOTE, 4.3.7 (the header before each file).
"""

import math
import struct
import tokenize
import zipfile
from typing import BinaryIO

import numpy as np

from transformer.errors import CheckpointError, ClauseError, shown
from transformer.files.tensorfile import Header, TensorInfo
from transformer.i18n import say

SUFFIX = ".npz"
SPECIAL = "special:"  # Marian's: such an array is a text
MAX_TEXT = 1_000_000
MAX_ARRAYS = 20_000
MAX_AXES = 8
DTYPES = {"f2": "F16", "f4": "F32", "f8": "F64", "i1": "I8", "u1": "U8", "i2": "I16", "i4": "I32", "i8": "I64"}
_BEFORE = struct.Struct("<26x2H")  # what stands before a file: at its end, the lengths of its name and of the rest
_BROKEN = (
    zipfile.BadZipFile, struct.error, EOFError, OSError, ValueError, TypeError, SyntaxError, KeyError, IndexError,
    NotImplementedError, RuntimeError, OverflowError, MemoryError, RecursionError, tokenize.TokenError,
)  # fmt: skip


def read_arrays(file: BinaryIO, size: int, *, label: str) -> tuple[Header, dict[str, str]]:
    """Where each array of a file lies, and those that are texts; refuses what cannot be read where it lies."""
    try:
        with zipfile.ZipFile(file) as archive:
            records = archive.infolist()
            if len(records) > MAX_ARRAYS:
                raise CheckpointError(
                    "{label}: lists {n:,} arrays; the limit is {most:,}.",
                    label=label,
                    n=len(records),
                    most=MAX_ARRAYS,
                )
            found = [(record.filename.removesuffix(".npy"), _info(archive, file, size, record)) for record in records]
            tensors = dict(found)
            if len(tensors) != len(found):
                raise ClauseError("it has two arrays with the same name")
            texts = _texts(file, tensors)
            return Header(tensors, 0), texts
    except ClauseError as error:
        problem = error.sentence
    except CheckpointError:
        raise
    except _BROKEN as error:
        problem = say("it is damaged or cut off ({problem})", problem=shown(type(error).__name__))
    raise CheckpointError("{label}: {problem}; save or copy it again.", label=label, problem=problem)


def _info(archive: zipfile.ZipFile, file: BinaryIO, size: int, record: zipfile.ZipInfo) -> TensorInfo:
    """Where the values of an array lie in the file."""
    name = shown(record.filename)
    if record.compress_type != zipfile.ZIP_STORED or record.flag_bits & 1:
        raise ClauseError(
            "its array {name} is compressed, but only uncompressed arrays can be read, as numpy's savez writes them",
            name=name,
        )
    with archive.open(record) as member:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(member)
        header = member.tell()
    odd = dtype.hasobject or dtype.byteorder == ">" or dtype.names
    kind = None if odd else DTYPES.get(f"{dtype.kind}{dtype.itemsize}")
    if kind is None:
        found = shown(str(dtype))
        raise ClauseError(
            "its array {name} has the type {dtype}; only plain numbers can be read", name=name, dtype=found
        )
    if len(shape) > MAX_AXES or any(type(n) is not int or n < 0 for n in shape):
        raise ClauseError("its array {name} has the impossible shape {shape}", name=name, shape=shown(shape))
    if fortran and len(shape) > 1:
        raise ClauseError(
            "its array {name} is stored column by column; only arrays stored row by row can be read", name=name
        )
    length = math.prod(shape) * dtype.itemsize
    file.seek(record.header_offset)
    before = _BEFORE.unpack(file.read(_BEFORE.size))
    begin = record.header_offset + _BEFORE.size + sum(before) + header
    if header + length != record.file_size or record.compress_size != record.file_size or begin + length > size:
        raise ClauseError("its array {name} claims to have a different number of bytes than it has", name=name)
    return TensorInfo(kind, tuple(shape), begin, begin + length)


def _texts(file: BinaryIO, tensors: dict[str, TensorInfo]) -> dict[str, str]:
    """The arrays that are texts, which are taken out of the others."""
    texts = {}
    for name in [name for name in tensors if name.startswith(SPECIAL)]:
        info = tensors.pop(name)
        if info.dtype not in ("I8", "U8") or info.end - info.begin > MAX_TEXT:
            raise ClauseError("its array {name} must be a text of at most {most:,} bytes", name=name, most=MAX_TEXT)
        file.seek(info.begin)
        texts[name] = file.read(info.end - info.begin).rstrip(b"\0").decode("utf-8")
    return texts
