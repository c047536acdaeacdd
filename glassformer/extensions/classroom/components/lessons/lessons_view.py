"""What the browser remembers of a learner's answers, and which chart it brings into sight; draws nothing.

The modules of `view.js` keep them in localStorage, say once what they found there, and write what Python adds.
"""

from collections.abc import Callable, Sequence
from typing import Any

from glassformer.components.element import Element, told_text

_MEMORY = Element("lesson_memory")


def lesson_memory(
    # Of each: the step, a digest of the run, the choice, whether it is right, a fingerprint of the question.
    rows: Sequence[Sequence[Any]],
    *,
    key: str,
    forgotten: int,  # how often all was forgotten; when it grows, the browser forgets too
    opened: str,  # the step that is open; "" for none
    look: Sequence[str],  # keys of the charts that it points at
    # Called when the browser has said what it remembers; `remembered(key)` tells it.
    on_news: Callable[[], None],
) -> None:
    """Have the browser remember answers, and bring what a step points at into sight when it first stands there."""
    payload = {"rows": [list(row) for row in rows], "forgotten": forgotten, "open": opened, "look": list(look)}
    _MEMORY.draw(payload, key=key, hears={"answers": on_news})


def remembered(key: str) -> str:
    """What the browser remembers; for use inside an `on_news` callback."""
    return told_text(key, "answers")
