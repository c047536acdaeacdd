"""Names of files that somebody hands in: which are taken literally, and which are refused before anything is opened.

A name is data. It becomes the name of a file in one folder of ours and nothing else, so it has no folders in it, no
hidden beginning, and nothing that another system would read as the same name.
"""

import unicodedata
from collections.abc import Iterable

from transformer.errors import CheckpointError, shown
from transformer.importers.handed_in.handed_limits import NAME_BYTES

JUNK = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")  # what systems leave in folders and archives


def check_name(name: str) -> None:
    """Refuse a file's name that has a folder in it, is hidden, cannot be printed or is too long."""
    problem = not name or name in (".", "..") or any(mark in name for mark in "/\\\0") or not name.isprintable()
    if (
        problem
        or len(name.encode(errors="replace")) > NAME_BYTES
        or any("\ud800" <= mark <= "\udfff" for mark in name)
    ):
        raise CheckpointError(
            "{name}: cannot be the name of a file here; expected 1 to {most} bytes of printable letters without "
            "slashes. Rename it.",
            name=shown(name),
            most=NAME_BYTES,
        )


def check_all_differ(names: Iterable[str]) -> None:
    """Refuse names of which two are one on some system: they differ in case or accents' spelling alone."""
    seen: dict[str, str] = {}
    for name in names:
        key = unicodedata.normalize("NFKC", name).casefold()
        if key in seen:
            raise CheckpointError(
                "{name} and {other}: two files with one name; leave one of them out, or rename it.",
                name=shown(seen[key]),
                other=shown(name),
            )
        seen[key] = name


def is_junk(name: str) -> bool:
    """Whether a file is what a system leaves behind, or hidden: nobody means to hand it in."""
    return any(part in JUNK or part.startswith(".") for part in name.split("/"))
