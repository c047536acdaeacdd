"""The pictures of two runs: the candidates of the step in both, and both outputs piece by piece.

Where the two differ in the model or in the source, both lists of candidates are what comes next behind the same
pieces: those of the left output. Where they are two outputs of one model, each list is behind its own.

Knows nothing of Streamlit.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from glassformer.charts.aligned import HOW_TO_READ as HOW_TO_READ_ALIGNED
from glassformer.charts.aligned import HOW_TO_READ_CROSSED, aligned_outputs_spec
from glassformer.charts.candidates import HOW_TO_READ, candidates_spec
from glassformer.extensions.what_if.analysis.compare import first_difference
from glassformer.extensions.what_if.compare.aligned_outputs import crossed_of, rows_of, title, verdict
from glassformer.extensions.what_if.compare.pair import Pair, pair_of, read_by
from glassformer.runs.picture import Page, Plot, Rows, Said
from glassformer.runs.seen import Seen
from glassformer.runs.step_rows import N_CANDIDATES, branch_at
from glassformer.state.click import Click, place_of
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.config import ModelConfig
from transformer.runs.distribution import best
from transformer.runs.trace import Trace

CLICK: Final = say("Click a bar to continue the right run from that piece.")
_COLUMNS: Final = (
    say("Piece"), say("p left"), say("p right"), say("right − left"), say("Rank left"), say("Rank right"),
    say("Places gained"),
)  # fmt: skip
GAINED: Final = say("Places gained: how much higher the piece ranks on the right than on the left.")

COMPARE: Final = Page("compare", say("Compare"), of_two=True)
PAIR: Final = COMPARE.part("", pair_of)


# ------------------------------------------------------------------------------------------------ candidates


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


def both_lists(pair: Pair[Seen]) -> tuple[Listed, Listed, bool]:
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


@PAIR.picture("compared_left_candidates", say("Left: candidates"))
def left(pair: Pair[Seen]) -> Plot | None:
    """The candidates on the left; a click means a branch."""
    if not pair.writes:
        return None
    here, there, same_prefix = both_lists(pair)
    said = None if pair.left is pair.right else Said(below=_behind(here, there, same_prefix=same_prefix), pale=True)
    return _list(pair, here, pair.left, say("Left: candidates of step {n}", n=here.step + 1), said)


@PAIR.picture("compared_right_candidates", say("Right: candidates"))
def right(pair: Pair[Seen]) -> Plot | None:
    """Those on the right, with what changed between the two; a click means a branch."""
    if not pair.writes:
        return None
    here, there, same_prefix = both_lists(pair)
    said = None
    if pair.share_vocabulary:
        rows = [
            [piece, f"{p:.4f}", f"{q:.4f}", _signed(f"{more:+.4f}"), f"{i:,}", f"{j:,}", _signed(f"{gained:+d}")]
            for piece, p, q, more, i, j, gained in changes(here, there)
        ]
        said = Said(table=Rows(columns=_COLUMNS, rows=rows, note=GAINED))
    name = say("Right: candidates of step {n}", n=there.step + 1)
    return _list(pair, there, pair.left if same_prefix else pair.right, name, said)


def _signed(number: str) -> str:
    return number.replace("-", "−")


def _behind(left: Listed, right: Listed, *, same_prefix: bool) -> str:
    """What the two lists follow."""
    if not same_prefix:
        return say("Each list shows what could come next in its own run, after that run's output so far.")
    if right.written is not None:
        return say("Before this step, both runs wrote the same pieces.")
    return say_n("Both lists show what could follow the first {n} piece of the left output, although the right run "
                 "itself wrote a different output.",
                 "Both lists show what could follow the first {n} pieces of the left output, although the right "
                 "run itself wrote a different output.", left.step)  # fmt: skip


def _list(pair: Pair[Seen], listed: Listed, run: Seen, name: Sentence, said: Said | None = None) -> Plot:
    """One list; it is behind what `run` had written."""
    ids, vocabulary, clicks = listed.ids(), listed.trace.vocabulary, pair.compared == "branches"
    return Plot(
        spec=candidates_spec(
            [vocabulary[i] for i in ids],
            [listed.probability(i) for i in ids],
            ids=ids,
            chosen=None if listed.written is None else ids.index(listed.written),
            ranks=[listed.rank(i) for i in ids],
            how_chosen=say("in the output"),
            title=name,
        ),
        alt=say("{title}: the most probable piece is {best}.", title=name, best=vocabulary[ids[0]]),
        how_to_read=joined(" ", [HOW_TO_READ, *[CLICK] * clicks]),
        clicked=partial(_branch, run.trace.tgt_ids, run.view.step, run.checkpoint.config) if clicks else None,
        said=said,
    )


def _branch(written: tuple[int, ...], step: int, config: ModelConfig, click: Click) -> tuple[int, ...] | None:
    """Where an output goes another way, if the piece that was clicked is another one, and may be written."""
    piece = place_of(click)
    if piece is None or not 0 <= piece < config.tgt_vocab_size or piece in config.never_written:
        return None
    branch = branch_at(written, step, piece)
    return None if branch == written[: len(branch)] else branch


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


# ------------------------------------------------------------------------------------------------ outputs


@PAIR.picture("compared_outputs", say("Both outputs, piece by piece"), follows="still")
def outputs(pair: Pair[Seen]) -> Plot | None:
    """Both outputs, a row for each piece."""
    if not pair.writes:
        return None
    both = crossed_of(pair)
    rows = rows_of(pair, both)
    first = next((place for place, row in enumerate(rows) if not row.same), None)
    on_left = pair.leads is pair.left  # whose stepper the chart follows
    steps = {(row.left_step if on_left else row.right_step): place for place, row in enumerate(rows)}
    follow = [steps.get(step) for step in range(pair.leads.trace.n_steps)]
    said = say("Both outputs, one row per piece, with its probability in both runs.")
    spec = aligned_outputs_spec(rows, title=title(pair), first=first, follow=follow)
    read = joined(" ", [HOW_TO_READ_ALIGNED, *[HOW_TO_READ_CROSSED] * (both is not None)])
    return Plot(spec=spec, alt=joined(" ", [said, verdict(pair)]), how_to_read=read, fit=True)
