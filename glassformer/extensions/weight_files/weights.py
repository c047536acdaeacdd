"""`open_weights`: lazy reading of safetensors (sharded too), `.npz` and `torch.save` files; a model's own tensors.

    with open_weights(Path("downloads/model.pt")) as weights:
        for name in weights.tensors:
            weights.read(name)

A source is a file or a folder: safetensors, in one or several files, a file of `torch.save`, or an `.npz`. The kind is
detected by the first bytes. Only requested tensors are read, and are converted to float32 in their final memory, so a
model is in memory once.

Source: the files that Hugging Face's `save_pretrained` writes above a size: `model.safetensors.index.json` with
`weight_map`, tensor -> file.
"""

import io
import math
import struct
import tokenize
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from glassformer.extensions.weight_files import pickles, state_dict_search, weight_folder
from glassformer.extensions.weight_files.state_dict_search import Combined, unwrapped, without_wrappers
from glassformer.extensions.weight_files.weight_folder import PICKLED, TENSORS, WHOLE
from transformer.checkpoint.free_memory import check_bytes
from transformer.errors import CheckpointError, ClauseError, shown
from transformer.files import kinds, tensorfile
from transformer.files.tensorfile import Header, TensorInfo
from transformer.files.untrusted_folder import FolderFiles, as_typed
from transformer.i18n import Sentence, say

SPECIAL = "special:"  # Marian's: such an array is a text
MAX_TEXT = 1_000_000
MAX_ARRAYS = 20_000
MAX_AXES = 8
DTYPES = {"f2": "F16", "f4": "F32", "f8": "F64", "i1": "I8", "u1": "U8", "i2": "I16", "i4": "I32", "i8": "I64"}
_BEFORE = struct.Struct("<26x2H")  # a local file header; it ends with the lengths of the name and of the extra field
_BROKEN = (
    zipfile.BadZipFile, struct.error, EOFError, OSError, ValueError, TypeError, SyntaxError, KeyError, IndexError,
    NotImplementedError, RuntimeError, OverflowError, MemoryError, RecursionError, tokenize.TokenError,
)  # fmt: skip


def read_arrays(file: BinaryIO, size: int, *, label: str) -> tuple[Header, dict[str, str]]:
    """Where each array of a file lies, and those that are texts; refuses what cannot be read where it lies."""
    try:
        with zipfile.ZipFile(file) as archive:
            records = archive.infolist()
            if len(records) > MAX_ARRAYS:
                raise CheckpointError(
                    "{label}: lists {n:,} arrays; the limit is {most:,}.", label=label, n=len(records), most=MAX_ARRAYS
                )
            found = [(record.filename.removesuffix(".npy"), _info(archive, file, size, record)) for record in records]
            tensors = dict(found)
            if len(tensors) != len(found):
                raise ClauseError("it has two arrays with the same name")
            texts = _texts(file, tensors)
            return Header(tensors, 0), texts
    except ClauseError as error:
        problem = error.sentence
    except CheckpointError:
        raise
    except _BROKEN as error:
        problem = say("it is damaged or cut off ({problem})", problem=shown(type(error).__name__))
    raise CheckpointError("{label}: {problem}; save or copy it again.", label=label, problem=problem)


