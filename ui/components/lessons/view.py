"""What the browser remembers of a learner's answers, and which chart it brings into sight; draws nothing.

The modules of `view.js` keep them in localStorage, say once what they found there, and write what Python adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from ui.components.assets import loader, wrapped

_MOUNT = st.components.v2.component("glassformer_lesson_memory", js=loader("lesson_memory"))


def lesson_memory(
    rows: Sequence[Sequence[Any]],
    *,
    key: str,
    forgotten: int,
    opened: str,
    look: Sequence[str],
    on_news: Callable[[], None],
) -> None:
    """Have the browser remember answers, and bring what a step points at into sight when it first stands there.

    Args:
        rows: Of each: the step, a digest of the run, the choice, whether it is right, a fingerprint of the question.
        key: Names this place on the page.
        forgotten: How often all was forgotten; when it grows, the browser forgets too.
        opened: The step that is open; "" for none.
        look: Keys of the charts that it points at.
        on_news: Called when the browser has said what it remembers; the component's state has it as `answers`.
    """
    payload = {
        "rows": [list(row) for row in rows],
        "forgotten": forgotten,
        "open": opened,
        "look": list(look),
    }
    _MOUNT(key=key, data=wrapped(payload), on_answers_change=on_news)
