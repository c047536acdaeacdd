"""Process sandbox: rlimits, Landlock, seccomp, no network.

`confine` leaves out what a system cannot do, and returns what was done. On Linux all of it works; on macOS the limits
hold, and sockets are refused to Python code only; Windows has none of it, so uploads are off there.

    limits       address space, CPU, size of files, open files, no core file: setrlimit(2)
    namespaces   a network without interfaces: unshare(2); a container may forbid it
    landlock     only the given folders, no signals to others: landlock(7), from Linux 5.13 on
    seccomp      no sockets, no looking into other processes: seccomp(2), on x86-64 and ARM
"""

import contextlib
import ctypes
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER, _DEATH_SIGNAL = 38, 22, 2, 1
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050000 | 1, 0x7FFF0000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06

# What is refused, by the numbers of linux/unistd.h: socket, connect, bind, listen, accept, ptrace, reading and
# writing others' memory, io_uring (which opens sockets, too), mount, bpf, userfaultfd, perf_event_open, the keys of
# the kernel, others' descriptors, other namespaces.
_OF_X86 = (41, 42, 49, 50, 43, 288, 101, 310, 311, 425, 165, 321, 323, 298, 248, 249, 250, 438, 308, 272)
_OF_ARM = (198, 203, 200, 201, 202, 242, 117, 270, 271, 425, 40, 280, 282, 241, 217, 218, 219, 438, 268, 97)
_REFUSED = {"x86_64": (0xC000003E, _OF_X86), "aarch64": (0xC00000B7, _OF_ARM)}
CPU_GRACE = 5  # seconds
_X32 = 0x40000000  # another numbering of the same calls

_CREATE_RULESET, _ADD_RULE, _RESTRICT = 444, 445, 446  # alike on every processor
_READ, _EVERYTHING = 0b1101, (1 << 13) - 1  # execute, read files, read folders; all of the first version
_SINCE = ((2, 1 << 13), (3, 1 << 14), (5, 1 << 15))  # rights that later versions added
_READABLE = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc", "/proc", "/sys", "/opt", "/nix")


def confine(
    writable: Path,
    readable: Sequence[Path],
    *,
    memory: int,
    seconds: int | None,
    file_bytes: int,
    with_parent: bool = True,
) -> tuple[str, ...]:
    """Confine this process and its children permanently; says what was done of limits, network, files and calls.

    It may read programs, libraries and what `readable` names. `memory` is bytes of address space beyond what it has
    now, `seconds` are of CPU (None for a process that lives on and counts them itself), `file_bytes` is the most of a
    file that it writes; with `with_parent` it ends with the thread that started it.
    """
    done = ["limits"]
    limit(memory=memory, seconds=seconds, file_bytes=file_bytes)
    if sys.platform == "linux":
        library = ctypes.CDLL(None, use_errno=True)
        if with_parent:
            library.prctl(_DEATH_SIGNAL, 9, 0, 0, 0)
        if library.unshare(_NEW_USER | _NEW_NET) == 0:
            done.append("network")
        library.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
        if _landlock(library, writable, readable):
            done.append("files")
        if _seccomp(library):
            done.append("calls")
    if "calls" not in done:
        sys.addaudithook(_no_sockets)
    return tuple(done)


def die_with_parent() -> None:
    """End this process when the one that started it ends, where the system can do it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, 9, 0, 0, 0)


def end(process: "subprocess.Popen[bytes] | None") -> None:
    """End a process at once, if there is one, and leave nothing of it."""
    if process is None:
        return
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def bytes_below(folder: Path) -> int:
    """The bytes of all files in a folder and below; another process may rename and remove them meanwhile."""
    n_bytes = 0
    for place, _, names in os.walk(folder):  # unlike `Path.rglob` it passes over a folder that has gone
        for name in names:
            with contextlib.suppress(OSError):
                n_bytes += os.lstat(os.path.join(place, name)).st_size
    return n_bytes


def can_limit() -> bool:
    """Whether this system can limit what a process takes; if not, uploads are off."""
    if sys.platform == "win32":
        return False
    with contextlib.suppress(ImportError):
        import resource

        return hasattr(os, "fork") and hasattr(resource, "RLIMIT_AS")
    return False


def limit(*, memory: int, seconds: int | None, file_bytes: int) -> None:
    """Limit what this process takes from now on, as `confine` does; what was limited stays so."""
    import resource

    try:
        taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except OSError:
        taken = 2**33
    for kind, most in (
        (resource.RLIMIT_AS, taken + memory),
        (resource.RLIMIT_CPU, resource.RLIM_INFINITY if seconds is None else seconds + CPU_GRACE),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        least = min((one for one in (most, hard) if one != resource.RLIM_INFINITY), default=resource.RLIM_INFINITY)
        with contextlib.suppress(ValueError, OSError):  # macOS does not let the address space be limited
            counted = kind == resource.RLIMIT_CPU and least != resource.RLIM_INFINITY
            first = max(least - CPU_GRACE, 0) if counted else least
            resource.setrlimit(kind, (first, least))  # of CPU the first limit ends it with a signal that says so


def _landlock(library: Any, writable: Path, readable: Sequence[Path]) -> bool:
    version = library.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        return False
    rights = _EVERYTHING
    for since, right in _SINCE:
        rights |= right if version >= since else 0
    scoped = 0b11 if version >= 6 else 0  # neither signals nor sockets without a name to other processes
    attributes = struct.pack("=QQQ", rights, 0, scoped)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = library.syscall(_CREATE_RULESET, attributes, size, 0)
    if rules < 0:
        return False
    programs = [Path(place) for place in (sys.prefix, sys.base_prefix, *sys.path, *_READABLE) if place]
    _allow(library, rules, [*programs, *readable], _READ)
    _allow(library, rules, [Path("/dev/null"), Path("/dev/zero")], rights & 0b110)
    _allow(library, rules, [Path("/dev/urandom"), Path("/dev/random")], 0b100)
    _allow(library, rules, [writable], rights)
    done = library.syscall(_RESTRICT, rules, 0) == 0
    os.close(rules)
    return done


def _allow(library: Any, rules: int, places: Sequence[Path], rights: int) -> None:
    of_a_file = 0b111 | 1 << 14
    for place in places:
        with contextlib.suppress(OSError):  # not there
            descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
            allowed = rights if place.is_dir() else rights & of_a_file
            library.syscall(_ADD_RULE, rules, 1, struct.pack("=Qi", allowed, descriptor), 0)
            os.close(descriptor)


def _seccomp(library: Any) -> bool:
    known = _REFUSED.get(platform.machine())
    if known is None:
        return False
    architecture, numbers = known
    n = len(numbers)
    steps = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, n + 2, 0, _X32),
        *((_EQUAL, n - i, 0, number) for i, number in enumerate(numbers)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _KILL),
    ]
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    kept = ctypes.create_string_buffer(code)
    program = struct.pack("@HP", len(steps), ctypes.addressof(kept))
    return bool(library.prctl(_SET_SECCOMP, _FILTER, program, 0, 0) == 0)


def _no_sockets(event: str, _: tuple[Any, ...]) -> None:
    if event.startswith("socket."):
        raise PermissionError("no network here")
