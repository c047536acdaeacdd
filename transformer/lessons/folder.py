"""A folder of lessons that somebody wrote for a class; one with steps `from` others is a path through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from transformer.errors import shown
from transformer.lessons.lesson import Lesson, LessonError
from transformer.lessons.reading import lessons, read_lesson
from words import Sentence, say

MAX_FILES: Final = 100


def read_folder(folder: Path) -> tuple[Mapping[str, Lesson], tuple[Sentence, ...]]:
    """Lessons that somebody wrote for a class: every TOML file of a folder, in the order of their names.

    Their texts may be given in one language only.

    Args:
        folder: The folder.

    Returns:
        The lessons by name, and a sentence for each file that cannot be used.
    """
    files = sorted(folder.glob("*.toml"))[:MAX_FILES]
    if not files:
        return {}, (say("The folder of lessons {folder} holds no .toml file.", folder=shown(str(folder))),)
    found: dict[Path, Lesson] = {}
    left, problems = files, dict[Path, Sentence]()
    while left:  # a path may take steps of a file that is read after it
        problems = {}
        for file in left:
            try:
                found[file] = _own(file, [*lessons().values(), *found.values()])
            except LessonError as error:
                problems[file] = error.sentence
        if len(problems) == len(left):
            break
        left = list(problems)
    own = {found[file].name: found[file] for file in files if file in found}
    return own, tuple(problems[file] for file in files if file in problems)


def _own(file: Path, known: Sequence[Lesson]) -> Lesson:
    """Read a lesson that somebody wrote.

    Args:
        file: Its file.
        known: The lessons that it may take steps from, and whose names it may not have.

    Raises:
        LessonError: It cannot be used.
    """
    by_name = {one.name: one for one in known}
    lesson = read_lesson(file, languages=(), known=by_name)
    if lesson.name in by_name:
        raise LessonError(
            "The lesson {file} cannot be used: its name {name} is that of another lesson; choose another.",
            file=file.name,
            name=shown(lesson.name),
        )
    return lesson
