"""Progress callbacks of loading."""

from collections.abc import Callable

Progress = Callable[[int, int], object]
"""Is told how many bytes of how many are loaded, as float32."""


def silent(done: int, whole: int) -> None:
    """Report no progress."""
