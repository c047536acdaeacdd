"""A folder of this server's own: nobody else may read it, and it ends with the server, unless replicas share it.

What a killed server left is removed by the next one, as nobody holds it.
"""

import os
import shutil
import tempfile
from pathlib import Path

LOCK = "in-use"


class OwnFolder:
    """The folder: `shared`, or one made in `place`, by default the system's for temporary files."""

    def __init__(self, prefix: str, place: Path | None = None, shared: Path | None = None) -> None:
        self.is_shared, self._in_use = shared is not None, -1
        if shared is not None:
            self.root = shared
            return
        place = Path(tempfile.gettempdir()) if place is None else place
        _remove_stale(place, prefix)
        self.root = Path(tempfile.mkdtemp(prefix=prefix, dir=place)).resolve()
        self._in_use = _locked(self.root)

    def close(self) -> None:
        """Remove it with all that is in it, if it is this server's alone; a second time nothing happens."""
        if self.is_shared:
            return
        held, self._in_use = self._in_use, -1
        shutil.rmtree(self.root, ignore_errors=True)
        if held >= 0:
            os.close(held)


def _locked(root: Path) -> int:
    """Hold a file of the folder as long as this process lives, so that others know."""
    import fcntl  # Windows has none, and nothing is handed in or trained there

    descriptor = os.open(root / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _remove_stale(place: Path, prefix: str) -> None:
    """Remove the folders of servers that were killed: nobody holds their files."""
    import fcntl

    for folder in place.glob(prefix + "*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # somebody holds it
            continue
        finally:
            os.close(descriptor)
