"""One sentence refuses what cannot be: it begins with the name of what is at fault, and is short."""

from collections.abc import Callable
from typing import Any

import pytest

from transformer.errors import CheckpointError

LONGEST = 500  # characters


def assert_sentence(error: Exception, begins: str | tuple[str, ...] = "", *, most: int = LONGEST) -> str:
    """The text of an error that is one sentence."""
    text = str(error)
    assert text.startswith(begins)
    assert "\n" not in text
    assert len(text) < most
    return text


def refusal(
    call: Callable[[], Any],
    says: str | None = None,
    begins: str = "",
    kind: type[Exception] = CheckpointError,
    *,
    most: int = LONGEST,
) -> str:
    """The sentence with which a call is refused; `says` is a pattern."""
    with pytest.raises(kind, match=says) as caught:
        call()
    return assert_sentence(caught.value, begins, most=most)


def made_or_refused(
    call: Callable[[], Any], begins: str | tuple[str, ...], kind: type[Exception] = CheckpointError
) -> Any:
    """What a call makes, or None where it is refused in such a sentence."""
    try:
        return call()
    except kind as error:
        assert_sentence(error, begins, most=2_000)
    return None
