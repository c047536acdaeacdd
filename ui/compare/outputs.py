"""Both outputs: what sets them apart, at the head of the page, and each piece with what the other run gives it.

At the head stand one sentence with the largest effect, and both outputs marked. A piece is marked by a sign and a
colour: ≠ where the other output has another one, ▼ and ▲ where the other run gives it a probability that is lower or
higher by `LEAST` or more.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, Final

import numpy as np

from charts.aligned import HOW_TO_READ, HOW_TO_READ_CROSSED, Row, aligned_outputs_spec
from charts.theme import shortened
from transformer.analysis.compare import Aligned, Crossed, aligned, first_difference, own_log_probs
from ui.compare.pair import Pair, cross
from ui.runs.attempt import attempt
from ui.shared import cover, drawing
from ui.shared.door import frame, st
from ui.state.view import MAIN
from words import joined, say, say_n

ALIGNED: Final = "compared_outputs"
TOTALS: Final = "compared_totals"
MOST_OF_SENTENCE: Final = 40  # characters in a title
LEAST: Final = 0.05
MOST_PIECES: Final = 60
MARKS: Final = say(
    "≠ another piece than in the other output; ▼ or ▲ the right run gives the left output's piece a probability "
    "lower or higher by {least:g} or more.",
    least=LEAST,
)
OTHER_PIECES: Final = say(
    "The two models do not have the same vocabulary, so that neither can read the other's output piece by piece: "
    "log-probabilities of one output in both runs and KL divergences are not defined here."
)

ONE_MODEL: Final = say(
    "Both outputs are of one model and one source. Behind the same pieces it expects the same, so that the KL "
    "divergence is 0 at every step, and each output has one log-probability."
)

Both = tuple[Crossed, Crossed] | None


def head(pair: Pair, place: AbstractContextManager[object]) -> Both:
    """Draw what sets apart the outputs of two runs that have one, above both, and what cannot be told of them.

    Returns the left output in both runs, and the right one; None where that is not defined.
    """
    both: Both = None
    if pair.is_one_model:
        st.caption(ONE_MODEL)
    elif pair.share_vocabulary:
        both = attempt(lambda: (cross(pair.left, pair.right), cross(pair.right, pair.left)))
    else:
        st.caption(OTHER_PIECES)
    if not cover.covered(ALIGNED):
        with place:
            _consequence(pair, both)
    return both


def _consequence(pair: Pair, both: Both) -> None:
    rows = rows_of(pair, both)
    said = [verdict(pair)] if both is None else [verdict(pair), effect(pair, both[0])]
    st.markdown(drawing.strong(joined(" ", said)))
    more = ["…"] * (len(rows) > MOST_PIECES)  # the chart below has them all
    left = [_piece(row.left, row, before=row.p_left, after=row.p_crossed) for row in rows[:MOST_PIECES] if row.left]
    right = [_piece(row.right, row) for row in rows[:MOST_PIECES] if row.right]
    st.markdown(say("**Left output:** {pieces}", pieces=joined(" ", left + more)))
    st.markdown(say("**Right output:** {pieces}", pieces=joined(" ", right + more)))
    st.caption(MARKS)


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


def draw(pair: Pair, both: Both) -> None:
    """Draw both outputs piece by piece, and what they sum up to."""
    _chart(pair, both)
    if not cover.covered(ALIGNED):
        _totals(pair, both)


def title(pair: Pair) -> str:
    """What the two outputs are of; a saved table says it, too."""
    left, right = pair.left.trace, pair.right.trace
    if pair.compared == "changed":
        return say("Outputs of the control run and of the changed run")
    if pair.compared == "sentences":
        texts = (shortened(run.query.source, limit=MOST_OF_SENTENCE) for run in (left, right))
        return say("Outputs for “{left}” and for “{right}”", left=next(texts), right=next(texts))
    if pair.compared == "checkpoints":
        return say("Outputs of {left} and of {right}", left=left.checkpoint, right=right.checkpoint)
    if pair.compared == "branches":
        return say("Two branches of the output")
    return say("Outputs of two ways to run")


def verdict(pair: Pair) -> str:
    """Where the outputs part, in a sentence or two."""
    left, right = pair.left.trace, pair.right.trace
    first = first_difference(left.tgt_pieces, right.tgt_pieces)
    if first is None:
        return say_n("Both outputs are the same: {n} piece.", "Both outputs are the same: {n} pieces.", left.n_steps)
    n = min(left.n_steps, right.n_steps)
    if first == n:
        if n == left.n_steps:
            return say("The right output goes on where the left one ends, after {n} pieces.", n=n)
        return say("The left output goes on where the right one ends, after {n} pieces.", n=n)
    pieces = left.tgt_pieces[first], right.tgt_pieces[first]
    if first == 0:
        return say(
            "The outputs differ from the first piece on: “{left}” on the left, “{right}” on the right.",
            left=pieces[0],
            right=pieces[1],
        )
    return say(
        "The outputs are the same up to piece {before}. The first difference is piece {n}: “{left}” on the left, "
        "“{right}” on the right.",
        before=first,
        n=first + 1,
        left=pieces[0],
        right=pieces[1],
    )


@lru_cache(maxsize=64)  # a step draws the same outputs again
def _aligned(left: tuple[object, ...], right: tuple[object, ...]) -> tuple[Aligned, ...]:
    return aligned(left, right)


def rows_of(pair: Pair, both: Both) -> list[Row]:
    """The aligned outputs with their numbers."""
    left, right = pair.left.trace, pair.right.trace
    own = np.exp(own_log_probs(left)), np.exp(own_log_probs(right))
    other = (None, None) if both is None else tuple(np.exp(one.other) for one in both)
    divergences = None if both is None else both[0].divergences
    return [
        Row(
            left=None if i is None else left.tgt_pieces[i],
            right=None if j is None else right.tgt_pieces[j],
            same=one.same,
            left_step=i,
            right_step=j,
            p_left=_at(own[0], i),
            p_right=_at(own[1], j),
            p_crossed=_at(other[0], i),
            p_crossed_back=_at(other[1], j),
            divergence=_at(divergences, i),
        )
        for one in _aligned(left.tgt_pieces, right.tgt_pieces)
        for i, j in [(one.left, one.right)]
    ]


def _at(values: np.ndarray | None, step: int | None) -> float | None:
    return None if values is None or step is None else float(values[step])


def _chart(pair: Pair, both: Both) -> None:
    rows = rows_of(pair, both)
    first = next((place for place, row in enumerate(rows) if not row.same), None)
    on_left = pair.left.slot == MAIN  # whose stepper the chart of a bare name follows
    steps = {(row.left_step if on_left else row.right_step): place for place, row in enumerate(rows)}
    follow = [steps.get(step) for step in range(pair.main.trace.n_steps)]
    figure = aligned_outputs_spec(rows, title=title(pair), first=first, follow=follow)
    drawing.chart(
        figure,
        key=ALIGNED,
        alt=joined(
            " ", [say("Both outputs, a row for each piece, with its probability in both runs."), verdict(pair)]
        ),
        how_to_read=joined(" ", [HOW_TO_READ, *[HOW_TO_READ_CROSSED] * (both is not None)]),
    )


def _totals(pair: Pair, both: Both) -> None:
    """Draw the log-probability of each output, in each run where that is defined."""
    names, runs = (say("Left output"), say("Right output")), (pair.left.trace, pair.right.trace)
    if both is None:
        headings: dict[str, str] = {"own": say("in its own run"), "piece": say("a piece")}
        numbers = [[name, run.log_prob, run.log_prob / run.n_steps] for name, run in zip(names, runs, strict=True)]
    else:
        headings = {
            "left": say("in the left run"), "right": say("in the right run"), "difference": say("right − left"),
            "left_piece": say("a piece, left"), "right_piece": say("a piece, right"),
        }  # fmt: skip
        numbers = [_total(names[0], both[0].own, both[0].other), _total(names[1], both[1].other, both[1].own)]
    number = {name: st.column_config.NumberColumn(said, format="%.3f") for name, said in headings.items()}
    columns = {"output": st.column_config.TextColumn(say("Log-probability, in nats")), **number}
    st.container(key=TOTALS).dataframe(
        frame(numbers, columns=list(columns)),
        hide_index=True,
        column_config=columns,
        width="content",
    )


def _total(name: str, left: np.ndarray, right: np.ndarray) -> list[Any]:
    """A row of the table: log-probabilities of an output's pieces in both runs, summed and on average."""
    sums = float(left.sum()), float(right.sum())
    return [name, *sums, sums[1] - sums[0], sums[0] / len(left), sums[1] / len(right)]
