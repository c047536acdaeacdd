"""How much may be handed in, what reading it may take, and which names files may have.

An archive may claim anything, so what it says and what comes out of it are both held against the same numbers. A name
is data: it becomes the name of a file in one folder of ours and nothing else, so it has no folders in it, no hidden
beginning, and nothing that another system would read as the same name.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from transformer.errors import CheckpointError, shown

MEGABYTE = 2**20
SMALL = MEGABYTE  # below this a file may be packed as well as it can be
NAME_BYTES = 200  # of a file; most disks allow 255, and endings are added
JUNK = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")  # what systems leave in folders and archives


@dataclass(frozen=True)
class Limits:
    """The limits of one upload."""

    files: int = 200  # most files, those of an archive counted one by one
    unpacked: int = 512 * MEGABYTE  # most bytes of all files together, once unpacked; also of what is written of them
    file: int = 256 * MEGABYTE  # most bytes of one of them
    ratio: int = 100  # how many times its packed size a large file of an archive may have; weights hardly shrink
    memory: int = 3 * 1024 * MEGABYTE  # bytes that the process may take beyond what it has when it starts
    seconds: int = 90  # of work, and of waiting for it


OURS = Limits()


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


def is_junk(name: str) -> bool:
    """Whether a file is what a system leaves behind, or hidden: nobody means to hand it in."""
    return any(part in JUNK or part.startswith(".") for part in name.split("/"))
