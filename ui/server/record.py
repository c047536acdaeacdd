"""The rounds of a room as a table: what was asked and how often each choice was chosen, of nobody in particular.

Rounds with too few votes to be counted by choice have only their number of votes here, too.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ui.server.public import Question, Round
from words import say


@dataclass(frozen=True)
class Kept:
    """A round that has ended."""

    question: Question  # what was asked
    number: int  # of the round in its room, from 1
    round: Round  # its votes
    right: int | None = None  # which choice is right; None where that was not shown, or choices are not compared


def table(record: Sequence[Kept]) -> dict[str, list[Any]]:
    """The columns by their names: a row for each choice of each round.

    Args:
        record: The rounds, in order.
    """
    columns: list[list[Any]] = [[] for _ in range(7)]
    for one in record:
        counts = one.round.counts or (None,) * len(one.question.choices)
        for place, (choice, votes) in enumerate(zip(one.question.choices, counts, strict=True)):
            right = "" if one.right is None else int(place == one.right)
            step = "" if one.question.aloud else ".".join(one.question.name.split(".")[:2])
            row = (one.number, one.question.text, step, one.round.voted, choice, votes, right)
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    return dict(zip(_names(), columns, strict=True))


def _names() -> tuple[str, ...]:
    return (
        say("round"),
        say("question"),
        say("step of a lesson"),
        say("votes in the round"),
        say("choice"),
        say("votes for it"),
        say("right (1) or not (0)"),
    )
