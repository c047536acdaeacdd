"""What a draft is: something that guesses outputs of one model. `transformer.runs.drafting.drafts` chooses one."""

from collections.abc import Callable, Sequence
from typing import Protocol

from transformer.runs.reading import Reading

Ids = tuple[int, ...]
Pause = Callable[[], None]


class Draft(Protocol):
    """Writes guesses of outputs for one model."""

    @property
    def name(self) -> str:
        """Its name in settings and in the log."""

    def suits(self, reading: Reading) -> bool:
        """Whether it can write for a reading: its way of decoding, its changes."""

    def write(self, reading: Reading, rows: Sequence[int], begun: Sequence[Ids], pause: Pause) -> list[Ids]:
        """A guess of the output of some rows of a reading's batch.

        Args:
            reading: Queries whose sources have been read; `suits` is true of it.
            rows: Which of its rows.
            begun: What each row's output begins with; the guess begins with it, too.
            pause: Called between two rounds of decoding.

        Returns:
            The outputs, the end piece included where one ended: at least a piece more than what they begin with, and
            at most as many as may be written.
        """
