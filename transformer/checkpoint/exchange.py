"""Names that change at once: two folders exchanged in one system call, and a file written whole or not at all.

An exchange leaves no moment in which a name leads nowhere. Linux has `renameat2` with RENAME_EXCHANGE (man 2 rename),
macOS `renamex_np` with RENAME_SWAP. Python offers neither, so they are called through ctypes. Not every file system
can do it, and Windows cannot; callers need another way.
"""

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # Linux: <fcntl.h>, <linux/fs.h>
_RENAME_SWAP = 2  # macOS: <sys/stdio.h>

# The system or the file system cannot do it; EPERM is how some sandboxes answer calls that they do not know.
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP}


def exchange(a: Path, b: Path) -> bool:
    """Let two existing folders change names; False if the system cannot do it there, an `OSError` if it failed."""
    call = _call()
    if call is None:
        return False
    if call(os.fsencode(a), os.fsencode(b)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), str(a), None, str(b))


def sync_folder(folder: Path) -> None:
    """Write a folder's names to the disk, or an `OSError`: renamed files stay renamed when the power fails."""
    if os.name == "nt":
        return  # Windows cannot open a folder
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes, partial: Path) -> None:
    """Write a file that is there whole or not at all: as `partial` first, and on the disk before it gets its name."""
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _call() -> Callable[[bytes, bytes], int] | None:
    """The function of the C library for two paths, None if there is none."""
    if sys.platform not in ("linux", "darwin"):
        return None
    name = "renameat2" if sys.platform == "linux" else "renamex_np"
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        return None  # glibc before 2.28
    function.restype = ctypes.c_int
    if sys.platform == "linux":
        function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
        return lambda a, b: int(function(_AT_FDCWD, a, _AT_FDCWD, b, _RENAME_EXCHANGE))
    function.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint)
    return lambda a, b: int(function(a, b, _RENAME_SWAP))
