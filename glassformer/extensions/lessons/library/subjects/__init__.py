"""Registry by name of lesson functions: picks (what a step looks at in a run) and oracles (right answers).

A pick finds what a step looks at in a learner's own run: a pure function of a case that gives named values for the
step's link and texts. An oracle computes the right answer from that run, with the choices, the values for the texts,
and the variant that occurred. Any public function of a case is one of the two, by its return type.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any, Final

from glassformer.extensions.lessons.library.lesson import Answer, Case

Oracle = Callable[[Case], Answer]
Pick = Callable[[Case], Mapping[str, Any]]

_NAMES: Final = (  # as a list of them is shown
    *("decoding_questions", "looking_questions", "weights_questions", "heads_questions", "positions_questions"),
    *("masks_questions", "cost_questions", "inside_questions", "training_questions"),
)


@cache
def oracles() -> Mapping[str, Oracle]:
    """All oracles by their names; their modules are imported when the first lesson is read."""
    return _functions(gives=Answer)


@cache
def picks() -> Mapping[str, Pick]:
    """All picks by their names."""
    return _functions(gives=dict[str, Any])


def _functions(*, gives: object) -> dict[str, Any]:
    modules = [import_module(f"{__name__}.{name}") for name in _NAMES]
    return {
        name: one
        for module in modules
        for name, one in vars(module).items()
        if getattr(one, "__module__", "") == module.__name__
        and isinstance(one, FunctionType)
        and not name.startswith("_")
        and one.__annotations__ == {"case": Case, "return": gives}
    }
