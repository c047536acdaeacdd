"""Picks: what in a learner's own run a step of a lesson looks at.

Each is a pure function of a case and gives named values; the step's link and its texts name them.
A new one: write it in the module of its subject, and list it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from transformer.lessons.case import Case
from transformer.lessons.picks import (
    choosing,
    clocks,
    cost,
    faults,
    heads,
    inside,
    looking,
    masks,
    order,
    pieces,
    steps,
    training,
    weights,
)

Pick = Callable[[Case], Mapping[str, Any]]

_IN = (  # a module a line of thought; each lists its own
    steps,
    looking,
    weights,
    heads,
    order,
    masks,
    choosing,
    clocks,
    cost,
    inside,
    training,
    faults,
    pieces,
)

PICKS: Final[Mapping[str, Pick]] = {pick.__name__: pick for module in _IN for pick in module.PICKS}
