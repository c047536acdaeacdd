"""Opening of `torch.save` files through `pickle_worker`: its process, limits, cache, untrusted outline, refusals.

A pickle can run code, so `pickle_worker` opens it in its own process, under limits, and returns a tensor file and an
outline. Both are read as untrusted files. A refusal is one sentence, which never suggests an unsafe way to open it.
"""

import os
import shutil
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, BinaryIO

from transformer.checkpoint.free_memory import check_disk
from transformer.errors import CheckpointError, ClauseError, shown
from transformer.files import kinds, strictjson
from transformer.files.kinds import SAVE_AGAIN
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import say

CHILD = Path(__file__).with_name("pickle_worker.py")
OUTLINE, TENSORS = "outline.json", "tensors.safetensors"
MAX_OUTLINE = 40_000_000
MAX_DEPTH = 64  # brackets: three for each of the child's levels
SECONDS, BYTES_A_SECOND = 90, 10_000_000  # what the child may take: to start, and for the file's bytes
KEPT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR", "SYSTEMROOT")  # of the environment: no password among them


@dataclass(frozen=True)
class Tied:
    """A tensor of the file, in the place where the outline has it."""

    name: str  # its name in the tensor file; two that share their values have the same


@dataclass(frozen=True)
class Odd:
    """Something that is neither a plain value nor an array of numbers."""

    kind: str  # such as "sparse_coo" or "Counter"
    is_tensor: bool = False  # whether it is a tensor of an odd kind


@contextmanager
def opened(files: FolderFiles, name: str) -> Iterator[tuple[Any, Path]]:
    """Open a file of `torch.save`.

    Returns its content, as dictionaries, lists, plain values, `Tied` and `Odd`; and the tensor file, which is deleted
    afterwards. Refuses a file of another kind, a damaged one, one with more than tensors and plain values, and one that
    takes more memory or time than its size allows.
    """
    label = files.label(name)
    with files.open(name) as (file, size):
        check_kind(file.read(kinds.START), label=label)
        found = os.fstat(file.fileno())
        version = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
        there = next((one for seen, one in list(_kept) if seen == version), None)
        converted, passes = there or _Converted(), there is None and not _kept.maxlen
        try:
            if converted.outline is None:
                remedy = say("It is unpacked among the temporary files: set TMPDIR to a folder with more space.")
                check_disk(converted.folder, size, remedy, label=label)
                _run(file, size, str(converted.folder), label=label)
                converted.outline = (outline_in(converted.folder, label=label),)
                if not passes:
                    _kept.append((version, converted))
            yield converted.outline[0], converted.folder / TENSORS
        finally:
            if passes or converted.outline is None:
                converted.remove()


class _Converted:
    """The child's result: an outline, and a folder that is removed with the last reference."""

    def __init__(self) -> None:
        self.folder = Path(mkdtemp(prefix="glassformer-"))
        self.outline: tuple[Any] | None = None
        self.remove = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


_kept: deque[tuple[tuple[int, ...], _Converted]] = deque(maxlen=0)  # of the last files, by their versions


MOST_SHARDS = 1_000  # of a model; the disk is checked before each
_usual, _whole_models = 0, 0  # how many results are kept, and how many readers keep all of their model's for now
_LOCK = threading.Lock()


def keep(most: int) -> None:
    """Cache the results of the last `most` files, each as large as its file, to open one again without a process."""
    _resize(most, 0)


@contextmanager
def whole_model() -> Iterator[None]:
    """Keep the results of all files of a model until the end: it is tried before it is read."""
    _resize(_usual, 1)
    try:
        yield
    finally:
        _resize(_usual, -1)


def _resize(usual: int, more: int) -> None:
    global _kept, _usual, _whole_models
    with _LOCK:
        _usual, _whole_models = usual, _whole_models + more
        _kept = deque(_kept, maxlen=MOST_SHARDS if _whole_models else _usual)  # a current reader has what it loses


def check_kind(start: bytes, *, label: str) -> None:
    """Refuse a file whose first bytes say that it is something else than its name does."""
    if kinds.kind_of(start, 0, label) != "torch":
        raise CheckpointError("{label}: {problem}", label=label, problem=kinds.refusal(start, label))


