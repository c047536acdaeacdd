"""Safe unpacking of zip archives, and the upload limits: sizes, counts, time, file names.

The whole list of an archive is checked before a byte is unpacked, and each file must match its claimed size. Only one
folder is taken, the highest one with weights; of a folder that programs make for weights, what is around it, too.

Source: APPNOTE.TXT of PKWARE, 4.3 to 4.5; David Fifield, "A better zip bomb" (WOOT 2019), for files that overlap.
"""

import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from glassformer.extensions.importers.library.readers import SUFFIXES
from glassformer.extensions.weight_files.weight_folder import HOLDERS
from transformer.errors import CheckpointError, shown
from transformer.files.kinds import BESIDE
from transformer.i18n import say

MEGABYTE = 2**20
SMALL = MEGABYTE  # below this a file may be packed as well as it can be
NAME_BYTES = 200  # of a file; most disks allow 255, and endings are added
JUNK = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")  # what systems leave in folders and archives


@dataclass(frozen=True)
class UploadLimits:
    """The limits of one upload."""

    files: int = 200  # most files, those of an archive counted one by one
    unpacked: int = 512 * MEGABYTE  # most bytes of all files together, unpacked; also of the result
    file: int = 256 * MEGABYTE  # most bytes of one of them
    ratio: int = 100  # how many times its packed size a large file of an archive may have; weights hardly shrink
    memory: int = 3 * 1024 * MEGABYTE  # bytes that the process may take beyond what it has when it starts
    seconds: int = 90  # of work, and of waiting for it


OURS = UploadLimits()


def check_name(name: str) -> None:
    """Refuse a file's name that has a folder in it, is hidden, cannot be printed or is too long."""
    problem = not name or name in (".", "..") or any(mark in name for mark in "/\\\0") or not name.isprintable()
    if problem or len(name.encode(errors="replace")) > NAME_BYTES or any("\ud800" <= mark <= "\udfff" for mark in name):
        raise CheckpointError(
            "{name}: cannot be used as a file name here; expected 1 to {most} bytes of printable characters "
            "without slashes. Rename it.",
            name=shown(name),
            most=NAME_BYTES,
        )


def check_all_differ(names: Iterable[str]) -> None:
    """Refuse names of which two are one on some system: they differ in case or accents' spelling alone."""
    seen: dict[str, str] = {}
    for name in names:
        key = unicodedata.normalize("NFKC", name).casefold()
        if key in seen:
            raise CheckpointError(
                "{name} and {other} count as the same file name; remove or rename one of them.",
                name=shown(seen[key]),
                other=shown(name),
            )
        seen[key] = name


def check_total(n_files: int, n_bytes: int, limits: UploadLimits = OURS) -> None:
    """Refuse more files, or more bytes of all of them, than one upload may have."""
    if n_files > limits.files:
        raise CheckpointError(
            "{found:,} files were uploaded together; at most {most} are allowed.", found=n_files, most=limits.files
        )
    if n_bytes > limits.unpacked:
        raise CheckpointError(
            "The files take up {found:,} bytes in total; at most {most:,} are allowed.",
            found=n_bytes,
            most=limits.unpacked,
        )


def is_junk(name: str) -> bool:
    """Whether a file is hidden or a by-product of an operating system."""
    return any(part in JUNK or part.startswith(".") for part in name.split("/"))


ARCHIVES = (".zip", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst")
CHUNK = 2**20

_END, _END_BYTES, _MOST_COMMENT = b"PK\x05\x06", 22, 2**16
_MOST_LIST = 2**22  # bytes of the list of files
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, OverflowError, struct.error)


@dataclass(frozen=True)
class Unpacked:
    """What came out of an archive."""

    files: dict[str, Path]  # name -> where it was written
    left_out: tuple[str, ...]  # names of those in other folders


def unpack(file: BinaryIO, into: Path, *, label: str, limits: UploadLimits = OURS) -> Unpacked:
    """Unpack the files of one folder of an archive into an empty one, where they get numbers for names."""
    try:
        return _unpacked(file, into, limits)
    except CheckpointError as error:
        problem: CheckpointError = error
    except _BROKEN as error:
        problem = CheckpointError(
            "is a damaged zip archive (reading it stopped with {found}); pack or copy it again.",
            found=type(error).__name__,
        )
    except RuntimeError:  # what zipfile says of a password
        problem = _refused_entry("", "encrypted")
    raise CheckpointError("{label}: {problem}", label=label, problem=problem.sentence) from None


def _unpacked(file: BinaryIO, into: Path, limits: UploadLimits) -> Unpacked:
    """The same; errors do not name the archive."""
    _check_end(file, limits)
    with zipfile.ZipFile(file) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        _check(archive.infolist(), limits)
        wanted = [entry for entry in entries if not is_junk(entry.filename)]
        folder = _folder_of([entry.filename for entry in wanted])
        chosen = [entry for entry in wanted if _parent(entry.filename) == folder]
        if _base(folder) in HOLDERS:  # made for weights: the settings and the tokenizer are around it
            names = {_base(entry.filename) for entry in chosen}
            around = [entry for entry in wanted if entry not in chosen and _parent(entry.filename) == _parent(folder)]
            chosen += [entry for entry in around if _base(entry.filename) not in names]
        found = {_base(entry.filename): into / str(number) for number, entry in enumerate(chosen)}
        for entry in chosen:
            _write(archive, entry, found[_base(entry.filename)])
        return Unpacked(found, tuple(entry.filename for entry in wanted if entry not in chosen))


