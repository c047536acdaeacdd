"""Numbers as people write them: with a minus, not a hyphen, and with powers of ten."""

from __future__ import annotations

import re

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_POWER = re.compile(r"(?<=\d)e([+-]\d+)")


def written(text: str) -> str:
    """A number in Python's writing as people write it: -1.4e-06 becomes −1.4 × 10⁻⁶."""
    with_powers = _POWER.sub(lambda found: f" × 10{str(int(found[1])).translate(_RAISED)}", text)
    return with_powers.replace("-", "−", 1) if text.startswith("-") else with_powers
