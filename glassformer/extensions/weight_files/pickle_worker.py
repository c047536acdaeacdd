"""Process with limits that unpickles one `torch.save` file (`weights_only`) into safetensors and a JSON outline.

`pickles` starts it and reads what it writes.

A pickle is a program. PyTorch runs it here with `weights_only=True`, which allows only what builds tensors and plain
values. What toolkits save with the weights, such as their options, is read as a record: a class whose name `INERT`
allows is never imported; a class of this module, which only keeps attributes, replaces it. If that ever has a hole, the
exploit runs in a process without secrets, with little memory and time. It writes two files into a folder:
`outline.json`, the dictionaries, lists, numbers and texts of the file with names in place of tensors, or the code of a
refusal; and `tensors.safetensors`.

It is run by its path, or in a fork of a confined process (`uploads.library.upload_folder`), and imports nothing of this
project. It writes codes, not sentences.

Source: PyTorch's documentation of `torch.load`; "Serialization semantics" for the two formats of its files.
"""

import json
import math
import pickle
import re
import resource
import sys
import warnings
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

OUTLINE, TENSORS = "outline.json", "tensors.safetensors"
MAX_NODES = 500_000  # values of the outline: a list of lists that share their items can be endless in few bytes
MAX_NAMES = 512  # of the same values: layers that share them are as many at most, and each name becomes a matrix
MAX_DEPTH = 12
MAX_TEXT = 10_000
MAX_PICKLE = 2**26
SPARE = 2**28  # bytes of memory beside the file's own
PLAIN = (bool, int, float, str, type(None))
GLOBAL = re.compile(r"(?:GLOBAL|function|class|call|type) ([A-Za-z_][\w.]*\.[\w.]+)")
ASKED = re.compile(r"Unsupported global: GLOBAL ([\w.]+) was not an allowed global")
# Classes of translation toolkits' options and vocabularies, matched by name only. A Python builtin has no module in its
# name.
INERT = re.compile(
    r"(argparse|omegaconf|torchtext|onmt|fairseq|joeynmt|typing|pathlib|enum|numpy)\..+|functools\.partial"
    r"|(builtins\.)?(dict|list|tuple|str|int|float|bool|object|bytes|NoneType)"
    r"|torch\.(nn\.modules\.(activation\.(ReLU|GELU|SiLU|Tanh)|loss\.\w+)|optim\.[\w.]+|(nn\.functional|_C\._nn)\.\w+)"
)
# What people call classes for the settings of their model, in whatever module.
SETTINGS = re.compile(
    r"types\.SimpleNamespace|(?!torch\.)[\w.]+\."
    r"\w*(Config|Configuration|Cfg|CfgNode|Args|Arguments|Params|Parameters|Settings|Options|Opts?|Flags|Dict|Munch|Box)"
)
MAX_CLASSES = 200


class RefusedError(Exception):
    """Why a file is not opened: a code, and what was found."""

    def __init__(self, code: str, found: str = "") -> None:
        super().__init__(code)
        self.code, self.found = code, found


def main(descriptor: int, folder: Path) -> None:
    """Open the file of a descriptor; write its content, or the refusal, into a folder."""
    path = f"/dev/fd/{descriptor}"
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            import torch  # the limits below are about the file, not about what PyTorch itself takes

            _limit(size)
            outline = _Outline(size)
            result: dict[str, Any] = {"outline": outline.node(_load(torch, path, file))}
            _write(torch, outline.tensors, folder / TENSORS)
    except RefusedError as error:
        result = {"refused": error.code, "found": error.found}
    except Exception as error:
        result = _explained(error)
    (folder / OUTLINE).write_text(json.dumps(result), encoding="ascii")


