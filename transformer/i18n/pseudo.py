"""The pseudo-language: each sentence in ⟦…⟧ and a third longer, its values untouched.

It needs no catalogue and no translator. Text outside the brackets did not go through `say`, two brackets in one line
are a sentence glued together, and what is cut off or runs over would be so in German too. A nested sentence is in ‹…›.
Tags, entities, icons, code, formulas and places of values stay unchanged.
"""

import re
from functools import lru_cache

OPEN, CLOSE = "⟦", "⟧"
OPEN_NESTED, CLOSE_NESTED = "‹", "›"

_KEPT = re.compile(
    r"<[^<>]+>"  # a tag
    r"|&\#?\w+;"  # an entity
    r"|:[a-z_]+(?:/[a-z_]+)?:"  # Streamlit's icons
    r"|:[a-z]+(?=\[)"  # Streamlit's colours
    r"|\{\{|\}\}|%?\{[^{}]*\}"  # braces, and places of values
    r"|`[^`]*`|\$[^$]+\$"  # code, formulas
    r"|(?<=\])\([^()\s]*\)"  # the URL of a link
)
_VOWEL = re.compile(r"[aeiou]", re.IGNORECASE)
# Markdown reads a heading or a list by how a line begins.
_BLOCK = re.compile(r"\s*(?:\#{1,6}|[-*>]|\d+\.) ")


@lru_cache(maxsize=4096)
def longer(template: str) -> str:
    """A template with each vowel twice, and dots where that is less than a third more."""
    parts = _KEPT.split(template)
    kept = [*_KEPT.findall(template), ""]
    doubled = [_VOWEL.sub(lambda found: found.group() + found.group().lower(), part) for part in parts]
    short = sum(map(len, parts)) / 3 - sum(map(len, doubled)) + sum(map(len, parts))
    return "".join(part + mark for part, mark in zip(doubled, kept, strict=True)) + "·" * max(0, round(short))


def marked(text: str, *, nested: bool) -> str:
    """A filled template in its brackets, others inside another sentence."""
    if nested:
        return f"{OPEN_NESTED}{text}{CLOSE_NESTED}"
    block = _BLOCK.match(text)
    start = block.group() if block else ""
    return f"{start}{OPEN}{text[len(start) :]}{CLOSE}"
