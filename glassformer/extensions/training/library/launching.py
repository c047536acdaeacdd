"""Start the same training several times on this machine, and again when a process of it falls: `--processes`.

It is torch's own launcher, `torchrun`, in this process. Two things are different here. Its rendezvous store is not
shared with the training (`TORCH_DISABLE_SHARE_RDZV_TCP_STORE`): processes that are started again would otherwise look
for the port of one that is dead, and wait for minutes. And a training that refuses what it was given is not started
again: its first process says why, all of them end as if nothing had failed, and this one gives the exit status.
"""

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from glassformer.extensions.training.library.processes import LAUNCHER, is_first

_NOTE = "GLASSFORMER_REFUSED"  # names a file that a training leaves when it refuses
REFUSED = 2


def wanted(processes: int, max_restarts: int) -> bool:
    """Whether this process is to start others: it was asked to, and is none of those itself."""
    return (processes > 1 or max_restarts > 0) and "RANK" not in os.environ


def launch(arguments: Sequence[str], *, processes: int, max_restarts: int) -> int:
    """Run `python -m transformer` with these arguments in several processes; returns the exit status."""
    os.environ.setdefault("LOGLEVEL", "CRITICAL")  # what torch's launcher says is said below, in a line
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    logging.getLogger("torch.distributed").setLevel(logging.CRITICAL)  # some of its parts go by this
    threads = str(max((os.cpu_count() or 1) // processes, 1))
    with tempfile.TemporaryDirectory(prefix="glassformer-") as folder:
        note = Path(folder) / "refused"
        os.environ |= {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", _NOTE: str(note), LAUNCHER: str(os.getpid())}
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # its warnings are about what is meant to be so
        os.environ.setdefault("OMP_NUM_THREADS", threads)
        how = ["--standalone", f"--nproc-per-node={processes}", f"--max-restarts={max_restarts}"]
        try:
            run.run(run.parse_args([*how, "-m", "transformer", *arguments]))
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            code = failure.exitcode
            how_it_ended = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
            print(
                f"error: process {rank + 1} of {processes} {how_it_ended}; the same command with --resume goes on "
                "from what was stored last.",
                file=sys.stderr,
            )
            return 1
        except SignalException as error:
            return 128 + error.sigval
        return REFUSED if note.exists() else 0


def refused(error: Exception) -> int:
    """What a process of a training does with a refusal that all of them raise: the first one says it.

    Raises it, or returns the exit status.
    """
    note = os.environ.get(_NOTE)
    if note is None and is_first():
        raise error
    if note is None:
        return REFUSED
    if is_first():
        print(f"error: {error}", file=sys.stderr, flush=True)
        Path(note).touch()
    return 0
