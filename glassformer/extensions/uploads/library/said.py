"""Sentences as JSON, from the process that reads what was handed in to the one that shows them.

Sentences pickle, but nothing that comes out of that process may be unpickled. So they travel as their templates and
values, and what arrives is held to what a template of ours may look like: a format of huge width would be a bomb.
"""

import math
import re
from typing import Any

from transformer.i18n import Sentence, say
from transformer.i18n.sentence import Joined, Template

MOST_TEXT = 4_000
MOST_DEPTH = 8
_FIELDS = re.compile(r"\{([^{}]*)\}")
_FIELD = re.compile(r"[A-Za-z_]\w{0,40}(:[<>#0]{0,2}\d?,?(\.\d)?[A-Za-z%]?)?")


def as_data(value: object) -> Any:
    """A sentence, or a value in one, as what JSON knows; of no error is it said what a word of it is `about`."""
    if isinstance(value, Template):
        english, plural, _, values = value.made_of
        return {"say": [english, plural], "values": {name: as_data(one) for name, one in values.items()}}
    if isinstance(value, Joined):
        separator, parts = value.made_of
        return {"joined": separator, "parts": [as_data(part) for part in parts]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}  # JSON has none such
    return value if isinstance(value, bool | int | float) or value is None else str(value)


def sentence(data: Any) -> Sentence:
    """The sentence that `as_data` was given; a plain one where it is none of ours."""
    try:
        found = _value(data, 0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        found = None
    if isinstance(found, Sentence) and len(found) <= MOST_TEXT:
        return found
    return say("The files cannot be read.")


def _value(data: Any, depth: int) -> Any:
    if depth > MOST_DEPTH:
        raise ValueError("too deep")
    if isinstance(data, dict) and "number" in data:
        return float(data["number"])
    if isinstance(data, dict) and "joined" in data:
        parts = [_value(part, depth + 1) for part in data["parts"]]
        return Joined(str(data["joined"])[:10], tuple(part if isinstance(part, str) else str(part) for part in parts))
    if isinstance(data, dict):
        english, plural = data["say"]
        for text in filter(None, (english, plural)):
            _check(text)
        values = {str(name): _value(one, depth + 1) for name, one in data["values"].items()}
        return Template(english, plural, "", values)
    if isinstance(data, str) and len(data) > MOST_TEXT:
        raise ValueError("too long")
    return data


def _check(template: object) -> None:
    if not isinstance(template, str) or len(template) > MOST_TEXT:
        raise ValueError("no template")
    for field in _FIELDS.findall(template.replace("{{", "").replace("}}", "")):
        if not _FIELD.fullmatch(field):
            raise ValueError("no field of ours")
