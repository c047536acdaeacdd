"""Find a browser that Playwright can drive, or install one.

The browser tests use the Chromium that a machine already has: Playwright's own download is the last resort,
as it is large and often not allowed. Run as a script, it prints the path:

    python tools/browser.py            # find, or fail with one sentence
    python tools/browser.py --ensure   # find, else install

What it does not know: whether the browser found is recent enough. Playwright says so when it starts it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
REMEDY = (
    "No browser found for the browser tests: install Chromium or Chrome, or set CHROME to the path of one,"
    " or leave CHROME unset and run `python tools/browser.py --ensure`."
)
# Chinese text is part of what is tested; without a font for it every piece would be an empty box.
CJK_FONT_PACKAGE = "fonts-noto-cjk"


def find_browser() -> str | None:
    """Return the path of a Chromium-like browser, or None.

    `$CHROME`, when set, is the only candidate: a wrong value should be noticed, not papered over.
    """
    chosen = os.environ.get("CHROME")
    if chosen:
        return shutil.which(chosen)
    on_path = (shutil.which(name) for name in NAMES)
    in_places = (place for place in PLACES if Path(place).is_file())
    return next(filter(None, on_path), None) or next(in_places, None) or _playwrights_own()


def _playwrights_own() -> str | None:
    """Return the browser that Playwright downloaded earlier, if any."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


def ensure_browser() -> str | None:
    """Return the path of a browser, installing one (and a font for Chinese) where that is possible."""
    found = find_browser()
    if found is None and os.environ.get("CHROME"):
        return None  # installing another browser would not make the variable right
    apt = apt_get()
    wanted = ([] if found else ["chromium"]) + ([] if _has_cjk_font() else [CJK_FONT_PACKAGE])
    if apt and wanted:
        # Lists may be missing altogether on a fresh container, so they are fetched first.
        run([*apt, "update"])
        for package in wanted:  # one by one: a missing font must not cost us the browser
            run([*apt, "install", "--yes", "--no-install-recommends", package])
    if not find_browser():  # no Debian, or one without this package: Ubuntu has it only as a snap
        run([sys.executable, "-m", "playwright", "install", "chromium"])
    return find_browser()


def apt_get() -> list[str] | None:
    """Return the command that may install Debian packages without asking, or None."""
    if not shutil.which("apt-get"):
        return None
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    if os.geteuid() == 0:
        return quiet
    may_sudo = shutil.which("sudo") and run(["sudo", "-n", "true"])
    return ["sudo", "-n", *quiet] if may_sudo else None


def _has_cjk_font() -> bool:
    """Tell whether some font can draw Chinese; True where fontconfig cannot be asked."""
    if not shutil.which("fc-list"):
        return sys.platform != "linux"
    listed = subprocess.run(["fc-list", ":lang=zh", "family"], capture_output=True, text=True, check=False)
    return bool(listed.stdout.strip())


def run(command: Sequence[str]) -> bool:
    """Run a command with its output on stderr (stdout is for the path); return whether it succeeded."""
    return subprocess.run(command, stdout=sys.stderr, check=False).returncode == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the path of a browser; 0 if there is one."""
    parser = argparse.ArgumentParser(description="Find a browser for the browser tests.")
    parser.add_argument("--ensure", action="store_true", help="install one if there is none")
    options = parser.parse_args(arguments)
    path = ensure_browser() if options.ensure else find_browser()
    print(path if path else REMEDY, file=sys.stdout if path else sys.stderr)
    return 0 if path else 1


if __name__ == "__main__":
    sys.exit(main())
