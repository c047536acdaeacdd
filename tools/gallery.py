"""Writes the saved runs of `docs/gallery.md` into a folder, by the commands that the page itself shows.

    python -m tools.gallery build/docs/gallery

Each is about 1 MB, of which most is Plotly's script, so they are made with the site and are not in the repository.
"""

import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import chdir
from pathlib import Path

from transformer.__main__ import main as command

PAGE = Path(__file__).resolve().parent.parent / "docs" / "gallery.md"


def commands() -> Iterator[list[str]]:
    """The words of each command of the page, after `glassformer`."""
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", "")
    for line in re.findall(r"^glassformer (.+)$", text, flags=re.MULTILINE):
        yield shlex.split(line)


def main(folder: Path, runs: Iterable[Sequence[str]]) -> None:
    """Write the runs of these commands; SystemExit with the status of one that fails."""
    folder.mkdir(parents=True, exist_ok=True)
    with chdir(folder):
        for words in runs:
            if status := command(words, prog="glassformer"):
                raise SystemExit(status)


if __name__ == "__main__":
    main(Path(sys.argv[1]), commands())
