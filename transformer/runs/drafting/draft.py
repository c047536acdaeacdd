"""What a draft is: something that guesses outputs of one model. Extensions choose one (field `drafts`)."""

from collections.abc import Callable, Sequence
from typing import Protocol

from torch import Tensor

from transformer.extensions import provided
from transformer.model.transformer import Transformer
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


class Drafter(Protocol):
    """Chooses drafts and is told how good they were: what an extension has for `drafts`, an object or a module."""

    def draft_for(self, reading: Reading) -> Draft | None:
        """The draft for a reading; None if it has none."""

    def judge(self, model: Transformer, *, written: int, right: int) -> None:
        """Told after a check how many pieces of a model's drafts it was about, and how many of them were right."""

    def failed(self, model: Transformer, draft: Draft, error: Exception) -> None:
        """Told that a draft could not be written."""

    def steps(self, model: Transformer, memory: Tensor | None, n: int, *, int8: bool) -> Callable[[], int] | None:
        """What writes `n` pieces as drafts are written, to be timed, and returns `n`; None if it cannot."""


def drafters() -> tuple[Drafter, ...]:
    """Those of all extensions."""
    return provided("drafts")


def draft_for(reading: Reading) -> Draft | None:
    """The draft for a reading; None if the model shall write step by step."""
    return next((draft for one in drafters() if (draft := one.draft_for(reading)) is not None), None)
