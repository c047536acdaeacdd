"""How much may be handed in, and what reading it may take.

An archive may claim anything, so what it says and what comes out of it are both held against the same numbers.
"""

from dataclasses import dataclass

MEGABYTE = 2**20


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
SMALL = MEGABYTE  # below this a file may be packed as well as it can be
NAME_BYTES = 200  # of a file; most disks allow 255, and endings are added