def _info(archive: zipfile.ZipFile, file: BinaryIO, size: int, record: zipfile.ZipInfo) -> TensorInfo:
    """The place of an array's values in the file."""
    name = shown(record.filename)
    if record.compress_type != zipfile.ZIP_STORED or record.flag_bits & 1:
        raise ClauseError(
            "its array {name} is compressed, but only uncompressed arrays can be read, as numpy's savez writes them",
            name=name,
        )
    with archive.open(record) as member:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(member)
        header = member.tell()
    odd = dtype.hasobject or dtype.byteorder == ">" or dtype.names
    kind = None if odd else DTYPES.get(f"{dtype.kind}{dtype.itemsize}")
    if kind is None:
        found = shown(str(dtype))
        raise ClauseError(
            "its array {name} has the type {dtype}; only plain numbers can be read", name=name, dtype=found
        )
    if len(shape) > MAX_AXES or any(type(n) is not int or n < 0 for n in shape):
        raise ClauseError("its array {name} has the impossible shape {shape}", name=name, shape=shown(shape))
    if fortran and len(shape) > 1:
        raise ClauseError(
            "its array {name} is stored column by column; only arrays stored row by row can be read", name=name
        )
    length = math.prod(shape) * dtype.itemsize
    file.seek(record.header_offset)
    before = _BEFORE.unpack(file.read(_BEFORE.size))
    begin = record.header_offset + _BEFORE.size + sum(before) + header
    if header + length != record.file_size or record.compress_size != record.file_size or begin + length > size:
        raise ClauseError("its array {name} claims to have a different number of bytes than it has", name=name)
    return TensorInfo(kind, tuple(shape), begin, begin + length)


def _texts(file: BinaryIO, tensors: dict[str, TensorInfo]) -> dict[str, str]:
    """Remove the arrays that are texts from the tensors, and return them."""
    texts = {}
    for name in [name for name in tensors if name.startswith(SPECIAL)]:
        info = tensors.pop(name)
        if info.dtype not in ("I8", "U8") or info.end - info.begin > MAX_TEXT:
            raise ClauseError("its array {name} must be a text of at most {most:,} bytes", name=name, most=MAX_TEXT)
        file.seek(info.begin)
        texts[name] = file.read(info.end - info.begin).rstrip(b"\0").decode("utf-8")
    return texts


OUTLINE = ".outline.json"  # beside a tensor file that a file of torch.save was written anew as
_MOST_NAMES = 6  # that a note lists


@dataclass(frozen=True)
class _Place:
    file: BinaryIO
    header: tensorfile.Header
    name: str
    label: str

    @property
    def info(self) -> tensorfile.TensorInfo:
        return self.header.tensors[self.name]


@dataclass(frozen=True)
class _Content:
    """What a file holds."""

    label: str  # how messages call it
    places: Mapping[str, _Place]  # of its tensors
    evidence: Mapping[str, Any] = field(default_factory=dict)  # plain values beside them
    notes: tuple[Sentence, ...] = ()  # sentences about what was odd


@dataclass(frozen=True)
class Weights:
    """The tensors of a source; to be read while its file is open."""

    label: str  # how messages call the source
    # Their headers, by name without the prefixes of wrappers.
    tensors: Mapping[str, tensorfile.TensorInfo]
    ties: Mapping[str, str]  # name of a tensor -> name of an earlier one that it shares its values with
    evidence: Mapping[str, Any]  # plain values that were saved beside the weights
    notes: tuple[Sentence, ...]  # sentences about what was odd
    again: Callable[[], AbstractContextManager["Weights"]]  # opens the source once more
    _places: Mapping[str, _Place] = field(repr=False)
    _in_two: Mapping[str, Combined] = field(default_factory=dict)  # weights of a length and a direction
    heads: Mapping[str, Combined] = field(default_factory=dict)  # maps that are stored head by head

    @cached_property
    def settings(self) -> Mapping[str, int | float | bool | str | None]:
        """The evidence as one table with dotted keys, such as "model_args.n_head"; lists are left out."""
        return dict(state_dict_search.dotted(self.evidence))

    def read(self, name: str, out: Tensor | None = None) -> Tensor:
        """A tensor as float32, in `out`, of its shape, or in new memory.

        Refuses one that is not floating point, does not fit into memory, or whose file changed meanwhile.
        """
        if (whole := self._in_two.get(name) or self.heads.get(name)) is not None:
            made = whole.combine([self.read(part) for part in whole.parts])
            return made if out is None else out.copy_(made)
        place = self._places[name]
        if place.info.dtype not in tensorfile.FLOATS:  # said here, as its file may be one made of the user's
            raise CheckpointError(
                "{label}: tensor {tensor} has dtype {dtype}; weights must be {dtypes}.",
                label=self.label,
                tensor=shown(name),
                dtype=place.info.dtype,
                dtypes=", ".join(tensorfile.FLOATS),
            )
        if out is None:
            check_bytes(4 * math.prod(place.info.shape), label=place.label)
            out = torch.empty(place.info.shape)
        return tensorfile.read_into(place.file, place.header, place.name, out, label=place.label)


