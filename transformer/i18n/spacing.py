"""Spaces of Chinese: none between two Chinese characters, nor next to full-width punctuation.

Translators write a space between Chinese and a `{value}`, as the value may be Latin or a number. Where it turns out
to be Chinese, the space goes. Spaces inside a value, such as those of a typed sentence, stay as they are.

Source: W3C, "Requirements for Chinese Text Layout" (https://www.w3.org/TR/clreq/), sections 3.1 and 3.2.2.
"""

import re
import string
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

CHINESE: Final = "zh"

_WIDE = r"\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uff01-\uff60“”‘’…"
_AT_THE_END = re.compile(rf"[{_WIDE}]$")
_AT_THE_START = re.compile(rf"[{_WIDE}]")
_A_SENTENCE_ENDS = re.compile(r"[。！？；：，、]$")
_SEPARATORS: Final = {", ": "、", "; ": "；", ": ": "："}
"""What stands between two Chinese texts instead."""


def filled(template: str, values: Mapping[str, Any]) -> str:
    """Fill a Chinese template with values that are already in Chinese."""
    parts: list[str] = []
    for literal, name, form in _parsed(template):
        parts.append(literal)
        if name is not None:
            parts.append(f"{{0:{form}}}".format(values[name]))
    return closed_up(parts)


def closed_up(parts: Iterable[str]) -> str:
    """Texts in a row; a space where one meets the next goes if it would stand between two Chinese characters."""
    text = ""
    for part in filter(None, parts):
        if text.endswith(" ") and _AT_THE_START.match(part) and _AT_THE_END.search(text[:-1]):
            text = text[:-1]
        elif part.startswith(" ") and _AT_THE_START.match(part[1:]) and _AT_THE_END.search(text):
            part = part[1:]
        text += part
    return text


def joined(separator: str, parts: Iterable[str]) -> str:
    """Chinese texts in a row, with the separator that Chinese writes for this English one."""
    text = ""
    for place, part in enumerate(parts):
        text += (_between(text, separator, part) if place else "") + part
    return text


def _between(before: str, separator: str, after: str) -> str:
    if separator == " ":  # pieces of a sentence stay apart, sentences do not
        return "" if _A_SENTENCE_ENDS.search(before) else separator
    numbers = before[-1:].isdigit() and after[:1].isdigit()
    wide = numbers or _AT_THE_END.search(before) or _AT_THE_START.match(after)
    return _SEPARATORS.get(separator, separator) if wide else separator


@lru_cache(maxsize=8192)
def _parsed(template: str) -> tuple[tuple[str, str | None, str], ...]:
    return tuple((literal, name, form or "") for literal, name, form, _ in string.Formatter().parse(template))
