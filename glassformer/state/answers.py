"""Query parameter `answers`: the user's answers to import questions.

A value that is not a text is written as JSON; a text that could be read as one is quoted. The import decides whether
an answer is valid.
"""

import json
import math
import re
from urllib.parse import quote, unquote

Answer = bool | int | float | str | None
Answers = tuple[tuple[str, Answer], ...]

LONGEST = 4_000  # characters in an address
MOST = 60
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LONGEST_VALUE = 300  # a path
_PLAIN = "/ ._:-+"  # beside letters and numbers, what needs no escape


def write(answers: Answers) -> str:
    """Answers as text; `read` reads it."""
    return ",".join(f"{name}={quote(_written(value), safe=_PLAIN)}" for name, value in answers)


def read(text: str) -> Answers | None:
    """The answers that a text says; None if it says something else, or one field twice."""
    found: dict[str, Answer] = {}
    for part in text.split(",") if text else ():
        name, equals, value = part.partition("=")
        value = unquote(value)
        if not equals or not _NAME.fullmatch(name) or name in found or not 0 < len(value) <= _LONGEST_VALUE:
            return None
        found[name] = value_of(value)
    return tuple(found.items()) if len(found) <= MOST else None


def value_of(text: str) -> Answer:
    """The value that a text stands for: true, false, null, a number, or a text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, float) and not math.isfinite(value):
        return text
    return value if value is None or isinstance(value, bool | int | float | str) else text


def with_answer(answers: Answers, name: str, value: Answer) -> Answers:
    """Answers with another one, in the order in which they were given."""
    return tuple({**dict(answers), name: value}.items())


def without(answers: Answers, name: str) -> Answers:
    """Answers without one of them."""
    return tuple((one, value) for one, value in answers if one != name)


def _written(value: Answer) -> str:
    if isinstance(value, str) and value_of(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)