@contextmanager
def open_weights(source: Path, *, inside: Path | None = None) -> Iterator[Weights]:
    """Open a file of weights, or the one in a folder; `inside` is the real path of a folder that it may not leave.

    Refuses what is missing, damaged or would run code; and, when the block ends, a file that was replaced meanwhile.
    """
    folder, name = located(source)
    files = FolderFiles(folder, inside=inside, labels={name: as_typed(source, inside)} if name else {})
    with ExitStack() as stack:
        name = name or weight_folder.chosen(files, folder)
        parts = weight_folder.parts_of(files, name)
        found = _content(files, name, stack) if parts is None else _together(files, *parts, stack)
        settings, notes = weight_folder.settings_beside(folder / name, inside)
        found = replace(found, evidence={**found.evidence, **settings}, notes=(*found.notes, *notes))
        yield _of_places(found, partial(open_weights, source, inside=inside))
    if files.changed():
        raise CheckpointError("{folder}: its files are being replaced; try again in a moment.", folder=files.name)


def in_memory(state: Mapping[str, Tensor], *, label: str) -> Weights:
    """A model's current tensors in memory; those that share memory are tied."""
    own: dict[str, str] = {}
    first: dict[object, str] = {}
    for name, value in state.items():
        own[name] = first.setdefault((value.data_ptr(), value.shape, value.stride(), value.dtype), name)
    content = save({name: state[name].detach().cpu().clone().contiguous() for name in dict.fromkeys(own.values())})
    file = io.BytesIO(content)
    header = tensorfile.read_header(file, len(content), label=label)
    places = {name: _Place(file, header, one, label) for name, one in own.items()}
    found = _of_places(_Content(label, places), lambda: nullcontext(found))
    return found


def located(source: Path) -> tuple[Path, str]:
    """The folder, and the file in it if one was named: the one that a link leads to."""
    try:
        real = source.resolve() if source.is_symlink() else source
        return (real.parent, real.name) if real.is_file() else (source, "")
    except (OSError, ValueError, RuntimeError):
        return source, ""  # FolderFiles reports the problem


def _places(files: FolderFiles, name: str, stack: ExitStack) -> dict[str, _Place]:
    file, size = stack.enter_context(files.open(name))
    header = tensorfile.read_header(file, size, label=files.label(name))
    return {tensor: _Place(file, header, tensor, files.label(name)) for tensor in header.tensors}


def _content(files: FolderFiles, name: str, stack: ExitStack) -> _Content:
    """What a file holds, of whatever kind."""
    label = files.label(name)
    if files.has(name + OUTLINE):  # a file of torch.save that was written anew
        label = files.label(PICKLED if name == WHOLE else name.removesuffix(TENSORS))
        content = pickles.outline_of(files, name + OUTLINE, label=label)
        return _held(content, _places(files, name, stack), label=label)
    with files.open(name) as (file, size):
        start = file.read(kinds.START)
    kind = kinds.kind_of(start, size, name)
    if kind is None and (not name.endswith(TENSORS) or (start and kinds.unopened(start, name))):
        raise CheckpointError("{label}: {problem}", label=label, problem=kinds.refusal(start, name))
    if kind == "torch":
        content, path = stack.enter_context(pickles.opened(files, name))
        return _held(content, _places(FolderFiles(path.parent), path.name, stack), label=label)
    if kind != "arrays":  # one that is damaged says itself how
        places = _places(files, name, stack)
        return _Content(label, places, next((place.header.metadata for place in places.values()), {}))
    file, size = stack.enter_context(files.open(name))
    header, texts = read_arrays(file, size, label=label)
    return _Content(label, {tensor: _Place(file, header, tensor, label) for tensor in header.tensors}, texts)


