"""A folder of lessons that somebody wrote for a class; one with steps `from` others is a path through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from transformer.errors import shown
from transformer.lessons.lesson import Lesson, LessonError
from transformer.lessons.lesson_files import lesson_of, lessons, parsed
from words import Sentence, say

MAX_FILES: Final = 100


def read_folder(folder: Path) -> tuple[Mapping[str, Lesson], tuple[Sentence, ...]]:
    """Lessons that somebody wrote for a class: every TOML file of a folder, in the order of their names.

    Their texts may be given in one language only.

    Returns:
        The lessons by name, and a sentence for each file that cannot be used.
    """
    files = sorted(folder.glob("*.toml"))[:MAX_FILES]
    if not files:
        return {}, (say("The folder of lessons {folder} holds no .toml file.", folder=shown(str(folder))),)
    left, found, problems = dict[Path, Any](), dict[Path, Lesson](), dict[Path, Sentence]()
    for file in files:
        try:
            left[file] = parsed(file)
        except LessonError as error:
            problems[file] = error.sentence
    while left:  # a path may take steps of a file that is read after it
        names = {str(record.get("name")) for record in left.values()}
        ready = [file for file, record in left.items() if not names & _taken_from(record)] or list(left)
        for file in ready:
            try:
                found[file] = _own(file, left.pop(file), [*lessons().values(), *found.values()])
            except LessonError as error:
                problems[file] = error.sentence
    own = {found[file].name: found[file] for file in files if file in found}
    return own, tuple(problems[file] for file in files if file in problems)


def _taken_from(record: Mapping[str, Any]) -> set[str]:
    """The lessons that a record takes steps from."""
    steps = record.get("step")
    named = [step.get("from") for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    return {name.partition(".")[0] for name in named if isinstance(name, str)}


def _own(file: Path, record: Mapping[str, Any], known: Sequence[Lesson]) -> Lesson:
    """Read a lesson that somebody wrote.

    Args:
        known: The lessons that it may take steps from, and whose names it may not have.

    Raises:
        LessonError: It cannot be used.
    """
    by_name = {one.name: one for one in known}
    lesson = lesson_of(record, file.name, languages=(), known=by_name)
    if lesson.name in by_name:
        raise LessonError(
            "The lesson {file} cannot be used: its name {name} is that of another lesson; choose another.",
            file=file.name,
            name=shown(lesson.name),
        )
    return lesson
