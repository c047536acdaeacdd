"""What sets two runs apart, at the head of the page: one sentence with the largest effect, and both outputs marked.

A piece is marked by a sign and a colour: ≠ where the other output has another one, ▼ and ▲ where the other run gives
it a probability that is lower or higher by `LEAST` or more.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from charts.aligned import Row
from transformer.analysis.compare import Crossed
from ui.compare.pair import Pair
from ui.shared import drawing
from ui.shared.door import st
from words import joined, say

LEAST: Final = 0.05
MOST_PIECES: Final = 60
HOW_TO_READ: Final = say(
    "≠ another piece than in the other output; ▼ or ▲ the right run gives the left output's piece a probability "
    "lower or higher by {least:g} or more.",
    least=LEAST,
)


def draw(pair: Pair, both: tuple[Crossed, Crossed] | None, rows: list[Row], verdict: str) -> None:
    """Draw it.

    Args:
        pair: The two runs.
        both: The left output in both runs, and the right one; None where that is not defined.
        rows: Both outputs, aligned.
        verdict: Where they part, in a sentence.
    """
    said = [verdict] if both is None else [verdict, effect(pair, both[0])]
    st.markdown(drawing.strong(joined(" ", said)))
    more = ["…"] * (len(rows) > MOST_PIECES)  # the chart below has them all
    left = [_piece(row.left, row, before=row.p_left, after=row.p_crossed) for row in rows[:MOST_PIECES] if row.left]
    right = [_piece(row.right, row) for row in rows[:MOST_PIECES] if row.right]
    st.markdown(say("**Left output:** {pieces}", pieces=joined(" ", left + more)))
    st.markdown(say("**Right output:** {pieces}", pieces=joined(" ", right + more)))
    st.caption(HOW_TO_READ)


def effect(pair: Pair, left: Crossed) -> str:
    """How much less or more the right run makes of the left output: where most, and in all."""
    before, after = np.exp(left.own), np.exp(left.other)
    most = int(np.abs(after - before).argmax())
    return say(
        "Of the left output, the right run changes {piece} most: {before:.2f} → {after:.2f}; total "
        "{total:+.3f} nats.",
        piece=pair.left.trace.tgt_pieces[most],
        before=float(before[most]),
        after=float(after[most]),
        total=float(left.other.sum() - left.own.sum()),
    )


def _piece(piece: str, row: Row, *, before: float | None = None, after: float | None = None) -> str:
    """A piece with its mark."""
    shown = drawing.plain(piece)
    if not row.same:
        return f":violet-badge[≠ {shown}]"
    if before is None or after is None or abs(after - before) < LEAST:
        return f":gray-badge[{shown}]"
    sign, colour = ("▼", "orange") if after < before else ("▲", "blue")
    return f":{colour}-badge[{sign} {shown} {before:.2f} → {after:.2f}]"
