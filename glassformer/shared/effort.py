"""How much a training took, in words: epochs, target pieces, time.

Knows nothing of Streamlit.
"""

from collections.abc import Mapping
from typing import Any

from transformer.i18n import joined, say, say_n


def effort(record: Mapping[str, Any]) -> str:
    """What a card's training record says of how long it took, such as "17 epochs, 10,856,421 target pieces, 1 h".

    Values that are no numbers are passed over.
    """
    epochs, tokens, seconds = (_positive(record.get(name)) for name in ("epochs", "target_tokens", "seconds"))
    said = [say_n("{n:,} epoch", "{n:,} epochs", round(epochs))] if epochs else []
    return joined(", ", [*said, *effort_of(tokens, seconds)])


def effort_of(tokens: float, seconds: float) -> list[str]:
    """The pieces and the time; nothing of what is 0."""
    said = [say_n("{n:,} target piece", "{n:,} target pieces", round(tokens))] if tokens else []
    return [*said, *([time_of(seconds)] if seconds else [])]


def time_of(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 90:
        return say("{seconds:.0f} s", seconds=seconds)
    minutes = round(seconds / 60)
    if minutes < 90:
        return say("{minutes} min", minutes=minutes)
    return say("{hours} h {minutes} min", hours=minutes // 60, minutes=minutes % 60)


def _positive(value: object) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e18
    return float(value) if good else 0.0  # type: ignore[arg-type]
