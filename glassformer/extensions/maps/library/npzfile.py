"""Attention maps as `.npz` files: load, save, checks of archive and array headers before reading; `MapsFormat`.

    np.savez("cat.npz", encoder_weights=weights, encoder_queries=tokens, encoder_keys=tokens)

For each of `encoder`, `decoder` and `cross` that exists: `_weights` [layer, head, query, key], `_queries` and
`_keys`; optionally `_allowed`, bool [query, key], and `_sums_to_one` and `_signed`, bool. Optional for the whole file:
`checkpoint`, `sentence`, `special`. `GivenAttention` and `GivenMaps` explain each.

An `.npz` is a ZIP archive of arrays. The file is not trusted, and a small one may unpack to any size. Every size that
the archive and the headers claim is checked before an array is read, and nothing is unpickled.

Source: numpy.lib.format (the arrays' headers); PKWARE's APPNOTE, 4.3.16 (the end of an archive).
"""

import io
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

import numpy as np

from glassformer.extensions.maps.library.given_maps import (
    KINDS,
    MOST_CELLS,
    MOST_LABEL,
    MOST_SPECIAL,
    MOST_TEXT,
    MOST_TOKENS,
    GivenAttention,
    GivenMaps,
    check_cells,
    check_shape,
    check_text,
)
from transformer.checkpoint.listing import Entry, Format
from transformer.errors import ClauseError, GlassformerError, MapsError, shown, within
from transformer.files.atomic_saves import write_whole
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import Sentence, say

MOST_BYTES: Final = 9 * MOST_CELLS  # of a file; weights may have 8 bytes
_MOST_MEMBERS: Final = 5 * len(KINDS) + 3
_MOST_DIRECTORY: Final = 16_384  # bytes of the archive's list of members
_END: Final = struct.Struct("<4s4H2LH")  # mark, disks, members here, members, size, place, length of a comment
_ZIP64: Final = 20, b"PK\x06\x07"


@dataclass(frozen=True)
class _Form:
    """The required shape and type of an array."""

    kind: str  # of its dtype, as numpy has it
    axes: int  # how many
    most_bytes: int  # of one value
    most: int  # values
    what: Sentence  # the same as text


_TOKENS: Final = _Form(
    "U", 1, 4 * MOST_LABEL, MOST_TOKENS, say("a list of labels, stored as strings, not as pickled objects")
)
_ONE_TEXT: Final = _Form("U", 0, 4 * MOST_TEXT, 1, say("one string"))
_PARTS: Final = {
    "weights": _Form("f", 4, 8, MOST_CELLS, say("an array of floats [layer, head, query, key]")),
    "queries": _TOKENS,
    "keys": _TOKENS,
    "allowed": _Form("b", 2, 1, MOST_TOKENS**2, say("an array of bools [query, key]")),
    "sums_to_one": _Form("b", 0, 1, 1, say("one bool")),
    "signed": _Form("b", 0, 1, 1, say("one bool")),
}
_FORMS: Final = {f"{kind}_{part}": form for kind in KINDS for part, form in _PARTS.items()} | {
    "checkpoint": _ONE_TEXT,
    "sentence": _ONE_TEXT,
    "special": replace(_TOKENS, most=MOST_SPECIAL),
}


@dataclass(frozen=True)
class ArrayHeader:
    """What the header of one array says."""

    shape: tuple[int, ...]  # lengths of the axes
    fortran: bool  # the first axis runs fastest
    dtype: np.dtype[Any]  # of floats, text or bools


