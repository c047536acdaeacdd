"""Checks of a config's values: each error is one sentence with the field, the value found and what was expected.

Types are checked by hand because values come from other people's files: JSON has no tuples, and Python takes `true` for
a whole number.
"""

from types import UnionType
from typing import Any, Literal, get_args, get_origin

from transformer.errors import ConfigError, shown
from transformer.i18n import say

MAX_NUMBER = 1e12
_KIND_NAMES = {int: say("a whole number"), float: say("a number"), bool: say("true or false")}


def check_scalar(name: str, value: object, kind: Any) -> None:
    """Check that a value is a number, a whole number, true or false."""
    accepted = (int, float) if kind is float else kind
    # bool is an int in Python, but `n_heads: true` is a mistake.
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        expected = _KIND_NAMES[kind]
        raise ConfigError(name, "found {found}, expected {expected}.", found=shown(value), expected=expected)


def check_number(
    name: str, value: object, *, least: float, most: float = MAX_NUMBER, above: bool = False, optional: bool = False
) -> None:
    """Check that a value is a number from (or above) the least to the most, or None if it is optional."""
    if value is None and optional:
        return
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")
    if least <= number <= most and not (above and number == least):  # false for NaN
        return
    if above:
        raise ConfigError(
            name,
            "found {found}, expected a number above {least:g} and at most {most:g}.",
            found=shown(value),
            least=least,
            most=most,
        )
    raise ConfigError(
        name, "found {found}, expected a number from {least:g} to {most:g}.", found=shown(value), least=least, most=most
    )


def check_whole(name: str, value: object, *, least: int, most: int) -> None:
    """Check that a value is a whole number from the least to the most."""
    if type(value) is not int or not least <= value <= most:  # True is an int, too
        raise ConfigError(
            name,
            "found {found}, expected a whole number from {least} to {most:,}.",
            found=shown(value),
            least=least,
            most=most,
        )


def check_layers(name: str, value: object, *, most: int) -> None:
    """Check that a value is a tuple of whole numbers from 0 to the most."""
    if not isinstance(value, tuple):
        raise ConfigError(name, "found {found}, expected a list of whole numbers.", found=shown(value))
    for number in value:
        check_whole(name, number, least=0, most=most)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Check that a value is one of a few names."""
    if value not in choices:
        raise ConfigError(
            name, "found {found}, expected one of {choices}.", found=shown(value), choices=", ".join(choices)
        )


def check_type(name: str, value: object, kind: Any) -> None:
    """Check one value: an `int`, `float`, `bool`, one of a `Literal`'s names, a tuple of one of these, or `None`."""
    if get_origin(kind) is UnionType:
        if value is not None:
            check_type(name, value, get_args(kind)[0])
    elif get_origin(kind) is tuple:
        _check_list(name, value, get_args(kind)[0])
    elif get_origin(kind) is Literal:
        check_choice(name, value, get_args(kind))
    else:
        check_scalar(name, value, kind)


def _check_list(name: str, values: object, kind: Any) -> None:
    if not isinstance(values, tuple):
        if get_origin(kind) is Literal:
            raise ConfigError(name, "found {found}, expected a list of names.", found=shown(values))
        raise ConfigError(name, "found {found}, expected a list of whole numbers.", found=shown(values))
    for value in values:
        if get_origin(kind) is Literal and not isinstance(value, str):
            raise ConfigError(name, "found {found}, expected a name.", found=shown(value))
        check_type(name, value, kind)
