"""Given maps as one file that numpy alone can write, too.

    np.savez("cat.npz", encoder_weights=weights, encoder_queries=tokens, encoder_keys=tokens)

For each of `encoder`, `decoder` and `cross` that exists: `_weights` [layer, head, query, key], `_queries` and
`_keys`; optionally `_allowed`, bool [query, key], and `_sums_to_one`, bool. Optional for the whole file:
`checkpoint`, `sentence`, `special`. `GivenAttention` and `GivenMaps` explain each.

A file may come from anybody: `npzheaders` checks what it claims, and nothing in it is unpickled.
"""

import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

import numpy as np

from glassformer.extensions.maps.library.npzheaders import ArrayHeader, check_end, headers, read_header
from glassformer.extensions.maps.library.own_maps import KINDS, MOST_TEXT, GivenAttention, GivenMaps, check_text
from transformer.errors import ClauseError, MapsError, shown, within
from transformer.files.files import FolderFiles

SUFFIX: Final = ".npz"
CHUNK: Final = 2**20  # values that are unpacked at a time
_WHAT_NUMPY_RAISES: Final = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, TypeError, SyntaxError, RuntimeError,
    NotImplementedError, MemoryError, OverflowError, IndexError, KeyError,
    tokenize.TokenError,
)  # fmt: skip


def load_maps(path: str | Path) -> GivenMaps:
    """Read a file of maps.

    Args:
        path: Ends in ".npz".

    Raises:
        GlassformerError: There is no such file, or it has no maps that can be shown.
    """
    path = Path(path)
    files = FolderFiles(path.parent)
    with files.open(path.name) as (file, size):
        return read_maps(file, size, label=str(path))


def save_maps(maps: GivenMaps, path: str | Path) -> None:
    """Write a file of maps; an existing file is replaced once the new one is complete.

    Args:
        path: Ends in ".npz".

    Raises:
        MapsError: The name has another ending.
    """
    path = Path(path)
    if path.suffix != SUFFIX:
        raise MapsError(
            "{name}: the name of a file of attention maps must end in {suffix}.", name=str(path), suffix=SUFFIX
        )
    half = path.with_name(f".{path.name}.new")
    try:
        with half.open("wb") as file:
            np.savez_compressed(file, **_arrays(maps))
            file.flush()
            os.fsync(file.fileno())
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)


def _arrays(maps: GivenMaps) -> dict[str, Any]:
    arrays: dict[str, Any] = {"checkpoint": np.array(maps.checkpoint), "sentence": np.array(maps.sentence)}
    arrays["special"] = np.array(maps.special, dtype=str)
    for one in maps.attentions:
        parts = {
            "weights": one.weights,
            "queries": np.array(one.queries),
            "keys": np.array(one.keys),
            "allowed": one.mask,
            "sums_to_one": np.array(one.sums_to_one),
        }
        arrays |= {f"{one.kind}_{part}": value for part, value in parts.items()}
    return arrays


# ---------------------------------------------------------------- reading


def read_maps(file: BinaryIO, size: int, *, label: str) -> GivenMaps:
    """Read the maps of an open file, at its start and seekable; a MapsError if there are none."""
    with _opened(file, size, label) as archive:
        found = headers(archive)
        values = {name: _read(archive, name, header) for name, header in found.items()}
        attentions = tuple(
            GivenAttention(
                kind,
                values[f"{kind}_weights"],
                values[f"{kind}_queries"],
                values[f"{kind}_keys"],
                values.get(f"{kind}_allowed"),
                bool(values.get(f"{kind}_sums_to_one", True)),
            )
            for kind in KINDS
            if f"{kind}_weights" in values
        )
        texts = {name: values[name] for name in ("checkpoint", "sentence", "special") if name in values}
        return GivenMaps(attentions, **texts)


def check_maps(file: BinaryIO, size: int, *, label: str) -> str:
    """The model and sentence of a file's maps, as far as it says, or a MapsError; no weight is read."""
    with _opened(file, size, label) as archive:
        found = headers(archive)
        said = {name: _read(archive, name, found[name]) for name in ("checkpoint", "sentence") if name in found}
        for name, text in said.items():
            check_text(name, text, MOST_TEXT)
        return ": ".join(filter(None, said.values()))


@contextmanager
def _opened(file: BinaryIO, size: int, label: str) -> Iterator[zipfile.ZipFile]:
    """The archive; whatever goes wrong inside is said of this file."""
    try:
        check_end(file, size)
        with zipfile.ZipFile(file) as archive:
            yield archive
    except MapsError as error:
        raise MapsError("{label}: {problem}", label=label, problem=error.sentence) from None
    except _WHAT_NUMPY_RAISES as error:
        raise MapsError(
            "{label}: is damaged, or was not written by numpy ({problem}). Write it again.",
            label=label,
            problem=shown(str(error) or type(error).__name__),
        ) from None


def _read(archive: zipfile.ZipFile, name: str, header: ArrayHeader) -> Any:
    """The values of one array: text as Python's, everything else as an array."""
    with within(name, MapsError):
        with archive.open(f"{name}.npy") as member:
            read_header(member)
            flat = _values(member, math.prod(header.shape), header.dtype)
            if flat is None or member.read(1):
                raise ClauseError("is incomplete, or longer than its header states")
        if header.dtype.kind == "U":
            texts = flat.tolist()
            return texts if header.shape else texts[0]
        if header.dtype.kind == "b" and (flat.view(np.uint8) > 1).any():
            raise ClauseError("contains a bool that is neither true nor false")
        return flat.reshape(header.shape[::-1]).T if header.fortran else flat.reshape(header.shape)


def _values(member: IO[bytes], count: int, dtype: np.dtype[Any]) -> np.ndarray | None:
    """So many values, part by part, as floats of 8 bytes would fill twice the memory; None if there are fewer."""
    found = np.zeros(count, np.float32 if dtype.kind == "f" else dtype)
    for begin in range(0, count if dtype.itemsize else 0, CHUNK):
        n_bytes = min(CHUNK, count - begin) * dtype.itemsize
        content = member.read(n_bytes)
        if len(content) != n_bytes:
            return None
        found[begin : begin + CHUNK] = np.frombuffer(content, dtype)
    return found