def _together(
    files: FolderFiles, index: str, weight_map: Mapping[str, str], names: Sequence[str], stack: ExitStack
) -> _Content:
    """What several files hold, as the index says, if there is one."""
    found: dict[str, _Place] = {}
    holder: dict[str, str] = {}
    for name in names:
        anew = f"{name}{TENSORS}"
        for tensor, place in _content(files, anew if files.has(anew) else name, stack).places.items():
            if tensor in holder:
                raise CheckpointError(
                    "{label}: contains tensor {tensor}, which is also in {other}.",
                    label=files.label(name),
                    tensor=shown(tensor),
                    other=shown(holder[tensor]),
                )
            found[tensor], holder[tensor] = place, name
    if index:
        weight_folder.check_index(files, index, weight_map, holder)
    return _Content(files.name, found)


def _held(content: Any, there: Mapping[str, _Place], *, label: str) -> _Content:
    """The weights in the content of a file of `torch.save`, and the places of its tensors."""
    tensors, evidence, notes = unwrapped(content, label=label)
    for tensor, own in tensors.items():
        if own not in there:
            raise CheckpointError(
                "{label}: its list of contents includes {tensor}, but the file does not contain that tensor.",
                label=label,
                tensor=shown(tensor),
            )
    return _Content(label, {tensor: there[own] for tensor, own in tensors.items()}, evidence, notes)


def _of_places(found: _Content, again: Callable[[], AbstractContextManager[Weights]]) -> Weights:
    twins = _twins(found.places)
    places = {**found.places, **twins}
    plain, wrappers = without_wrappers(places, label=found.label)
    first: dict[tuple[int, str], str] = {}
    ties: dict[str, str] = {}
    for name, original in plain.items():
        place = places[original]
        earlier = first.setdefault((id(place.header), place.name), name)
        if earlier != name:
            ties[name] = earlier
    tensors = {name: places[original].info for name, original in plain.items()}
    tensors = _combined(tensors, in_two := state_dict_search.in_two(tensors))
    tensors = _combined(tensors, heads := state_dict_search.heads(tensors))
    state_dict_search.check(tensors, label=found.label)
    pairs = _listed([f"{gone} = {place.name}" for gone, place in twins.items()])
    names_of_heads, names_in_two = _listed([*heads]), _listed([*in_two])
    notes = {
        pairs: say("By the file's metadata, these tensors have the same values: {pairs}.", pairs=pairs),
        names_of_heads: say("Maps that are stored head by head are put together: {names}.", names=names_of_heads),
        names_in_two: say("Weights with weight_norm are computed from their two parts: {names}.", names=names_in_two),
    }
    return Weights(
        label=found.label,
        tensors=tensors,
        ties=ties,
        evidence=found.evidence,
        notes=(*found.notes, *(note for names, note in notes.items() if names), *wrappers),
        again=again,
        _places={name: places[original] for name, original in plain.items()},
        _in_two=in_two,
        heads=heads,
    )


def _combined(tensors: Mapping[str, TensorInfo], wholes: Mapping[str, Combined]) -> dict[str, TensorInfo]:
    """The tensors with whole weights after them, in the place of their parts."""
    parts = {part for one in wholes.values() for part in one.parts}
    kept = {name: info for name, info in tensors.items() if name not in parts}
    return kept | {name: one.info for name, one in wholes.items()}


def _twins(places: Mapping[str, _Place]) -> dict[str, _Place]:
    """The tensors that a file omits as they share another's values, named in its metadata (safetensors' save_model)."""
    found: dict[str, _Place] = {}
    for place in {id(place.header): place for place in places.values()}.values():
        for gone, kept in place.header.metadata.items():
            if gone not in places and kept in place.header.tensors:
                found[gone] = replace(place, name=kept)
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMES]) + ", ..." * (len(names) > _MOST_NAMES)
