"""Lessons in a teacher's own words: files in a folder that is named when the app starts.

    streamlit run app.py -- --lessons DIR        or the environment variable GLASSFORMER_LESSONS

They are read again when a file changes, so that a lesson can be written while the app runs.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from transformer.lessons import Lesson, read_folder
from words import Sentence

ENVIRONMENT: Final = "GLASSFORMER_LESSONS"
OPTION: Final = "--lessons"

_Stamp = tuple[tuple[str, int, int], ...]


def folder(arguments: Sequence[str] | None = None) -> Path | None:
    """The folder of lessons; None if none was named.

    Args:
        arguments: The app's command line; the real one when not given.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    given = [after for word, after in itertools.pairwise(arguments) if word == OPTION]
    given += [word.removeprefix(OPTION + "=") for word in arguments if word.startswith(OPTION + "=")]
    named = given[-1] if given else os.environ.get(ENVIRONMENT, "")
    return Path(named).expanduser() if named else None


def read(arguments: Sequence[str] | None = None) -> tuple[Mapping[str, Lesson], tuple[Sentence, ...]]:
    """The lessons of that folder by name, and a sentence for each file that cannot be used.

    Args:
        arguments: As for `folder`.
    """
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