def check_end(file: BinaryIO, size: int) -> None:
    """Look at the end of the archive, as the list of members that it leads to is read all at once."""
    if not _END.size <= size <= MOST_BYTES:
        raise MapsError(
            "has {size:,} bytes; a file of attention maps has {least} to {most:,} bytes.",
            size=size,
            least=_END.size,
            most=MOST_BYTES,
        )
    tail, (before, mark) = min(size, _END.size + _ZIP64[0]), _ZIP64
    file.seek(size - tail)
    end = file.read(tail)
    kind, _, _, here, members, listed, _, comment = _END.unpack(end[-_END.size :])
    if kind != b"PK\x05\x06" or comment:
        raise MapsError("is not an .npz file written by numpy, or is incomplete.")
    is_large = end[: -_END.size][-before:].startswith(mark)
    if is_large or here != members or not 1 <= members <= _MOST_MEMBERS or listed > _MOST_DIRECTORY:
        raise MapsError(
            "lists {members:,} arrays or more; a file of attention maps has at most {most}.",
            members=members,
            most=_MOST_MEMBERS,
        )


def headers(archive: zipfile.ZipFile) -> dict[str, ArrayHeader]:
    """What every array's header says, checked; an array that is not of maps is refused."""
    found: dict[str, ArrayHeader] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name not in _FORMS or info.filename == name or name in found:
            raise MapsError(
                "the array {name} does not belong in a file of attention maps, or occurs twice; expected only {names}.",
                name=shown(name),
                names=", ".join(_FORMS),
            )
        with within(name, MapsError):
            found[name] = _header(archive, info, name)
    _check_complete(found)
    weights = {name: header for name, header in found.items() if name.endswith("_weights")}
    for name, header in weights.items():
        check_shape(name, header.shape)
    check_cells(sum(math.prod(header.shape) for header in weights.values()))
    return found


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> ArrayHeader:
    if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ClauseError("is encrypted, or compressed in a way that numpy does not use")
    with archive.open(info) as member:
        header = read_header(member)
        _check_form(name, header)
        size = member.tell() + math.prod(header.shape) * header.dtype.itemsize
    if size != info.file_size:
        raise ClauseError(
            "has {found:,} bytes, but the shape {shape} requires {size:,}",
            found=info.file_size,
            shape=shown(header.shape),
            size=size,
        )
    return header


def read_header(member: IO[bytes]) -> ArrayHeader:
    """The header of an array; its values come next."""
    if np.lib.format.read_magic(member) == (1, 0):
        return ArrayHeader(*np.lib.format.read_array_header_1_0(member))
    return ArrayHeader(*np.lib.format.read_array_header_2_0(member))  # of another version it finds no header


def _check_form(name: str, header: ArrayHeader) -> None:
    form, dtype, shape = _FORMS[name], header.dtype, header.shape
    plain = dtype.names is None and dtype.subdtype is None and not dtype.hasobject
    if not plain or dtype.kind != form.kind or dtype.itemsize > form.most_bytes or len(shape) != form.axes:
        raise ClauseError(
            "is {dtype} of shape {shape}; expected {what}", dtype=shown(str(dtype)), shape=shown(shape), what=form.what
        )
    if any(count < 0 for count in shape) or math.prod(shape) > form.most:
        raise ClauseError("has the shape {shape}; the limit is {most:,} values", shape=shown(shape), most=form.most)


def _check_complete(found: Mapping[str, ArrayHeader]) -> None:
    """Check that each attention of the file is complete."""
    begun = {kind: {name for name in found if name.startswith(f"{kind}_")} for kind in KINDS}
    for kind, names in begun.items():
        for part in ("weights", "queries", "keys") if names else ():
            if f"{kind}_{part}" not in names:
                raise MapsError("the array {name} is missing; add it.", name=f"{kind}_{part}")
    if not any(begun.values()):
        raise MapsError(
            "has no attention maps; expected at least one of the arrays {names}.",
            names=", ".join(f"{kind}_weights" for kind in KINDS),
        )


SUFFIX: Final = ".npz"
CHUNK: Final = 2**20  # values that are unpacked at a time
_WHAT_NUMPY_RAISES: Final = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, TypeError, SyntaxError, RuntimeError,
    NotImplementedError, MemoryError, OverflowError, IndexError, KeyError,
    tokenize.TokenError,
)  # fmt: skip


