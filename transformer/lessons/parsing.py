"""Parse a file of a lesson as TOML; what it says is not known here.

Source: TOML 1.0 (https://toml.io/en/v1.0.0).
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from transformer.lessons.lesson import LessonError

MAX_BYTES: Final = 200_000
MAX_DOTS: Final = 200  # of a line: all beginnings of a dotted key are kept, and 100,000 of them fill any memory


def parsed(file: Path) -> dict[str, Any]:
    """What a file holds.

    Raises:
        LessonError: It cannot be read, is too large or is no TOML; says so of this file.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise LessonError(
            "{file} cannot be read: {problem}.", file=file.name, problem=error.strerror or "?"
        ) from error
    if len(content) > MAX_BYTES:
        raise LessonError(
            "{file} has more than {most:,} bytes, and a lesson may not; split it.", file=file.name, most=MAX_BYTES
        )
    dots = max(line.count(b".") for line in content.split(b"\n"))
    if dots > MAX_DOTS:
        raise LessonError(
            "{file} has a line with {n:,} dots; at most {most} are read. Split the line.",
            file=file.name,
            n=dots,
            most=MAX_DOTS,
        )
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML, or a number of thousands of digits
        raise LessonError("{file} is no TOML: {problem}", file=file.name, problem=str(error)[:200]) from error
