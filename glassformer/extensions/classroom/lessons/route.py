"""Which step comes before and after which: in a lesson, or on the short path through several.

Knows nothing of Streamlit.
"""

from collections.abc import Mapping
from typing import Final

from glassformer.extensions.classroom.lesson import Place
from glassformer.extensions.lessons.library import Lesson
from glassformer.extensions.lessons.library.path import short_path

SHORT_MINUTES: Final = short_path().minutes


def places(lessons: Mapping[str, Lesson], name: str, *, short: bool) -> tuple[Place, ...]:
    """The steps of a lesson, or all of the short path, in their order."""
    if not short:
        return tuple(Place(name, n) for n in range(1, len(lessons[name].steps) + 1))
    return tuple(
        Place(one.name, n, short=True)
        for one in lessons.values()
        for n, step in enumerate(one.steps, 1)
        if step.short
    )


def around(lessons: Mapping[str, Lesson], here: Place) -> tuple[int, int, Place | None, Place | None]:
    """Where a step stands: its number, how many there are, and the steps before and after it.

    One that the short path leaves out stands in its lesson.
    """
    row = places(lessons, here.lesson, short=here.short)
    names = [place.name for place in row]
    if here.name not in names:
        row = places(lessons, here.lesson, short=False)
        names = [place.name for place in row]
    at = names.index(here.name)
    before = row[at - 1] if at else None
    after = row[at + 1] if at + 1 < len(row) else None
    return at + 1, len(row), before, after