def load_maps(path: str | Path) -> GivenMaps:
    """Read a file of maps, whose name ends in ".npz".

    Raises `GlassformerError`: the file does not exist, or has no maps that can be shown.
    """
    path = Path(path)
    files = FolderFiles(path.parent)
    with files.open(path.name) as (file, size):
        return read_maps(file, size, label=str(path))


def save_maps(maps: GivenMaps, path: str | Path) -> None:
    """Write a file of maps, whose name ends in ".npz"; an existing file is replaced once the new one is complete.

    Raises `MapsError`: the name has another ending.
    """
    path = Path(path)
    if path.suffix != SUFFIX:
        raise MapsError(
            "{name}: the name of a file of attention maps must end in {suffix}.", name=str(path), suffix=SUFFIX
        )
    content = io.BytesIO()
    np.savez_compressed(content, **_arrays(maps))
    write_whole(path, content.getvalue())


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
            **({"signed": np.array(True)} if one.signed else {}),
        }
        arrays |= {f"{one.kind}_{part}": value for part, value in parts.items()}
    return arrays


# ---------------------------------------------------------------- reading


def read_maps(file: BinaryIO, size: int, *, label: str) -> GivenMaps:
    """Read the maps of an open file, at its start and seekable; a MapsError if there are none."""
    with _opened(file, size, label) as archive:
        values = {name: _read(archive, name, header) for name, header in headers(archive).items()}
        attentions = []
        for kind in KINDS:
            parts = {part: values.pop(name) for part in _PARTS if (name := f"{kind}_{part}") in values}
            attentions += [GivenAttention(kind, **parts)] if parts else []
        return GivenMaps(tuple(attentions), **values)


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
    """Open the archive; every error inside is reported with the file's name."""
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
    """Read the values of one array: one text or bool as Python has it, texts as a list, all else as an array."""
    with within(name, MapsError):
        with archive.open(f"{name}.npy") as member:
            read_header(member)
            flat = _values(member, math.prod(header.shape), header.dtype)
            if flat is None or member.read(1):
                raise ClauseError("is incomplete, or longer than its header states")
        if header.dtype.kind == "b" and (flat.view(np.uint8) > 1).any():
            raise ClauseError("contains a bool that is neither true nor false")
        if not header.shape:
            return flat.item()
        if header.dtype.kind == "U":
            return flat.tolist()
        return flat.reshape(header.shape[::-1]).T if header.fortran else flat.reshape(header.shape)


def _values(member: IO[bytes], count: int, dtype: np.dtype[Any]) -> np.ndarray | None:
    """Read n values in parts, because float64 would double the memory; None if there are fewer."""
    found = np.zeros(count, np.float32 if dtype.kind == "f" else dtype)
    for begin in range(0, count if dtype.itemsize else 0, CHUNK):
        n_bytes = min(CHUNK, count - begin) * dtype.itemsize
        content = member.read(n_bytes)
        if len(content) != n_bytes:
            return None
        found[begin : begin + CHUNK] = np.frombuffer(content, dtype)
    return found


HOLDS = "maps"


class MapsFormat(Format):
    """Files `NAME.npz` next to the folders."""

    def lists(self, file: Path, inside: Path) -> bool:
        """Whether a file is called as one of maps is."""
        return file.suffix == SUFFIX and file.name[0] != "." and file.name.isprintable() and not file.is_dir()

    def look(self, place: Path, name: str, root: Path) -> Entry | None:
        """The entry of a file, by its header."""
        if place.suffix != SUFFIX or place.is_dir():
            return None
        try:
            files = FolderFiles(root, inside=root)
            with files.open(place.name) as (content, size):
                title = check_maps(content, size, label=files.label(place.name))
        except GlassformerError as error:
            return Entry(name, place, error.sentence, name, root, holds=HOLDS)
        return Entry(name, place, None, title or name, root, holds=HOLDS)


FORMAT = MapsFormat()
