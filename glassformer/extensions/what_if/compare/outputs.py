"""Both outputs: what sets them apart, at the head of the page, and each piece with what the other run gives it.

At the head stands one sentence with the largest effect; further down a chart, and both outputs marked. A piece is
marked by a sign and a colour: ≠ where the other output has another one, ▼ and ▲ where the other run gives it a
probability that is lower or higher by `LEAST` or more.
"""

from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np

from glassformer.charts.aligned import Row
from glassformer.extensions.what_if.compare import pair_pictures
from glassformer.extensions.what_if.compare.aligned_outputs import Both, crossed_of, effect, rows_of, verdict
from glassformer.extensions.what_if.compare.pair import Pair
from glassformer.runs.attempt import attempt
from glassformer.runs.open_run import OpenRun
from glassformer.shared import cover, drawing
from glassformer.shared.door import frame, st
from transformer.i18n import joined, say

TOTALS: Final = "compared_totals"
LEAST: Final = 0.05
MOST_PIECES: Final = 60
MARKS: Final = say(
    "≠ marks a piece that differs from the other output. ▼ or ▲ marks a piece of the left output whose probability "
    "is at least {least:g} lower or higher in the right run.",
    least=LEAST,
)
OTHER_PIECES: Final = say(
    "The two models have different vocabularies, so neither can read the other's output piece by piece. The page "
    "therefore shows each output's log-probability only in its own run, and no KL divergences."
)

ONE_MODEL: Final = say(
    "Both outputs come from the same model and the same source. After the same pieces, the model always predicts "
    "the same distribution, so the KL divergence is 0 at every step, and an output has the same log-probability in "
    "both runs."
)


def head(pair: Pair[OpenRun], place: AbstractContextManager[object]) -> Both:
    """Draw what sets apart the outputs of two runs that have one, above both, and what cannot be told of them.

    Returns the left output in both runs, and the right one; None where that is not defined.
    """
    both = attempt(lambda: crossed_of(pair))
    if pair.is_one_model:
        st.caption(ONE_MODEL)
    elif not pair.share_vocabulary:
        st.caption(OTHER_PIECES)
    if not cover.covered(pair_pictures.outputs.key):
        with place:
            _consequence(pair, both)
    return both


def _consequence(pair: Pair[OpenRun], both: Both) -> None:
    said = [verdict(pair)] if both is None else [verdict(pair), effect(pair, both[0])]
    st.markdown(drawing.strong(joined(" ", said)))


def _marked(pair: Pair[OpenRun], both: Both) -> None:
    rows = rows_of(pair, both)
    more = ["…"] * (len(rows) > MOST_PIECES)  # the chart below has them all
    left = [_piece(row.left, row, before=row.p_left, after=row.p_crossed) for row in rows[:MOST_PIECES] if row.left]
    right = [_piece(row.right, row) for row in rows[:MOST_PIECES] if row.right]
    st.markdown(say("**Left output:** {pieces}", pieces=joined(" ", left + more)))
    st.markdown(say("**Right output:** {pieces}", pieces=joined(" ", right + more)))
    st.caption(MARKS)


def _piece(piece: str, row: Row, *, before: float | None = None, after: float | None = None) -> str:
    """A piece with its mark."""
    shown = drawing.plain(piece)
    if not row.same:
        return f":violet-badge[≠ {shown}]"
    if before is None or after is None or abs(after - before) < LEAST:
        return f":gray-badge[{shown}]"
    sign, colour = ("▼", "orange") if after < before else ("▲", "blue")
    return f":{colour}-badge[{sign} {shown} {before:.2f} → {after:.2f}]"


def draw(pair: Pair[OpenRun], both: Both) -> None:
    """Draw both outputs piece by piece as text, and what they sum up to."""
    if not cover.covered(pair_pictures.outputs.key):
        _marked(pair, both)
        _totals(pair, both)


def _totals(pair: Pair[OpenRun], both: Both) -> None:
    """Draw the log-probability of each output, in each run where that is defined."""
    names, runs = (say("Left output"), say("Right output")), (pair.left.trace, pair.right.trace)
    if both is None:
        headings: dict[str, str] = {"own": say("in its own run"), "piece": say("per piece")}
        numbers = [[name, run.log_prob, run.log_prob / run.n_steps] for name, run in zip(names, runs, strict=True)]
    else:
        headings = {
            "left": say("in the left run"), "right": say("in the right run"), "difference": say("right − left"),
            "left_piece": say("per piece, left"), "right_piece": say("per piece, right"),
        }  # fmt: skip
        numbers = [_total(names[0], both[0].own, both[0].other), _total(names[1], both[1].other, both[1].own)]
    number = {name: st.column_config.NumberColumn(said, format="%.3f") for name, said in headings.items()}
    columns = {"output": st.column_config.TextColumn(say("Log-probability, in nats")), **number}
    st.container(key=TOTALS).dataframe(
        frame(numbers, columns=list(columns)), hide_index=True, column_config=columns, width="content"
    )


def _total(name: str, left: np.ndarray, right: np.ndarray) -> list[Any]:
    """A row of the table: log-probabilities of an output's pieces in both runs, summed and on average."""
    sums = float(left.sum()), float(right.sum())
    return [name, *sums, sums[1] - sums[0], sums[0] / len(left), sums[1] / len(right)]
