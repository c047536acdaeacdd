"""What writes a draft: a guess of an output, made sooner than the model itself could write it.

A draft may be wrong anywhere: `transformer.runs.drafting.checking` reads it once with the model and keeps only what
the model would have written. So which draft is used changes how long a run takes, and nothing else.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from transformer.runs.running import Reading

Ids = tuple[int, ...]
Pause = Callable[[], None]


class Draft(Protocol):
    """Writes guesses of outputs for one model."""

    @property
    def name(self) -> str:
        """Its name in settings and in the log."""

    def suits(self, reading: "Reading") -> bool:
        """Whether it can write for a reading: its way of decoding, its changes."""

    def write(self, reading: "Reading", rows: Sequence[int], begun: Sequence[Ids], pause: Pause) -> list[Ids]:
        """A guess of the output of some rows of a reading's batch.

        Args:
            reading: Queries whose sources have been read; `suits` is true of it.
            rows: Which of its rows.
            begun: What each row's output begins with; the guess begins with it, too.
            pause: Called between two rounds of decoding.

        Returns:
            The outputs, the end piece included where one ended.
        """
