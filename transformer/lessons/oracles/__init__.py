"""Oracles: what is right, computed from the learner's own run.

Each is a pure function of a case. It gives the right answer, the choices and the values that the texts name, and says
by its variant which outcome occurred. A new one: write it in the module of its subject, and list it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from transformer.lessons.case import Answer, Case
from transformer.lessons.oracles import (
    building,
    caching,
    choosing,
    clocks,
    cost,
    decoding,
    faults,
    heads,
    looking,
    masks,
    neurons,
    order,
    pieces,
    recipe,
    scaling,
    stream,
    training,
    weights,
)

Oracle = Callable[[Case], Answer]

_IN = (  # a module a line of thought; each lists its own
    decoding,
    looking,
    weights,
    scaling,
    heads,
    order,
    masks,
    choosing,
    clocks,
    cost,
    stream,
    neurons,
    training,
    faults,
    building,
    caching,
    pieces,
    recipe,
)

ORACLES: Final[Mapping[str, Oracle]] = {oracle.__name__: oracle for module in _IN for oracle in module.ORACLES}
