"""Make a model and fill it with its values, one tensor at a time, with the hash that identifies a checkpoint.

So a model is in memory only once while it is loaded, plus a few megabytes of a file, or one tensor that has to be
moved. A model that does not fit into free memory is refused before anything is read. If its file has 16 bits, it may
stay in 16 bits, which takes half of the memory and more time.

Knows nothing of files.

The largest file is never in memory as a whole: its bytes are added as they are read.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from transformer.checkpoint import room
from transformer.checkpoint.agreement import Shapes, expected_shapes, first
from transformer.checkpoint.memory import Halves, on, ready, vacant
from transformer.checkpoint.progress import Progress, silent
from transformer.checkpoint.room import CPU
from transformer.errors import shown
from transformer.i18n import Sentence, say
from transformer.model.config import ModelConfig

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer


Places = Mapping[str, Tensor]

BESIDE = 1.05  # of the memory for the values: what else lies in it while they are read
LOOKED_AT = 2**20  # values that are looked at once; to look takes as much memory again


class Values(Protocol):
    """The values of a model, in memory or in a file."""

    @property
    def shapes(self) -> Shapes:
        """The tensors' names and shapes, already checked against the config."""

    @property
    def narrow(self) -> Halves:
        """The tensors that are stored in 16 bits, and their dtype."""

    def write(self, places: Places) -> Iterator[str]:
        """Write each tensor to its place, and yield its name when that is done."""


@dataclass(frozen=True)
class Filled:
    """A model with its values."""

    model: Transformer  # the model, frozen, in evaluation mode
    warnings: tuple[Sentence, ...]  # sentences about what is odd with it
    narrow: float  # share of the values that are stored in 16 bits


def fill(
    config: ModelConfig, values: Values, *, label: str, progress: Progress = silent, device: torch.device = CPU
) -> Filled:
    """A model with these values, of exactly the tensors that the config calls for; they are read, then moved.

    A `CheckpointError` says that the model does not fit into memory, or that the file of the values changed.
    """
    halves = _halves(config, values.narrow, label=label, device=device)
    model, places = vacant(config, halves=halves)
    odd: dict[str, int] = {}
    done, whole = 0, 4 * sum(place.numel() for place in places.values())
    progress(done, whole)
    with torch.no_grad():
        for name in values.write(places):
            odd[name] = sum(map(_n_odd, parts_of(places[name])))
            done += 4 * places[name].numel()
            progress(done, whole)
    odd = {name: count for name, count in odd.items() if count}
    if device != CPU:
        model.load_state_dict(on(device, places), assign=True)
    narrow = 4 * sum(places[name].numel() for name in values.narrow if name in places)
    warnings = (*_odd_values(odd, values.shapes), *_in_16_bits(halves, whole))
    return Filled(ready(model), warnings, narrow / max(1, whole))


def parts_of(tensor: Tensor) -> Sequence[Tensor]:
    """A tensor in parts of a few megabytes, by rows."""
    if not tensor.dim():
        return (tensor,)
    return tensor.split(max(LOOKED_AT // max(math.prod(tensor.shape[1:]), 1), 1))


def _n_odd(part: Tensor) -> int:
    """How many values are not finite. If their sum is, which is found out faster, all are."""
    return 0 if part.sum().isfinite() else int((~part.isfinite()).sum())


def _halves(config: ModelConfig, narrow: Halves, *, label: str, device: torch.device) -> Halves:
    """The matrices that stay in 16 bits: none if all fits with 32; an error if it does not fit with either."""
    sizes = {name: math.prod(shape) for name, shape in expected_shapes(config).items()}
    if all(room.fits(_needed(sizes, {}), place) for place in {CPU, device}):
        return {}
    matrices = {name: dtype for name, dtype in narrow.items() if name.endswith(("proj.weight", *_TABLES))}
    for place in {CPU, device}:
        room.check_bytes(_needed(sizes, matrices), label=label, device=place)
    return matrices


_TABLES = ("src_table", "tgt_table", "output_table")  # rows of pieces; other tables are small


def _needed(sizes: Mapping[str, int], halves: Halves) -> int:
    return int(BESIDE * sum(size * (2 if name in halves else 4) for name, size in sizes.items()))


def _odd_values(odd: Mapping[str, int], shapes: Shapes) -> Sequence[Sentence]:
    if not odd:
        return []
    counts = [
        say("{name} ({count:,} of {total:,})", name=shown(name), count=count, total=math.prod(shapes[name]))
        for name, count in odd.items()
    ]
    return [say("Some values are NaN or infinite, so outputs may be meaningless: {tensors}.", tensors=first(counts))]


def _in_16_bits(halves: Halves, whole: int) -> Sequence[Sentence]:
    if not halves:
        return []
    return [
        say(
            "With 32 bits per number, this model needs {needed:,} bytes, more than the free memory. Its matrices "
            "therefore stay in 16 bits, as in the file. Results differ only by rounding, but a step takes two to "
            "three times as long.",
            needed=whole,
        )
    ]


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
