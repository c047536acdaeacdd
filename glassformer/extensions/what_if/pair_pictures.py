"""Pictures of two runs: candidates of the step, both outputs token by token; their difference in sentences.

If the models or the sources differ, both lists of candidates follow the same pieces: those of the left output. For two
outputs of one model, each list follows its own output.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from glassformer.charts.aligned import HOW_TO_READ as HOW_TO_READ_ALIGNED
from glassformer.charts.aligned import HOW_TO_READ_CROSSED, Row, aligned_outputs_spec
from glassformer.charts.candidates import HOW_TO_READ, candidates_spec
from glassformer.charts.theme import shortened
from glassformer.extensions.what_if.comparison import Pair, cross, pair_of, read_by
from glassformer.extensions.what_if.two_runs import Crossed, aligned, first_difference, own_log_probs
from glassformer.runs.picture import Captions, CaptionTable, Page, Plot
from glassformer.runs.viewed_run import N_CANDIDATES, ViewedRun, branch_at
from glassformer.state.view import Click, place_of
from transformer.i18n import Sentence, joined, say, say_n
from transformer.i18n.sentence import hundredths
from transformer.model.config import ModelConfig
from transformer.runs.distribution import best
from transformer.runs.trace import Trace

MOST_OF_SENTENCE: Final = 40  # characters in a title

Both = tuple[Crossed, Crossed] | None


def crossed_of(pair: Pair[ViewedRun]) -> Both:
    """The left output in both runs, and the right one; None where that is not defined. Errors as of `read_by`."""
    if pair.is_one_model or not pair.share_vocabulary:
        return None
    return cross(pair.left, pair.right), cross(pair.right, pair.left)


def effect(pair: Pair[ViewedRun], left: Crossed) -> str:
    """How much less or more the right run makes of the left output: where most, and in all."""
    before, after = np.exp(left.own), np.exp(left.other)
    most = int(np.abs(after - before).argmax())
    return say("In the left output, the probability of {piece} changes most: from {before} in the left run to "
               "{after} in the right run. The log-probability of the whole left output changes by {total:+.3f} "
               "nats.", piece=pair.left.trace.tgt_tokens[most], before=hundredths(float(before[most])),
               after=hundredths(float(after[most])), total=float(left.other.sum() - left.own.sum()))  # fmt: skip


def title(pair: Pair[ViewedRun]) -> str:
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
    return say("Outputs of the same model, run in two ways")


LEAST_SAID: Final = 0.005  # of a difference of probabilities, which are written in hundredths


def verdict(pair: Pair[ViewedRun]) -> str:
    """Where the outputs part, in a sentence or two."""
    left, right = pair.left.trace, pair.right.trace
    first = first_difference(left.tgt_tokens, right.tgt_tokens)
    if first is None:
        same = say_n("Both outputs are the same: {n} token.", "Both outputs are the same: {n} tokens.", left.n_steps)
        before, after = (np.exp(own_log_probs(one)) for one in (left, right))
        apart = np.abs(after - before)
        if not apart.size or apart.max() < LEAST_SAID:
            return same
        most = int(apart.argmax())
        moved = say("Most different: {piece} in step {n}, with probability {left:.2f} and {right:.2f}.",
                    piece=left.tgt_tokens[most], n=most + 1, left=before[most], right=after[most])  # fmt: skip
        return joined(" ", [same, moved])
    n = min(left.n_steps, right.n_steps)
    if first == n:
        if n == left.n_steps:
            return say(
                "The output on the left ends after {n} tokens. The one on the right starts with the same tokens "
                "and continues.",
                n=n,
            )
        return say(
            "The output on the right ends after {n} tokens. The one on the left starts with the same tokens and "
            "continues.",
            n=n,
        )
    pieces = left.tgt_tokens[first], right.tgt_tokens[first]
    if first == 0:
        return say(
            "The outputs differ from the first token on: “{left}” on the left, “{right}” on the right.",
            left=pieces[0],
            right=pieces[1],
        )
    return say("The outputs are the same up to token {before}. The first difference is token {n}: “{left}” on the "
               "left, “{right}” on the right.", before=first, n=first + 1, left=pieces[0],
               right=pieces[1])  # fmt: skip


_aligned = lru_cache(maxsize=64)(aligned)  # each step draws the same outputs


def rows_of(pair: Pair[ViewedRun], both: Both) -> list[Row]:
    """The aligned outputs with their numbers."""
    left, right = pair.left.trace, pair.right.trace
    own = np.exp(own_log_probs(left)), np.exp(own_log_probs(right))
    other = (None, None) if both is None else tuple(np.exp(one.other) for one in both)
    divergences = None if both is None else both[0].divergences
    return [
        Row(
            left=None if i is None else left.tgt_tokens[i],
            right=None if j is None else right.tgt_tokens[j],
            same=one.same,
            left_step=i,
            right_step=j,
            p_left=_at(own[0], i),
            p_right=_at(own[1], j),
            p_crossed=_at(other[0], i),
            p_crossed_back=_at(other[1], j),
            divergence=_at(divergences, i),
        )
        for one in _aligned(left.tgt_tokens, right.tgt_tokens)
        for i, j in [(one.left, one.right)]
    ]


def _at(values: np.ndarray | None, step: int | None) -> float | None:
    return None if values is None or step is None else float(values[step])


CLICK: Final = say("Click a bar to continue the right run from that token.")
_COLUMNS: Final = (
    say("Token"), say("p left"), say("p right"), say("right − left"), say("Rank left"), say("Rank right"),
    say("Places gained"),
)  # fmt: skip
GAINED: Final = say("Places gained: how much higher the token ranks on the right than on the left.")

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


def both_lists(pair: Pair[ViewedRun]) -> tuple[Listed, Listed, bool]:
    """The candidates of both runs, and whether they follow the same pieces; errors as of `read_by`."""
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
def left(pair: Pair[ViewedRun]) -> Plot | None:
    """The candidates on the left; a click means a branch."""
    if not pair.writes:
        return None
    here, there, same_prefix = both_lists(pair)
    said = None if pair.left is pair.right else Captions(below=_behind(here, there, same_prefix=same_prefix), pale=True)
    return _list(pair, here, pair.left, say("Left: candidates of step {n}", n=here.step + 1), said)


@PAIR.picture("compared_right_candidates", say("Right: candidates"))
def right(pair: Pair[ViewedRun]) -> Plot | None:
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
        said = Captions(table=CaptionTable(columns=_COLUMNS, rows=rows, note=GAINED))
    name = say("Right: candidates of step {n}", n=there.step + 1)
    return _list(pair, there, pair.left if same_prefix else pair.right, name, said)


def _signed(number: str) -> str:
    return number.replace("-", "−")


def _behind(left: Listed, right: Listed, *, same_prefix: bool) -> str:
    """What the two lists of candidates follow."""
    if not same_prefix:
        return say("Each list shows what could come next in its own run, after that run's output so far.")
    if right.written is not None:
        return say("Before this step, both runs wrote the same tokens.")
    return say_n("Both lists show what could follow the first {n} token of the left output, although the right run "
                 "itself wrote a different output.",
                 "Both lists show what could follow the first {n} tokens of the left output, although the right "
                 "run itself wrote a different output.", left.step)  # fmt: skip


def _list(pair: Pair[ViewedRun], listed: Listed, run: ViewedRun, name: Sentence, said: Captions | None = None) -> Plot:
    """One list, after what `run` had written."""
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
        alt=say("{title}: the most probable token is {best}.", title=name, best=vocabulary[ids[0]]),
        how_to_read=joined(" ", [HOW_TO_READ, *[CLICK] * clicks]),
        clicked=partial(_branch, run.trace.tgt_ids, run.view.step, run.checkpoint.config) if clicks else None,
        said=said,
    )


def _branch(written: tuple[int, ...], step: int, config: ModelConfig, click: Click) -> tuple[int, ...] | None:
    """The branch of a clicked piece, if it differs from the output and may be written."""
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


@PAIR.picture("compared_outputs", say("Both outputs, token by token"), follows="still")
def outputs(pair: Pair[ViewedRun]) -> Plot | None:
    """Both outputs, one row per piece."""
    if not pair.writes:
        return None
    both = crossed_of(pair)
    rows = rows_of(pair, both)
    first = next((place for place, row in enumerate(rows) if not row.same), None)
    on_left = pair.leads is pair.left  # whose stepper the chart follows
    steps = {(row.left_step if on_left else row.right_step): place for place, row in enumerate(rows)}
    follow = [steps.get(step) for step in range(pair.leads.trace.n_steps)]
    spec = aligned_outputs_spec(rows, title=title(pair), first=first, follow=follow)
    read = joined(" ", [HOW_TO_READ_ALIGNED, *[HOW_TO_READ_CROSSED] * (both is not None)])
    return Plot(spec=spec, alt=joined(": ", [title(pair), verdict(pair)]), how_to_read=read, fit=True)
