"""Safe parsing of untrusted YAML, whose aliases are refused.

Source: YAML 1.2, PyYAML's safe subset; aliases are refused, because a few of them can expand to any size.
"""

from typing import Any, ClassVar

import yaml  # type: ignore[import-untyped]

from transformer.errors import ClauseError, shown


class _Loader(yaml.SafeLoader):
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise ClauseError("it has an alias (*name), which is refused; write the value itself there")
        return super().compose_node(parent, index)


class _Words(_Loader):
    """The same, with every value as its literal text."""

    yaml_implicit_resolvers: ClassVar[Any] = {}


def parsed(content: bytes | str, *, words: bool = False) -> Any:
    """The content of YAML; with `words` every value is its literal text."""
    try:
        return yaml.load(content, _Words if words else _Loader)
    except ClauseError as error:
        raise ClauseError("cannot be used: {problem}", problem=error.sentence) from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, UnicodeError, OverflowError, KeyError) as error:
        problem = shown(str(error).split("\n", 1)[0] or type(error).__name__)
        raise ClauseError("cannot be read as YAML: {problem}", problem=problem) from None
