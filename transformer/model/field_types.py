"""Whether the values of a config are of the types that its fields declare.

Types are checked by hand because values come from other people's files: JSON has no tuples, and to Python `true` is a
whole number. It knows types and names, not what they mean.
"""

from types import UnionType
from typing import Any, Literal, get_args, get_origin

from transformer.errors import ConfigError, shown
from transformer.model.checks import check_choice, check_scalar


def check_type(name: str, value: object, kind: Any) -> None:
    """Check one value.

    Args:
        kind: `int`, `float`, `bool`, a `Literal` of names, a tuple of one of these, or one of these or `None`.

    Raises:
        ConfigError: It is of another type, or none of the names.
    """
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
