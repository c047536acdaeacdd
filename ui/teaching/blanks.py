"""A question of a lesson before it is posed to a run: its values are not known yet."""

from __future__ import annotations


def as_they_are(names: frozenset[str]) -> dict[str, object]:
    """Values that a question has not found yet."""
    return dict.fromkeys(names, _Blank())


class _Blank:
    """A value that is not known yet; takes any format of a number."""

    def __format__(self, spec: str) -> str:
        return "…"
