"""A program in a fork of this process, in which nothing of ours is imported yet: torch need not be imported again."""

import os
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path

from tests.source_code import FOLDERS, ROOT, SCRIPTS


@dataclass(frozen=True)
class Done:
    """What became of it."""

    returncode: int
    stdout: str
    stderr: str


def run_afresh(program: str, *arguments: str, folder: Path = ROOT) -> Done:
    """Run a program in a folder; modules of other libraries are those that this process has imported."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            os._exit(_run(program, arguments, folder))
        _, status = os.waitpid(child, 0)
        return Done(os.waitstatus_to_exitcode(status), *(file.seek(0) or file.read() for file in (out, err)))


def _run(program: str, arguments: tuple[str, ...], folder: Path) -> int:
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
    try:
        os.chdir(folder)
        for name in filter(_is_ours, [*sys.modules]):
            del sys.modules[name]
        sys.meta_path[:] = [finder for finder in sys.meta_path if not _is_ours(getattr(finder, "__module__", ""))]
        sys.argv = ["-c", *arguments]
        exec(program, {"__name__": "__main__"})
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in (*FOLDERS, *SCRIPTS)