def _check_end(file: BinaryIO, limits: UploadLimits) -> None:
    """Check the end record alone: the list before it is only read if it is short."""
    size = file.seek(0, 2)
    file.seek(max(size - _END_BYTES - _MOST_COMMENT, 0))
    tail = file.read()
    place = tail.rfind(_END)
    if place < 0 or len(tail) - place < _END_BYTES:
        raise CheckpointError("is not a zip archive, or is cut off; pack or copy it again.")
    n_entries, n_bytes = struct.unpack("<HI", tail[place + 10 : place + 16])
    if n_entries > limits.files or n_bytes > _MOST_LIST:
        raise _too_many(n_entries, limits)


def _check(entries: Sequence[zipfile.ZipInfo], limits: UploadLimits) -> None:
    if len(entries) > limits.files:
        raise _too_many(len(entries), limits)
    for entry in entries:
        _check_path(entry)
        _check_kind(entry)
        _check_size(entry, limits)
    check_all_differ(entry.filename for entry in entries)
    total = sum(entry.file_size for entry in entries)
    if total > limits.unpacked:
        raise CheckpointError(
            "would be {found:,} bytes when unpacked; the limit is {most:,}.", found=total, most=limits.unpacked
        )


def _too_many(found: int, limits: UploadLimits) -> CheckpointError:
    return CheckpointError(  # "or more": an archive of more than 65,535 says its number elsewhere
        "contains {found:,} or more files; the limit is {most}. Pack only the model's files.",
        found=found,
        most=limits.files,
    )


def _check_path(entry: zipfile.ZipInfo) -> None:
    name = entry.orig_filename.removesuffix("/")
    parts = name.split("/")
    leads_out = any(part in ("", ".", "..") for part in parts) or ":" in parts[0]
    if leads_out or "\\" in name:
        raise _refused_entry(name, "path")
    for part in parts:
        check_name(part)


def _check_kind(entry: zipfile.ZipInfo) -> None:
    mode = stat.S_IFMT(entry.external_attr >> 16)
    if mode not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise _refused_entry(entry.filename, "link" if mode == stat.S_IFLNK else "special")
    if entry.flag_bits & _ENCRYPTED:
        raise _refused_entry(entry.filename, "encrypted")
    if entry.compress_type not in _METHODS:
        raise _refused_entry(entry.filename, "method")
    if entry.filename.lower().endswith(ARCHIVES):
        raise _refused_entry(entry.filename, "archive")


def _check_size(entry: zipfile.ZipInfo, limits: UploadLimits) -> None:
    if entry.file_size > limits.file:
        raise CheckpointError(
            "{name} would be {found:,} bytes when unpacked; the limit for one file is {most:,}.",
            name=shown(entry.filename),
            found=entry.file_size,
            most=limits.file,
        )
    if entry.file_size > max(SMALL, limits.ratio * entry.compress_size):
        raise CheckpointError(
            "{name} would grow from {packed:,} bytes to {found:,} when unpacked, more than {ratio} times its size; "
            "no model file does that.",
            name=shown(entry.filename),
            found=entry.file_size,
            packed=entry.compress_size,
            ratio=limits.ratio,
        )


def _refused_entry(name: str, why: str) -> CheckpointError:
    problems = {
        "path": say("points outside the archive or is not a plain path; pack the folder again"),
        "link": say("is a link; pack the file itself"),
        "special": say("is not a regular file; remove it"),
        "encrypted": say("is encrypted; pack it without a password"),
        "method": say("is compressed with an unsupported method; use the usual one (deflate)"),
        "archive": say("is an archive inside the archive; unpack it first"),
    }
    return CheckpointError("{name} {problem}.", name=shown(name), problem=problems[why])


def _folder_of(names: Sequence[str]) -> str:
    """The highest folder with weights; several at the same level are refused."""
    endings = {name: PurePosixPath(name).suffix.lower() for name in names}
    holding = {_parent(name) for name in names if endings[name] in SUFFIXES}
    holding = holding or {_parent(name) for name in names if endings[name] not in BESIDE}  # weights of any name
    folders = sorted(holding or {_parent(name) for name in names}, key=lambda folder: (_depth(folder), folder))
    if not folders:
        raise CheckpointError("contains no files.")
    beside = [folder for folder in folders if _depth(folder) == _depth(folders[0])]
    if len(beside) > 1:
        raise CheckpointError(
            "contains several models, in {folders}; pack only one of them.", folders=", ".join(map(shown, beside[:5]))
        )
    return folders[0]


def _write(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> None:
    written = 0
    with archive.open(entry) as packed, path.open("xb") as file:
        while part := packed.read(CHUNK):
            written += len(part)
            if written > entry.file_size:
                break
            file.write(part)
    if written != entry.file_size:
        raise CheckpointError(
            "the size of {name} differs from the size listed in the archive; pack the archive again.",
            name=shown(entry.filename),
        )


def _parent(name: str) -> str:
    return name.rpartition("/")[0]


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _depth(folder: str) -> int:
    return len(folder.split("/")) if folder else 0
