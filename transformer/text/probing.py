"""Try a file that native code will read in a process of its own, and remember what came of it.

Native code trusts its files: some damaged ones end the whole process. A probe is a small script that loads the file
from its standard input and uses it; exit status 1 means that the library refused it, with the reason on standard
error, and any other than 0 that the process died.
"""

import hashlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock

from transformer.errors import TokenizerError, shown
from transformer.i18n import Sentence, say

MAX_VERDICTS = 256
NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # Windows would open one for a moment


class Verdicts:
    """What was found wrong with files, by their SHA-256: trying one takes a second."""

    def __init__(self) -> None:
        self._faults: dict[str, Sentence | None] = {}
        self._lock = Lock()

    def check(self, content: bytes, find_fault: Callable[[bytes], None]) -> None:
        """Raise the TokenizerError that `find_fault` raises for these bytes, or raised before."""
        key = hashlib.sha256(content).hexdigest()
        with self._lock:
            known, fault = key in self._faults, self._faults.get(key)
        if not known:
            try:
                find_fault(content)
            except TokenizerError as error:
                fault = error.sentence
            with self._lock:
                if len(self._faults) >= MAX_VERDICTS:
                    self._faults.clear()
                self._faults[key] = fault
        if fault is not None:
            raise TokenizerError(fault)


def try_out(probe: Path, content: bytes, *, library: str, seconds: float, arguments: Sequence[str] = ()) -> None:
    """Run a probe, a script with its arguments, on the bytes of a file; `library` is how messages call what reads it.

    TokenizerError if the library refuses the file, takes longer than so many seconds or dies of it.
    """
    # -P keeps the script's folder out of the search for modules; some here are named like the standard library's.
    command = [sys.executable, "-P", str(probe), *arguments]
    try:
        found = subprocess.run(
            command, input=content, capture_output=True, timeout=seconds, creationflags=NO_WINDOW, check=False
        )
    except subprocess.TimeoutExpired:
        raise TokenizerError(
            "{library} did not finish reading the file within {seconds:.0f} seconds.", library=library, seconds=seconds
        ) from None
    except OSError as error:
        raise TokenizerError(
            "{program} could not be started to test the file: {reason}.",
            reason=error.strerror,
            program=shown(sys.executable),
        ) from None
    reason = " ".join(found.stderr.decode(errors="replace").split())[-200:].rstrip(".")
    if found.returncode == 1:
        raise TokenizerError(
            "{library} cannot use this file: {reason}.", library=library, reason=reason or say("no reason given")
        )
    if found.returncode != 0:
        raise TokenizerError(
            "{library} crashed on the file (exit status {status}): it is damaged, or needs more memory than is "
            "allowed.",
            library=library,
            status=found.returncode,
        )
