"""Find the programs that the tests of several replicas start, or install them where that is possible.

    python -m tools.programs            # find, or fail with one sentence
    python -m tools.programs --ensure   # find, else install Debian's packages

The tests start their own on free ports. Debian's packages also start a service each, which no test uses.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence

from tools.browser import apt_get, run

PROGRAMS = {"redis-server": "redis-server", "haproxy": "haproxy"}  # with the package that has it
PATH = "/usr/sbin"  # where haproxy is, which not everybody's PATH has


def find(program: str) -> str | None:
    """The path of a program; None if it is not installed."""
    return shutil.which(program) or shutil.which(program, path=PATH)


def missing() -> list[str]:
    """Those that are not there."""
    return [program for program in PROGRAMS if find(program) is None]


def ensure() -> list[str]:
    """Install what is missing, where that may be done without asking; what is missing still."""
    packages, apt = [PROGRAMS[program] for program in missing()], apt_get()
    if packages and apt:
        run([*apt, "update"])
        run([*apt, "install", "--yes", "--no-install-recommends", *packages])
    return missing()


def main(arguments: Sequence[str] | None = None) -> int:
    """Say what is missing; 0 if nothing is."""
    parser = argparse.ArgumentParser(description="Find the programs that tests of several replicas start.")
    parser.add_argument("--ensure", action="store_true", help="install those that are not there")
    left = ensure() if parser.parse_args(arguments).ensure else missing()
    if left:
        print(f"Tests of several replicas need {' and '.join(left)}: install the packages.", file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
