"""The hash that identifies a checkpoint: SHA-256 of its files, sorted by name, each after its name and size.

The largest file is never in memory as a whole: its bytes are added as they are read.
"""

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

from transformer.checkpoint.filling import parts_of


class ContentHash:
    """The hash while the large file is being read; `files` are the small ones."""

    def __init__(self, files: Mapping[str, bytes], *, large: str, size: int) -> None:
        self._whole, self._large = hashlib.sha256(), hashlib.sha256()
        for name in sorted(files):
            if name < large:
                self._add(name, files[name])
        self._whole.update(f"{large} {size}\n".encode())
        self._after = {name: files[name] for name in sorted(files) if name > large}

    def update(self, content: bytes | bytearray) -> None:
        """The next bytes of the large file."""
        self._whole.update(content)
        self._large.update(content)

    def done(self) -> tuple[str, str]:
        """The hashes of all files and of the large one alone, hexadecimal; call it after the large one was read."""
        for name, content in self._after.items():
            self._add(name, content)
        return self._whole.hexdigest(), self._large.hexdigest()

    def _add(self, name: str, content: bytes) -> None:
        self._whole.update(f"{name} {len(content)}\n".encode())
        self._whole.update(content)


def hash_of(files: Mapping[str, bytes]) -> str:
    """The same hash, for files that are all small."""
    first, *_ = sorted(files)
    whole = ContentHash({name: files[name] for name in files if name != first}, large=first, size=len(files[first]))
    whole.update(files[first])
    return whole.done()[0]


def digest_of(tensor: Tensor) -> bytes:
    """SHA-256 of a tensor's values as float32, a few megabytes at a time."""
    digest = hashlib.sha256()
    for part in parts_of(tensor):
        digest.update(part.detach().float().contiguous().view(-1).view(torch.uint8).numpy(force=True).data)
    return digest.digest()
