"""How much may be handed in, and what reading it may take.

An archive may claim anything, so what it says and what comes out of it are both held against the same numbers.
"""

from dataclasses import dataclass

MEGABYTE = 2**20


@dataclass(frozen=True)
class Limits:
    """The limits of one upload.

    Attributes:
        files: Most files, those of an archive counted one by one.
        unpacked: Most bytes of all files together, once unpacked; also of what is written of them.
        file: Most bytes of one of them.
        ratio: How many times its packed size a large file of an archive may have; weights hardly shrink.
        memory: Bytes that the process may take beyond what it has when it starts.
        seconds: Of work, and of waiting for it.
    """

    files: int = 200
    unpacked: int = 512 * MEGABYTE
    file: int = 256 * MEGABYTE
    ratio: int = 100
    memory: int = 3 * 1024 * MEGABYTE
    seconds: int = 90


OURS = Limits()
SMALL = MEGABYTE  # below this a file may be packed as well as it can be
NAME_BYTES = 200  # of a file; most disks allow 255, and endings are added