def _run(file: BinaryIO, size: int, folder: str, *, label: str) -> None:
    if sys.platform == "win32" or find_spec("resource") is None:
        raise CheckpointError(
            "{label}: opening this file could run code, and this system cannot limit what that code does; save the "
            "weights as safetensors.",
            label=label,
        )
    environment = {key: os.environ[key] for key in KEPT if key in os.environ} | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", "-B", str(CHILD), str(file.fileno()), folder]
    try:
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=folder,
            pass_fds=(file.fileno(),),
            timeout=SECONDS + size / BYTES_A_SECOND,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise refusal(label, "time") from None


def refusal(label: str, code: str, found: str = "") -> CheckpointError:
    """The sentence of a code: one of the child's, or "time" or "crashed" if it did not finish."""
    problems = {
        "cut": say("is damaged or cut off: the list of records at its end is missing; copy or download it again."),
        "damaged": say(
            "is damaged or not a weights file: reading it stopped with {found}; copy or download it again.",
            found=shown(found),
        ),
        "torchscript": say("is a TorchScript program, not just weights. {remedy}", remedy=SAVE_AGAIN),
        "exported": say("is an exported program (.pt2), not just weights. {remedy}", remedy=SAVE_AGAIN),
        "zip": say("is a zip archive that torch.save did not write; unpack it, and open the weights file in it."),
        "packed": say(
            "its record {found} is compressed, which torch.save never does, so its true size is unknown; save the "
            "weights again with torch.save.",
            found=shown(found),
        ),
        "claims": say(
            "its tensors claim {found} bytes, more than the whole file has; clone each tensor before you save them "
            "again.",
            found=f"{int(found):,}" if found.isdecimal() and len(found) < 30 else shown(found),
        ),
        "many": say(
            "contains too many values, or values nested too deeply; save only the weights. {remedy}", remedy=SAVE_AGAIN
        ),
        "names": say(
            "stores one tensor under more than {most} names, and each name would become a separate matrix; save "
            "each tensor only once.",
            most=shown(found).strip("'"),
        ),
        "memory": say("needs more memory to open than is allowed for a file of this size. {remedy}", remedy=SAVE_AGAIN),
        "time": say(
            "takes longer to open than is allowed for a file of this size; if the machine is busy, try again. {remedy}",
            remedy=SAVE_AGAIN,
        ),
        "crashed": say(
            "the process that opened the file stopped unexpectedly, so the file is damaged or too large; copy or "
            "download it again."
        ),
        "object": say(
            "contains more than tensors: opening it would run code for {found}, so it was not opened. {remedy}",
            found=shown(found),
            remedy=SAVE_AGAIN,
        ),
    }
    return CheckpointError("{label}: {problem}", label=label, problem=problems.get(code, problems["damaged"]))


def outline_in(folder: Path, *, label: str) -> Any:
    """What the child wrote about a file into a folder, read with suspicion; CheckpointError if it refused."""
    files = FolderFiles(folder)
    if not files.has(OUTLINE):
        raise refusal(label, "crashed")
    return outline_of(files, OUTLINE, label=label)


def outline_of(files: FolderFiles, name: str, *, label: str) -> Any:
    """What an outline in a folder says that the file of this label holds, as `opened` gives it; or refuses that."""
    try:
        record = strictjson.parse(files.read(name, limit=MAX_OUTLINE), max_depth=MAX_DEPTH)
        if "refused" not in record:
            return _value(record["outline"], label=label)
        code, found = str(record["refused"]), str(record["found"])
    except CheckpointError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        problem = error.sentence if isinstance(error, ClauseError) else shown(type(error).__name__)
        raise CheckpointError(
            "{label}: its contents cannot be used: {problem}.", label=label, problem=problem
        ) from None
    raise refusal(label, code, found)


def _value(node: Any, *, label: str) -> Any:
    """The value of a node of the outline; see `pickle_worker`."""
    if not isinstance(node, Mapping):
        return node
    ((kind, content),) = node.items()
    if kind == "t":
        return Tied(str(content))
    if kind == "l":
        return [_value(item, label=label) for item in content]
    if kind in ("o", "x"):
        return Odd(content, is_tensor=kind == "x")
    found = {key: _value(item, label=label) for key, item in content}
    if len(found) != len(content):
        raise CheckpointError("{label}: contains a dictionary in which two keys have the same text.", label=label)
    return found