def _limit(size: int) -> None:
    try:
        taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except OSError:
        taken = 2**33
    for kind, most in (
        (resource.RLIMIT_AS, taken + 2 * size + SPARE),
        (resource.RLIMIT_FSIZE, 2 * size + SPARE),
        (resource.RLIMIT_CPU, 30 + size // 20_000_000),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)  # the parent may allow less
        resource.setrlimit(kind, (least, least))


def _load(torch: Any, path: str, file: BinaryIO) -> object:
    file.seek(0)
    is_zip = file.read(2) == b"PK"
    if is_zip:
        _check_records(file)
    torch.set_num_threads(1)
    torch.serialization.add_safe_globals([(_plain_dictionary, "collections.defaultdict")])
    for _ in range(MAX_CLASSES):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
        except pickle.UnpicklingError as error:
            found = ASKED.search(str(error))
            base = next((one for names, one in KINDS if found is not None and names.fullmatch(found[1])), None)
            if found is None or base is None:
                raise
            name = found[1] if "." in found[1] else f"builtins.{found[1]}"
            torch.serialization.add_safe_globals([(type(name, (base,), {"__slots__": ()}), name)])
    raise RefusedError("many")


class StoredRecord:
    """Replaces an object whose class is not imported: it has its attributes, and no behaviour."""

    __slots__ = ("state",)

    def __new__(cls, *_: object) -> "StoredRecord":
        """A record without attributes, for any arguments."""
        made = object.__new__(cls)
        made.state = {}
        return made

    def __init__(self, *_: object) -> None:
        """Take what a constructor is called with, and do nothing with it."""

    def __setstate__(self, state: object) -> None:
        """Take the attributes; some classes have a second dictionary of them."""
        parts = state if isinstance(state, tuple) else (state,)
        self.state = {key: value for part in parts if type(part) is dict for key, value in part.items()}

    @property
    def is_activation(self) -> bool:
        """Whether its name says all of it, as that of a module without parameters; a GELU may be another one."""
        return ".activation." in type(self).__name__ and self.state.get("approximate", "none") == "none"


class StoredSettings:
    """Replaces settings of a class that is not imported: a dictionary of their attributes, and of items if any."""

    __slots__ = ()

    def __new__(cls, *_: object) -> Any:
        """The kind of dictionary that PyTorch lets a pickle give both."""
        return OrderedDict()


KINDS: tuple[tuple[re.Pattern[str], type], ...] = ((INERT, StoredRecord), (SETTINGS, StoredSettings))


def _plain_dictionary(*_: object) -> dict[object, object]:
    """An empty dictionary for a `defaultdict`, whose factory is dropped."""
    return {}


def _check_records(file: BinaryIO) -> None:
    size = file.seek(0, 2)
    try:
        with zipfile.ZipFile(file) as archive:
            records = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise RefusedError("cut") from None
    names = {record.filename.split("/", 1)[-1] for record in records}
    if "constants.pkl" in names:
        raise RefusedError("torchscript")
    if "archive_format" in names:
        raise RefusedError("exported")
    if "data.pkl" not in names:
        raise RefusedError("zip")
    for record in records:
        if record.compress_type != zipfile.ZIP_STORED or record.flag_bits & 1:
            raise RefusedError("packed", record.filename)
        if record.filename.endswith("data.pkl") and record.file_size > MAX_PICKLE:
            raise RefusedError("many")
    if sum(record.file_size for record in records) > size:
        raise RefusedError("claims", str(sum(record.file_size for record in records)))


class _Outline:
    """The plain values of a file, each tensor once; `size` is its bytes, which its tensors may not exceed."""

    def __init__(self, size: int) -> None:
        self.tensors: dict[str, Any] = {}
        self._size, self._n_nodes, self._n_bytes = size, 0, 0
        self._names: dict[tuple[object, ...], str] = {}
        self._again: Counter[str] = Counter()
        self._open: set[int] = set()  # the records that the one at hand is in

    def node(self, value: Any, depth: int = 0) -> object:
        """A value as JSON: plain, {"d": pairs}, {"l": items}, {"t": tensor}, {"x": odd tensor} or {"o": other}."""
        self._n_nodes += 1
        if self._n_nodes > MAX_NODES or depth > MAX_DEPTH:
            raise RefusedError("many")
        if isinstance(value, Mapping):
            own = {key: one for key, one in getattr(value, "__dict__", {}).items() if not str(key).startswith("_")}
            return {"d": [[_key(key), self._item(_key(key), one, depth)] for key, one in {**own, **value}.items()]}
        if isinstance(value, (list, tuple, set, frozenset)):
            return {"l": [self.node(item, depth + 1) for item in value]}
        if isinstance(value, type) and issubclass(value, StoredRecord):  # or a function, such as an activation
            return _short(value)
        if isinstance(value, StoredRecord):
            return _short(type(value)) if value.is_activation else self._record(value, depth)
        if isinstance(value, PLAIN):
            return value if _is_short(value) else {"o": type(value).__name__}
        if hasattr(value, "untyped_storage"):
            odd = _oddness(value)
            return {"x": odd} if odd else {"t": self._name(value)}
        return {"o": type(value).__name__}

    def _record(self, value: StoredRecord, depth: int) -> object:
        """The attributes of an object; inside itself, only its name."""
        name, state = type(value).__name__, value.state
        if id(value) in self._open:
            return {"o": name}
        self._open.add(id(value))
        if name.startswith("omegaconf.") and state.keys() & {"_content", "_val"}:  # a value, and much about it
            made = self.node(state.get("_content", state.get("_val")), depth)
        else:
            if name.startswith("torchtext.") and "itos" in state:  # the same again by its pieces, and all counts
                state = {"itos": state["itos"]}
            made = {"d": [[_key(key), self._item(_key(key), item, depth)] for key, item in state.items()]}
        self._open.discard(id(value))
        return made

    def _item(self, key: str, value: Any, depth: int) -> object:
        if "optim" in key.lower() and isinstance(value, Mapping):  # twice the size of the model, and no part of it
            return {"o": "optimizer"}
        return self.node(value, depth + 1)

    def _name(self, tensor: Any) -> str:
        place = (
            tensor.untyped_storage().data_ptr(),
            tensor.storage_offset(),
            tuple(tensor.shape),
            tensor.stride(),
            str(tensor.dtype),
        )
        if place in self._names and tensor.numel():
            again = self._names[place]
            self._again[again] += 1
            if self._again[again] >= MAX_NAMES:
                raise RefusedError("names", str(MAX_NAMES))
            return again
        self._n_bytes += tensor.numel() * tensor.element_size()
        if self._n_bytes > self._size:
            raise RefusedError("claims", str(self._n_bytes))
        name = self._names[place] = f"t{len(self.tensors)}"
        self.tensors[name] = tensor
        return name


def _short(kind: type) -> str:
    return kind.__name__.rpartition(".")[2]


def _key(key: object) -> str:
    return key[:MAX_TEXT] if isinstance(key, str) else str(key) if isinstance(key, PLAIN) else type(key).__name__


def _is_short(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_TEXT
    return math.isfinite(value) if isinstance(value, float) else not isinstance(value, int) or abs(value) < 2**64


DTYPES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16",
    "bfloat16": "BF16", "float32": "F32", "float64": "F64", "complex64": "C64", "uint16": "U16", "uint32": "U32",
    "uint64": "U64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip


def _oddness(tensor: Any) -> str:
    """Why a tensor is not a plain array of numbers; empty if it is one."""
    if tensor.is_quantized:
        return "quantized"
    layout = str(tensor.layout).removeprefix("torch.")
    if layout != "strided":
        return layout
    if tensor.device.type != "cpu":
        return str(tensor.device.type)
    dtype = str(tensor.dtype).removeprefix("torch.")
    return "" if dtype in DTYPES else dtype


def _write(torch: Any, tensors: Mapping[str, Any], path: Path) -> None:
    """Write a safetensors file one tensor after another: the library would hold them all in memory."""
    header, end = {}, 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.numel() * tensor.element_size()
        dtype = DTYPES[str(tensor.dtype).removeprefix("torch.")]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [begin, end]}
    content = json.dumps(header).encode("ascii")
    with path.open("wb") as file:
        file.write(len(content).to_bytes(8, "little") + content)
        for tensor in tensors.values():
            flat = tensor.detach().resolve_conj().resolve_neg().contiguous().view(-1)
            file.write(flat.view(torch.uint8).numpy().data if flat.numel() else b"")


def _explained(error: Exception) -> dict[str, Any]:
    text = str(error)
    # PyTorch says what its own allocator, the C++ library or the system says, each in its own words.
    if isinstance(error, MemoryError) or re.search(r"allocate memory|Cannot allocate|bad_alloc|start new thread", text):
        return {"refused": "memory", "found": ""}
    found = GLOBAL.search(text.rpartition("error:")[2])
    if type(error).__name__ == "UnpicklingError" and found:
        return {"refused": "object", "found": found[1].rstrip(".")}
    return {"refused": "damaged", "found": type(error).__name__}


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
