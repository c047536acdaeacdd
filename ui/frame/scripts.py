"""Which checkpoint reads what was typed, told by its letters.

A checkpoint's own examples say which letters it reads. That knows Chinese from English, and not English from French.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

_IDEOGRAPHS = "CJK"
_ENOUGH = 0.5


def scripts(text: str) -> Counter[str]:
    """How much of a text is written in each script, such as "LATIN": in words, or ideographs, which are as much."""
    found: Counter[str] = Counter()
    for script, letters in groupby(text, key=_script):
        if script:
            found[script] += len(list(letters)) if script == _IDEOGRAPHS else 1
    return found


def share(text: str, examples: Iterable[str]) -> float:
    """How much of a text is written as the examples are, from 0 to 1; 1 if nothing can be said of it."""
    written, read = scripts(text), scripts(" ".join(examples))
    if not written or not read:
        return 1.0
    return sum(count for script, count in written.items() if script in read) / written.total()


def reader(text: str, here: Sequence[str], others: Mapping[str, Sequence[str]]) -> str | None:
    """The name of the first checkpoint that reads what the one at hand does not, told by their examples.

    None if the one at hand reads the text, or nobody does.
    """
    if share(text, here) >= _ENOUGH:
        return None
    fitting = (name for name, examples in others.items() if examples and share(text, examples) > _ENOUGH)
    return next(fitting, None)


def _script(letter: str) -> str:
    """The first word of a letter's name says its script; empty for what is no letter."""
    return unicodedata.name(letter, "").partition(" ")[0] if letter.isalpha() else ""
