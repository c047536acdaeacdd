"""Free memory and disk space, and whether a checkpoint fits; a device by its name; malloc that keeps freed memory.

A file may claim far more than it has on disk (a sparse file of 8 KB can be 1 GB long), so a size that a config allows
need not fit this machine.

Source: proc(5) for MemAvailable, the kernel's "Control Group v2" for memory.max. On other systems nothing is refused.

A model's parameters are on its device. `Transformer` moves its inputs there, and a `Recorder` moves what it keeps to
the processor, so other code need not know of devices.
"""

import ctypes
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import torch

from transformer.errors import CheckpointError, shown
from transformer.i18n import Sentence

Device = str | torch.device
"""A name, such as "cuda:1", or the device itself."""

Progress = Callable[[int, int], object]
"""Is told how many bytes of how many are loaded, as float32."""

CPU: Final = torch.device("cpu")


def silent(done: int, whole: int) -> None:
    """Report no progress."""


def device_of(device: Device) -> torch.device:
    """The device of a name: "cpu", "cuda", "cuda:1", or "auto", a GPU if there is one; a device is returned unchanged.

    A `CheckpointError` says that there is no such device here.
    """
    if isinstance(device, torch.device):
        return device
    name, colon, number = device.partition(":")
    if device in ("auto", "cpu"):
        return CPU if device == "cpu" or not torch.cuda.is_available() else torch.device("cuda")
    if name != "cuda" or bool(colon) != number.isdecimal():
        raise CheckpointError(
            "device {name}: it must be auto, cpu, cuda, or cuda: with a GPU's number.", name=shown(device)
        )
    if not torch.cuda.is_available():
        raise CheckpointError("device {name}: torch finds no CUDA device here; use cpu or auto.", name=device)
    if int(number or 0) >= (count := torch.cuda.device_count()):
        raise CheckpointError(
            "device {name}: there is {n} GPU, and numbers begin with 0.",
            "device {name}: there are {n} GPUs, and numbers begin with 0.",
            count,
            name=device,
        )
    return torch.device(device)


_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")  # as a container sees its own group


def available() -> int | None:
    """Bytes that are still free for the processor; None if the system does not say."""
    known = [found for found in (_of_machine(), _of_group()) if found is not None]
    return min(known, default=None)


def fits(needed: int, device: torch.device = CPU) -> bool:
    """Whether this many bytes are still free, as far as is known."""
    there = _free_on(device)
    return there is None or needed <= there


def check_bytes(needed: int, *, label: str, device: torch.device = CPU) -> None:
    """Refuse what needs more memory than is free."""
    there = _free_on(device)
    if there is not None and needed > there:
        raise CheckpointError(
            "{label}: loading it needs {needed:,} bytes of memory, but only {there:,} are free.",
            label=label if device == CPU else f"{label} ({device})",
            needed=needed,
            there=max(there, 0),
        )


def check_disk(folder: Path, needed: int, remedy: Sentence, *, label: str) -> None:
    """Refuse what needs more bytes than are free on the disk of a folder; `label` names the model or its file."""
    if needed > (free := shutil.disk_usage(folder).free):
        raise CheckpointError(
            "{label}: needs {needed:,} bytes of disk space, but only {free:,} are free. {remedy}",
            label=label,
            needed=needed,
            free=free,
            remedy=remedy,
        )


def _free_on(device: torch.device) -> int | None:
    if device.type != "cuda":
        return available()
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # by torch, for what comes next
    return torch.cuda.mem_get_info(device)[0] + kept


def _of_machine() -> int | None:
    for line in _lines(_MEMINFO):
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def _of_group() -> int | None:
    most, used = _lines(_GROUP / "memory.max"), _lines(_GROUP / "memory.current")
    if not most or not used or not most[0].isdigit():  # "max": no limit
        return None
    # The group's file cache is freed when memory is needed.
    cached = sum(int(line.split()[1]) for line in _lines(_GROUP / "memory.stat") if line.startswith("inactive_file "))
    return int(most[0]) - int(used[0]) + cached


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return []


def keep_freed_memory() -> None:
    """Let glibc keep what it frees: every step allocates the same large tensors, and fresh pages cost time."""
    try:
        libc = ctypes.CDLL("libc.so.6")
    except OSError:
        return  # not glibc
    mmap_threshold, trim_threshold = -3, -1  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of malloc.h
    libc.mallopt(mmap_threshold, 1 << 30)
    libc.mallopt(trim_threshold, (1 << 31) - 1)
