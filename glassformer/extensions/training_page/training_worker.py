"""Sandboxed process of a user's training: memory limit, interrupt by standard input, end with the server.

    python -m glassformer.extensions.training_page.training_worker MEMORY COMMAND [OPTION ...]

It can write only into its working folder, and has a memory limit in bytes, one thread, no network and the lowest CPU
priority. Its standard input is the server's voice: a byte interrupts it, as Ctrl-C would, and waits there while the
worker starts, where a signal may be lost. It ends with its server: on Linux by a system call, elsewhere when its
standard input closes.
"""

import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Final

from transformer import sandbox

ROOT: Final = Path(__file__).resolve().parents[3]
NICE: Final = 10  # of 19
MOST_FILE: Final = 64 * 2**20  # bytes
ENDED_SERVER, NO_MEMORY = 3, 4  # exit statuses
_NEARLY: Final = 0.8  # of the memory: what fails then has failed for want of it, whatever it says


def main() -> int:
    """Run the command of this process's own command line; returns its exit status."""
    memory, *words = sys.argv[1:]
    for number in (signal.SIGINT, signal.SIGTERM):  # a server in the background may have had them ignored
        signal.signal(number, signal.default_int_handler)
    os.nice(NICE)
    sandbox.confine(Path.cwd(), [ROOT], memory=int(memory), seconds=None, file_bytes=MOST_FILE)
    threading.Thread(target=listen, daemon=True).start()  # only now: threads forbid a network of its own
    sys.argv = ["python -m transformer", *words]  # which the card quotes
    try:
        from transformer.__main__ import main as run

        status = run(words)
        return NO_MEMORY if status and _is_full() else status
    except Exception as error:
        traceback.print_exc()
        return NO_MEMORY if isinstance(error, MemoryError) or "memory" in str(error) or _is_full() else 1


def _is_full() -> bool:
    """Whether nearly all the memory was used; False if the system does not report it."""
    import resource  # Windows has none

    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        peak = next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmPeak"))
    except (OSError, StopIteration):
        return False
    return peak > _NEARLY * resource.getrlimit(resource.RLIMIT_AS)[0]


def listen() -> None:
    """Interrupt this process when its server says so, and end it with its server; in a thread."""
    while os.read(0, 1024):  # not through `sys.stdin`, whose lock an ending process would wait for
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(ENDED_SERVER)


if __name__ == "__main__":
    sys.exit(main())
