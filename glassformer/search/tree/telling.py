"""What is said of a beginning that a beam search weighed, and of what a round did.

Knows nothing of Streamlit.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from glassformer.runs.picture import Rows, Said
from transformer.analysis.search_tree import Node, SearchTree
from transformer.i18n import joined, paragraph, say

_COLUMNS: Final = (
    say("Rank", about="in an order, 1 is the top"), say("Beginning"), say("Piece"), say("Probability"), say("Sum"),
    say("Short by"), say("What became of the tensor"),
)  # fmt: skip


def fate_of(tree: SearchTree, node: Node, vocabulary: Sequence[str], *, ends: Sequence[int], until: int) -> str:
    """What became of a beginning, in a sentence, as far as rounds up to `until` tell, after which `ends` stand."""
    if node.fate == "closed":
        return _closed(tree, node)
    if node.fate == "dropped":
        return _dropped(tree, node, vocabulary)
    if node.fate == "ended":
        if node.place in ends:
            return say("Ended here: rank {n} in the results.", n=ends.index(node.place) + 1)
        return say("Ended here, but its score is not among the best {n}.", n=len(ends))
    if node.step >= until:
        return _still_open(tree, node, ends, until)
    return _kept(tree, node, vocabulary)


def _closed(tree: SearchTree, node: Node) -> str:
    if tree.rounds[node.step].forced:
        return say("Probable enough to be kept, but a different piece is forced at this step.")
    return say("Probable enough to be kept, but excluded by a rule in this model's config.")


def _dropped(tree: SearchTree, node: Node, vocabulary: Sequence[str]) -> str:
    last, short = tree.last_kept(node.step), tree.short(node)
    if last is None or short is None:
        return ""
    better = joined(" ", [vocabulary[i] for i in tree.ids(last.place)][-3:])
    return say(
        "Dropped: its sum of log-probabilities is {short:.2f} lower than that of “{better}”, the lowest-ranked one "
        "kept.",
        short=short,
        better=better,
    )


def _still_open(tree: SearchTree, node: Node, ends: Sequence[int], until: int) -> str:
    if until < len(tree.rounds) - 1:
        return say("Kept: rank {rank} at this step, not ended yet.", rank=node.rank)
    if node.place in ends:
        return say("Cut off at the maximum output length: rank {n} in the results.", n=ends.index(node.place) + 1)
    if tree.settled:
        return say("Still unfinished when the search ended: no continuation could have made it into the results.")
    return say("Cut off at the maximum output length, and not among the results.")


def _kept(tree: SearchTree, node: Node, vocabulary: Sequence[str]) -> str:
    """What became of a beginning in the round after the one that kept it."""
    best = tree.best_continuation(node.place)
    if best is not None and best.is_kept:
        return say("Kept: rank {rank} at this step.", rank=node.rank)
    short = None if best is None else tree.short(best)
    if best is None or short is None:
        return say(
            "Kept with rank {rank} at this step. At the next step, all its continuations were dropped.",
            rank=node.rank,
        )
    return say("Kept with rank {rank} at this step. At the next step, its best continuation, “{piece}”, fell "
               "{short:.2f} short of the sum needed to be kept.", rank=node.rank, piece=vocabulary[best.piece],
               short=short)  # fmt: skip


def numbers_of(tree: SearchTree, node: Node) -> Iterator[str]:
    """The numbers of a beginning, a line each."""
    yield say("probability given the pieces before it: {p:.4f}", p=math.exp(node.log_prob))
    yield say("sum of log-probabilities: {total:.3f}", total=node.total)
    if abs(node.compared - node.total) > 1e-9:
        yield say(
            "sum of log-probabilities, adjusted by the rules in the model's config: {value:.3f}", value=node.compared
        )
    if node.fate == "ended" or node.result is not None:
        yield say("score, the sum divided by the length penalty: {score:.3f}", score=node.score)
    if node.rank:
        yield say("rank {rank} at this step", rank=node.rank)


def of_round(tree: SearchTree, step: int, vocabulary: Sequence[str], *, until: int) -> Said:
    """What a round did, and under the tree, folded away, all that it weighed; `until` as for `fate_of`."""
    return Said(above=_did(tree, step, vocabulary), table=_weighed(tree, step, vocabulary, until))


def _weighed(tree: SearchTree, step: int, vocabulary: Sequence[str], until: int) -> Rows:
    """What a round weighed: best first, with what became of each."""
    one, ends = tree.rounds[step], tree.standing(until)
    nodes = [tree.nodes[place] for place in (*one.kept, *one.closed, *one.dropped)]
    nodes.sort(key=lambda node: -node.compared)
    rows = []
    for node in nodes:
        before, short = [vocabulary[i] for i in tree.ids(node.place)[:-1]], tree.short(node)
        rows.append([
            str(node.rank or ""), joined(" ", before[-6:]), vocabulary[node.piece], f"{math.exp(node.log_prob):.4f}",
            _signed(node.compared), "" if short is None else _signed(short),
            fate_of(tree, node, vocabulary, ends=ends, until=until),
        ])  # fmt: skip
    note = ""
    if len(one.dropped) < one.n_dropped:
        note = say(
            "{all:,} continuations were dropped. The table lists the {n} that came closest to being kept.",
            n=len(one.dropped),
            all=one.n_dropped,
        )
    return Rows(columns=_COLUMNS, rows=rows, fold=say("Continuations considered at step {n}", n=step + 1), note=note)


def _signed(number: float) -> str:
    return f"{number:.3f}".replace("-", "−")


@paragraph
def _did(tree: SearchTree, step: int, vocabulary: Sequence[str]) -> Iterator[str]:
    here = tree.rounds[step]
    ended = sum(tree.nodes[place].fate == "ended" for place in here.kept)
    if here.forced:
        piece = vocabulary[tree.nodes[here.kept[0]].piece] if here.kept else ""
        yield say(
            "Step {step}: “{piece}” is forced here, so no other piece was considered.", step=step + 1, piece=piece
        )
        return
    n = len(here.kept) + here.n_dropped
    yield say("Step {step}: {kept} of {n:,} continuations were kept.", step=step + 1, n=n, kept=len(here.kept))
    if ended:
        yield say("Of those kept, {n} ended.", n=ended)
    if here.dropped:
        best, last = tree.nodes[here.dropped[0]], tree.last_kept(step)
        yield say(
            "The best continuation that was dropped is “{dropped}”, with a log-probability sum of {a:.2f}. The "
            "lowest-ranked one kept is “{kept}”, with {b:.2f}.",
            dropped=_end_of(tree, best, vocabulary),
            a=best.compared,
            kept="" if last is None else _end_of(tree, last, vocabulary),
            b=math.nan if last is None else last.compared,
        )


def _end_of(tree: SearchTree, node: Node, vocabulary: Sequence[str]) -> str:
    """The last pieces of a beginning."""
    ids = tree.ids(node.place)
    pieces = joined(" ", [vocabulary[i] for i in ids[-3:]])
    return joined(" ", ["…", pieces]) if len(ids) > 3 else pieces
