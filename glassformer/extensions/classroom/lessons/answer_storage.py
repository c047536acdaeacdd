"""Answers kept in the browser's local storage; nothing is stored on the server.

For each answer: the step, a digest of the run, the choice, whether it was right, a fingerprint of the question. Data
from a browser is not trusted: other shapes are skipped. `view.js` reads and writes localStorage.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import streamlit as st

from glassformer.components.custom_component import Element, told_text
from glassformer.extensions.classroom import lesson, predictions
from glassformer.extensions.classroom.lessons import step_links
from glassformer.extensions.classroom.predictions import Key, Prediction

MEMORY: Final = "lesson_memory"
_MEMORY: Final = Element(MEMORY)
LONGEST: Final = 100_000  # characters
_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}\.[1-9][0-9]?", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{8}", re.ASCII)
_LONGEST_CHOICE: Final = 100


def mount(page: str) -> None:
    """Have the browser remember what the session knows, say what it remembers, and show what a step is about."""
    here, step = lesson.place(), lesson.scene()
    at_the_step = step is not None and step.page == page
    payload = {
        "rows": [[name, run, one.choice, one.right, one.text] for (name, run), one in predictions.kept().items()],
        "forgotten": st.session_state.get(predictions.FORGOTTEN, 0),  # when it grows, the browser forgets too
        "open": here.name if here is not None and at_the_step else "",
        "look": list(step.look) if step is not None and at_the_step else [],
    }
    _MEMORY.draw(payload, key=MEMORY, hears={"answers": _heard})


def _heard() -> None:
    """Callback: the browser says what it remembers; what the session knows goes before it."""
    if told := told_text(MEMORY, "answers"):
        known = predictions.kept()
        predictions.keep(dict(read(told)) | dict(known))
        step_links.news()


def read(text: str) -> Iterator[tuple[Key, Prediction]]:
    """The answers that a browser remembers, as it wrote them."""
    try:
        rows: Any = json.loads(text) if len(text) <= LONGEST else []
    except (ValueError, RecursionError):
        return
    for row in rows[: predictions.MOST] if isinstance(rows, list) else ():
        if not isinstance(row, list) or len(row) != 5:
            continue
        name, run, choice, right, fingerprint = row
        texts = all(isinstance(one, str) for one in (name, run, choice, fingerprint))
        if not texts or not isinstance(right, bool) or len(choice) > _LONGEST_CHOICE:
            continue
        if _NAME.fullmatch(name) and _DIGEST.fullmatch(run) and _DIGEST.fullmatch(fingerprint):
            yield (name, run), Prediction(choice, right, fingerprint)
