"""How often something may be done: so many at once, and then so many a second.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Callable


class Bucket:
    """Tokens that refill; not locked, whoever holds it is.

    Args:
        most: That may be taken at once.
        per_second: That come back.
        clock: Says what time it is, in seconds.
    """

    def __init__(self, most: float, *, per_second: float, clock: Callable[[], float]) -> None:
        self._most, self._per_second, self._clock = most, per_second, clock
        self._left, self._since = most, clock()

    def take(self) -> bool:
        """Take one; whether there was one."""
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._since) * self._per_second)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
