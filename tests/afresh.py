"""A program in a fork of this process, in which nothing of ours is imported yet, or in a process of its own."""

import os
import subprocess
import sys
import tempfile
import traceback
from typing import NamedTuple

from tests.source_code import FOLDERS, ROOT, SCRIPTS


class Done(NamedTuple):
    """What became of it."""

    returncode: int
    stdout: str
    stderr: str


def run_afresh(program, *arguments, folder=ROOT):
    """Run a program in a folder; modules of other libraries, such as torch, are those that this process has imported.

    It must not draw pages: what Streamlit has done in this process is done in the fork, too.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            os._exit(_run(program, arguments, folder))
        _, status = os.waitpid(child, 0)
        return Done(os.waitstatus_to_exitcode(status), *(file.seek(0) or file.read() for file in (out, err)))


def run_apart(program, *arguments, folder):
    """Run a program in a folder, in a process that has imported nothing; it may draw pages."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=600)
    return Done(done.returncode, done.stdout, done.stderr)


def _run(program, arguments, folder):
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


def _is_ours(module):
    return module.partition(".")[0] in (*FOLDERS, *SCRIPTS)
