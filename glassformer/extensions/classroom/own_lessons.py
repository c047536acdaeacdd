"""Lessons in a teacher's own words: files in a folder that is named when the app starts.

    streamlit run app.py -- --lessons DIR        or the environment variable GLASSFORMER_LESSONS

They are read again when a file changes, so that a lesson can be written while the app runs.
"""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from glassformer.extensions.lessons.library import Lesson, read_folder
from glassformer.server.command_line import values
from transformer.i18n import Sentence

ENVIRONMENT: Final = "GLASSFORMER_LESSONS"
OPTION: Final = "--lessons"

_Stamp = tuple[tuple[str, int, int], ...]


def folder(arguments: Sequence[str] | None = None) -> Path | None:
    """The folder of lessons that the command line names, the real one when none is given; None if none was named."""
    named = [os.environ.get(ENVIRONMENT, ""), *values(OPTION, arguments)][-1]
    return Path(named).expanduser() if named else None


def read(arguments: Sequence[str] | None = None) -> tuple[Mapping[str, Lesson], tuple[Sentence, ...]]:
    """The lessons of that folder by name, and a sentence for each file that cannot be used."""
    where = folder(arguments)
    return ({}, ()) if where is None else _read(where, _stamp(where))


def _stamp(where: Path) -> _Stamp:
    """Changes when a file does."""
    try:
        return tuple(
            sorted((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in where.glob("*.toml"))
        )
    except OSError:
        return ()


@lru_cache(maxsize=8)
def _read(where: Path, stamp: _Stamp) -> tuple[Mapping[str, Lesson], tuple[Sentence, ...]]:
    return read_folder(where)
