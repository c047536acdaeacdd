"""What tests of the doctor measure on the shipped checkpoints: the numbers in sentences about them.

No such number is typed. `python -m tools.calibrate` examines the checkpoints with the examples of their cards and
writes `calibrated.json`, a number for each test and checkpoint; a checkpoint in which a test finds something is left
out there. A test examines them again and compares. Sentences round outwards and leave room for another processor's
rounding, so that no checkpoint contradicts them.
"""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("calibrated.json")
ROOM: Final = 0.005
"""Share of a number that another processor may change it by."""


@cache
def record() -> dict[str, Any]:
    """What the file says: content hashes by checkpoint, and numbers by test and checkpoint."""
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


def at_most(*tests: str) -> float:
    """No shipped checkpoint has a larger number in these tests, in two digits; NaN if none was measured."""
    return _rounded(max(_numbers(tests), default=math.nan), 1)


def at_least(*tests: str) -> float:
    """No shipped checkpoint has a smaller number in these tests, in two digits; NaN if none was measured."""
    return _rounded(min(_numbers(tests), default=math.nan), -1)


def _numbers(tests: tuple[str, ...]) -> list[float]:
    return [number for test in tests for number in record()["numbers"].get(test, {}).values()]


def _rounded(number: float, way: int) -> float:
    """A number in two digits, up (1) or down (-1), by at least `ROOM` of it."""
    number = way * number + ROOM * abs(number)  # down is up of its opposite
    if number == 0 or math.isnan(number):
        return number
    digits = 1 - math.floor(math.log10(abs(number)))
    return way * float(f"{math.ceil(round(number * 10.0**digits, 6))}e{-digits}")
