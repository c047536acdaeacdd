"""Tensors and vocabularies checked against a config, a model filled with values, hashes of the contents.

The config determines the names and shapes of all tensors; the header of a tensor file is compared with them before any
tensor is read.

A model is in memory only once while it is loaded, plus a few megabytes of a file, or one tensor that has to be moved. A
model that does not fit into free memory is refused before anything is read. If its file has 16 bits, it may stay in 16
bits, which takes half of the memory and more time. The largest file is never in memory as a whole: its bytes are hashed
as they are read.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Protocol

import torch
from torch import Tensor

from transformer.checkpoint import free_memory
from transformer.checkpoint.free_memory import CPU, Progress, silent
from transformer.checkpoint.parameter_layout import Halves, on, ready, vacant
from transformer.errors import CheckpointError, shown
from transformer.files import tensorfile
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer

Shapes = Mapping[str, tuple[int, ...]]

NAMED = 5  # things that a message lists


@lru_cache(maxsize=64)  # the listing asks again every few seconds, and building the modules costs 20 ms
def expected_shapes(config: ModelConfig) -> Shapes:
    """Name and shape of every tensor in the file of such a model; no memory is allocated."""
    with torch.device("meta"):
        model = Transformer(config)
    return MappingProxyType({name: tuple(tensor.shape) for name, tensor in model.state_dict().items()})


def most_bytes(config: ModelConfig, *, per_value: int = 8) -> int:
    """The largest possible tensor file of this config: some bytes per parameter, and the header."""
    return config.count_parameters() * per_value + tensorfile.LENGTH_BYTES + tensorfile.MAX_HEADER


def check_tensors(config: ModelConfig, header: tensorfile.Header, *, label: str) -> None:
    """Compare names, dtypes and shapes of a file with the config; an error names five of each kind."""
    wrong_dtype = [
        f"{shown(name)} ({info.dtype})" for name, info in header.tensors.items() if info.dtype not in tensorfile.FLOATS
    ]
    check_shapes(config, header.shapes, label=label, wrong_dtype=wrong_dtype)


def check_shapes(config: ModelConfig, found: Shapes, *, label: str, wrong_dtype: Sequence[str] = ()) -> None:
    """The same for names and shapes alone; tensors of another dtype are named, too."""
    expected = expected_shapes(config)
    wrong_shape = [
        say(
            "{name} (found {found}, expected {expected})",
            name=shown(name),
            found=list(found[name]),
            expected=list(shape),
        )
        for name, shape in expected.items()
        if name in found and found[name] != shape
    ]
    missing = [shown(name) for name in expected if name not in found]
    unknown = [shown(name) for name in found if name not in expected]
    faults = list(clauses(missing=missing, unknown=unknown, wrong_dtype=wrong_dtype, wrong_shape=wrong_shape))
    if faults:
        raise CheckpointError("{label}: {faults}.", label=label, faults=joined("; ", faults))


def clauses(
    *, missing: Sequence[str], unknown: Sequence[str], wrong_shape: Sequence[str], wrong_dtype: Sequence[str] = ()
) -> Iterator[Sentence]:
    """A clause for each kind of fault found, with its first five tensors as messages name them."""
    if missing:
        yield say_n(
            "{n} tensor is missing: {names}", "{n} tensors are missing: {names}", len(missing), names=first(missing)
        )
    if unknown:
        yield say_n(
            "{n} tensor does not belong to the model that config.json describes: {names}",
            "{n} tensors do not belong to the model that config.json describes: {names}",
            len(unknown),
            names=first(unknown),
        )
    if wrong_dtype:
        yield say_n(
            "{n} tensor has a dtype other than F16, BF16, F32 or F64: {names}",
            "{n} tensors have a dtype other than F16, BF16, F32 or F64: {names}",
            len(wrong_dtype),
            names=first(wrong_dtype),
        )
    if wrong_shape:
        yield say_n(
            "{n} tensor has a different shape than config.json implies: {names}",
            "{n} tensors have different shapes than config.json implies: {names}",
            len(wrong_shape),
            names=first(wrong_shape),
        )


def check_vocabularies(
    config: ModelConfig, shapes: Shapes, pieces_of: Sequence[tuple[str, int]], *, label: str
) -> None:
    """Refuse a vocabulary whose three sizes differ: the config's, the rows of the embedding, the tokenizer's pieces.

    `shapes` are those of the tensors, by name; `pieces_of` has the file and number of pieces of each tokenizer,
    source before target.
    """
    sides = (("src", config.src_vocab_size), ("tgt", config.tgt_vocab_size))
    for (side, size), (file, n_pieces) in zip(sides, pieces_of, strict=False):  # a shared one is the source's
        table = shapes.get(f"{side}_table")
        if table is None or len(table) != 2:
            continue  # check_tensors says so
        if not size == table[0] == n_pieces:
            raise CheckpointError(
                "{label}: the sizes of the {side} vocabulary differ: {size:,} in config.json ({side}_vocab_size), "
                "{rows:,} rows in {side}_table, {n_pieces:,} tokens in {file}. All three must be equal.",
                label=label,
                side=side,
                size=size,
                rows=table[0],
                n_pieces=n_pieces,
                file=file,
            )


def first(names: Sequence[str]) -> str:
    """The first few names, for a message."""
    return joined(", ", [*names[:NAMED], *["..."] * (len(names) > NAMED)])


Places = Mapping[str, Tensor]

BESIDE = 1.05  # of the memory for the values: the rest is used while they are read
LOOKED_AT = 2**20  # values that are checked at once; the check takes as much memory again


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
    """A model with these values, of exactly its tensors; a CheckpointError if it does not fit or the file changed."""
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
    warnings = tuple(_warnings(odd, values.shapes, halves, whole))
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
    if all(free_memory.fits(_needed(sizes, {}), place) for place in {CPU, device}):
        return {}
    matrices = {name: dtype for name, dtype in narrow.items() if name.endswith(("proj.weight", *_TABLES))}
    for place in {CPU, device}:
        free_memory.check_bytes(_needed(sizes, matrices), label=label, device=place)
    return matrices


_TABLES = ("src_table", "tgt_table", "output_table")  # rows of pieces; other tables are small


def _needed(sizes: Mapping[str, int], halves: Halves) -> int:
    return int(BESIDE * sum(size * (2 if name in halves else 4) for name, size in sizes.items()))


def _warnings(odd: Mapping[str, int], shapes: Shapes, halves: Halves, whole: int) -> Iterator[Sentence]:
    if odd:
        counts = [
            say("{name} ({count:,} of {total:,})", name=shown(name), count=count, total=math.prod(shapes[name]))
            for name, count in odd.items()
        ]
        yield say("Some values are NaN or infinite, so outputs may be meaningless: {tensors}.", tensors=first(counts))
    if halves:
        yield say(
            "With 32 bits per number, this model needs {needed:,} bytes, more than the free memory. Its matrices "
            "therefore stay in 16 bits, as in the file. Results differ only by rounding, but a step takes two to "
            "three times as long.",
            needed=whole,
        )


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
