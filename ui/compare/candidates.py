"""The candidates of the current step in both runs: two lists beside each other, and how far each piece moved.

Where the two differ in the model or in the source, both lists are what comes next behind the same pieces: those of
the left output. Where they are two outputs of one model, each list is behind its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

import charts
from charts.candidates import HOW_TO_READ
from transformer.analysis.compare import first_difference
from transformer.runs.distribution import best
from transformer.runs.trace import Trace
from ui.compare.pair import Pair, read_by
from ui.compare.second_run import branching
from ui.runs.open_run import OpenRun
from ui.runs.step_rows import N_CANDIDATES
from ui.shared import drawing
from ui.shared.clicks import on_click
from ui.shared.door import frame, st
from ui.state.click import place_of
from words import joined, say, say_n

LEFT: Final = "compared_left_candidates"
RIGHT: Final = "compared_right_candidates"
CHANGES: Final = "compared_changes"
CLICK: Final = say("Click a bar: the run on the right then goes on from that piece.")


@dataclass(frozen=True, eq=False)
class Listed:
    """The likeliest next pieces of one run."""

    trace: Trace  # what they are read off
    step: int  # which step of it
    written: int | None  # the piece that the run itself wrote there; None if it had written something else before

    def ids(self) -> list[int]:
        """The likeliest pieces, best first, and the one that was written."""
        found = best(self.trace.log_probs[self.step], N_CANDIDATES)
        return found if self.written is None or self.written in found else [*found, self.written]

    def rank(self, piece: int) -> int:
        """The place of a piece, from 1."""
        return self.trace.rank_of(piece, step=self.step)

    def probability(self, piece: int) -> float:
        """Of a piece."""
        return float(np.exp(self.trace.log_probs[self.step, piece]))


def both_lists(pair: Pair) -> tuple[Listed, Listed, bool]:
    """The candidates of both runs, and whether they are behind the same pieces; errors as of `read_by`."""
    left, right, step = pair.left.trace, pair.right.trace, pair.left.view.step
    here = Listed(left, step, left.tgt_ids[step])
    first = first_difference(left.tgt_ids, right.tgt_ids)
    together = pair.share_vocabulary and (first is None or step <= first)
    if together and step < right.n_steps:
        return here, Listed(right, step, right.tgt_ids[step]), True
    if pair.share_vocabulary and not pair.is_one_model:
        return here, Listed(read_by(pair.right, pair.left), step, None), True
    there = pair.right.view.step
    return here, Listed(right, there, right.tgt_ids[there]), False


def draw(pair: Pair) -> None:
    """Draw both lists of two runs with an output, and what changed between them; errors as of `read_by`."""
    left, right, same_prefix = both_lists(pair)
    clicks = pair.compared == "branches"
    drawing.beside(
        partial(_list, left, pair.left, say("Left: candidates of step {n}", n=left.step + 1), clicks),
        partial(
            _list, right, pair.left if same_prefix else pair.right,
            say("Right: candidates of step {n}", n=right.step + 1), clicks, name=RIGHT,
        ),
    )  # fmt: skip
    st.caption(_behind(left, right, same_prefix=same_prefix))
    if pair.share_vocabulary:
        _changes(left, right)


def _behind(left: Listed, right: Listed, *, same_prefix: bool) -> str:
    """What the two lists follow."""
    if not same_prefix:
        return say("Each list is behind what its own run had written.")
    if right.written is not None:
        return say("Both runs had written the same up to here.")
    return say_n(
        "Both lists are behind the first {n} piece of the left output; the right run by itself wrote another one.",
        "Both lists are behind the first {n} pieces of the left output; the right run by itself wrote others.",
        left.step,
    )


def alone(run: OpenRun, *, branches: bool) -> None:
    """Draw the candidates of a run that nothing is beside yet; where branches are compared, a click makes one."""
    step = run.view.step
    listed = Listed(run.trace, step, run.trace.tgt_ids[step])
    _list(listed, run, say("Left: candidates of step {n}", n=step + 1), branches)


def _list(listed: Listed, run: OpenRun, title: str, clicks: bool, *, name: str = LEFT) -> None:
    """Draw one list; a click on it branches off the output of `run`, behind which it is."""
    ids, key = listed.ids(), f"{run.slot}{name}"
    vocabulary = listed.trace.vocabulary
    figure = charts.candidates_spec(
        [vocabulary[i] for i in ids],
        [listed.probability(i) for i in ids],
        ids=ids,
        chosen=None if listed.written is None else ids.index(listed.written),
        ranks=[listed.rank(i) for i in ids],
        how_chosen=say("in the output"),
        title=title,
    )
    drawing.chart(
        figure,
        key=key,
        alt=say("{title}: the most probable is {best}.", title=title, best=vocabulary[ids[0]]),
        how_to_read=joined(" ", [HOW_TO_READ, *[CLICK] * clicks]),
        on_click=on_click(key, place_of, branching(run)) if clicks else None,
    )


def changes(left: Listed, right: Listed) -> list[list[Any]]:
    """Each piece of lists of one vocabulary: its probability and its rank in both, the likeliest first."""
    ids = sorted({*left.ids(), *right.ids()}, key=lambda i: -max(left.probability(i), right.probability(i)))
    return [
        [
            left.trace.vocabulary[i], left.probability(i), right.probability(i),
            right.probability(i) - left.probability(i), left.rank(i), right.rank(i), left.rank(i) - right.rank(i),
        ]
        for i in ids
    ]  # fmt: skip


def _changes(left: Listed, right: Listed) -> None:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    columns = {
        "piece": text(say("Piece")),
        "p_left": number(say("p left"), format="%.4f"),
        "p_right": number(say("p right"), format="%.4f"),
        "difference": number(say("right − left"), format="%+.4f"),
        "rank_left": number(say("Rank left")),
        "rank_right": number(say("Rank right")),
        "gained": number(
            say("Places gained"), format="%+d", help=say("How far the piece rose from the left to the right.")
        ),
    }
    st.container(key=CHANGES).dataframe(
        frame(changes(left, right), columns=list(columns)), hide_index=True, column_config=columns, width="content"
    )
