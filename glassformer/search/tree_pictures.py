"""Picture of a beam search as a tree, with each node's fate in words; the record of its page and parts."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from glassformer.charts.graphs import HOW_TO_READ as HOW_TO_READ_TREE
from glassformer.charts.graphs import Leaf, Twig, search_tree_spec
from glassformer.runs.picture import Captions, CaptionTable, Page, PartEntry, Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.search import SearchLook
from glassformer.server.jobs import SMALL
from glassformer.server.model_runner import cost_of
from glassformer.state.view import place_of
from transformer.analysis.search_tree import Node, SearchTree, search_tree
from transformer.i18n import joined, paragraph, say, say_n
from transformer.model.anatomy import anatomy
from transformer.runs.query import Beam

SEARCH = Page(
    "search",
    say("How tokens are chosen"),
    panel="search_panel",
    kind=lambda view: "cross",
    entries=(
        PartEntry("tree", say("Beam tree"), "glassformer.search.tree_panel:draw"),
        PartEntry("sampling", say("Sampling"), "glassformer.search.search_panels:sampled"),
        PartEntry(
            "draws", say("Many draws"), "glassformer.search.search_panels:many_draws", is_there=lambda run: False
        ),  # old addresses name it
    ),
)
NO_TEXT: Final = say("(no text)")


def seconds_of(run: ViewedRun, n: int) -> float:
    """How long draws take, about: they are as long as the run, and go through the model some at a time."""
    return n * run.trace.n_steps * (3e-4 + run.checkpoint.config.count_parameters() * 2.1e-10)


_COLUMNS: Final = (
    say("Rank", about="in an order, 1 is the top"), say("Beginning"), say("Token"), say("Probability"), say("Sum"),
    say("Short by"), say("What became of the beginning"),
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
        return say("Probable enough to be kept, but a different token is forced at this step.")
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
            "Kept with rank {rank} at this step. At the next step, all its continuations were dropped.", rank=node.rank
        )
    return say("Kept with rank {rank} at this step. At the next step, its best continuation, “{piece}”, fell "
               "{short:.2f} short of the sum needed to be kept.", rank=node.rank, piece=vocabulary[best.piece],
               short=short)  # fmt: skip


def numbers_of(tree: SearchTree, node: Node) -> Iterator[str]:
    """The numbers of a beginning, a line each."""
    yield say("probability given the tokens before it: {p:.4f}", p=math.exp(node.log_prob))
    yield say("sum of log-probabilities: {total:.3f}", total=node.total)
    if abs(node.compared - node.total) > 1e-9:
        yield say(
            "sum of log-probabilities, adjusted by the rules in the model's config: {value:.3f}", value=node.compared
        )
    if node.fate == "ended" or node.result is not None:
        yield say("score, the sum divided by the length penalty: {score:.3f}", score=node.score)
    if node.rank:
        yield say("rank {rank} at this step", rank=node.rank)


def _weighed(tree: SearchTree, step: int, vocabulary: Sequence[str], until: int) -> CaptionTable:
    """What a round weighed: best first, with what became of each; `until` as for `fate_of`."""
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
    return CaptionTable(
        columns=_COLUMNS, rows=rows, fold=say("Continuations considered at step {n}", n=step + 1), note=note
    )


def _signed(number: float) -> str:
    return f"{number:.3f}".replace("-", "−")


@paragraph
def _did(tree: SearchTree, step: int, vocabulary: Sequence[str]) -> Iterator[str]:
    here = tree.rounds[step]
    ended = sum(tree.nodes[place].fate == "ended" for place in here.kept)
    if here.forced:
        piece = vocabulary[tree.nodes[here.kept[0]].piece] if here.kept else ""
        yield say(
            "Step {step}: “{piece}” is forced here, so no other token was considered.", step=step + 1, piece=piece
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


@dataclass(frozen=True)
class Searched(RunScene):
    """A beam search of the sentence at hand."""

    tree: SearchTree

    @property
    def last(self) -> int:
        """The last round, from 0."""
        return len(self.tree.rounds) - 1

    @property
    def known(self) -> int:
        """The last round of which anything is said: no later one than the reader has stepped to, or may see."""
        visible, view = self.run.visible, self.run.view
        if view.guess:
            return min(visible.n_steps - int(visible.covered) - 1, self.last)
        return min(view.step, self.last) if view.of(SearchLook).rounds == "step" else self.last

    @property
    def until(self) -> int:
        """The last round that is drawn: after the last result the search goes on, to see that it is the last."""
        if self.run.view.guess or self.run.view.of(SearchLook).rounds != "results":
            return self.known
        return max(self.tree.nodes[place].step for place in self.tree.results)


def searched(run: ViewedRun) -> Searched | None:
    """The search of the run, or where it decodes in another way one by a beam of the usual size.

    None where nothing is written, and where another search may take long and was not asked for. It is made once, and
    shorter work may go first. Errors as of `ModelAccess`.
    """
    how, config = run.trace.query.decoding, run.checkpoint.config
    unasked = isinstance(how, Beam) or run.view.of(SearchLook).with_beam or config.count_parameters() <= SMALL
    if not anatomy(config).writes or not unasked:
        return None
    query = replace(run.trace.query, decoding=how if isinstance(how, Beam) else Beam(), hypothesis=0)
    tree = run.work.long(
        ("search_tree", query),
        lambda pause: search_tree(run.checkpoint, query, pause=pause),
        cost=cost_of(query),
        nbytes=lambda made: made.nbytes,
    )
    return Searched(run, tree)


TREE = SEARCH.part("tree", searched)
MOST_ENDS: Final = 2  # dropped ones of each step that are drawn
MOST_ENDS_HERE: Final = 4  # of the current step, whose pieces are labelled, too
FEW_STEPS: Final = 8  # with no more, all have room for their pieces


@TREE.picture("search_tree", say("A beam search as a tree"))
def tree(scene: Searched) -> Plot | None:
    """What the search kept and dropped; a click means a beginning. None before a guess that is the first."""
    run, found, until, known = scene.run, scene.tree, scene.until, scene.known
    if until < 0:
        return None
    beam, decode = isinstance(run.trace.query.decoding, Beam), run.checkpoint.tgt_tokenizer.decode
    up_to_step = run.view.of(SearchLook).rounds == "step" and not run.view.guess
    best_text = [decode(found.ids(place)) for place in found.standing(known)[:1]]
    spec = search_tree_spec(
        _twigs(scene),
        _leaves(scene),
        title=say_n(
            "Search with {n} beam, length penalty {alpha:g}",
            "Search with {n} beams, length penalty {alpha:g}",
            found.how.size,
            alpha=found.how.length_penalty,
        ),
        start=run.trace.row_label(run.trace.first_row).reads,
        n_steps=scene.last + 1 if up_to_step else until + 1,
        step=run.view.step,
        shown=run.trace.query.hypothesis if beam and known == scene.last else None,
    )
    alt = say(
        "A tree of the partial outputs that the search kept or dropped in {n} steps. The best output is “{text}”.",
        n=until + 1,
        text=joined("", best_text),
    )
    read = joined(" ", [HOW_TO_READ_TREE, *([_how_it_ended(scene)] if known == scene.last else [])])
    step, vocabulary = min(run.view.step, known), run.trace.vocabulary
    said = Captions(above=_did(found, step, vocabulary), table=_weighed(found, step, vocabulary, known))
    return Plot(spec=spec, alt=alt, how_to_read=read, fit=True, clicked=place_of, said=said)


def _twigs(scene: Searched) -> list[Twig]:
    """The beginnings that are drawn, parents before their children."""
    found, vocabulary, step = scene.tree, scene.run.trace.vocabulary, scene.run.view.step
    ends = found.standing(scene.known)
    ways = found.ways_to(ends)

    def twig(node: Node) -> Twig:
        fate = fate_of(found, node, vocabulary, ends=ends, until=scene.known)
        return Twig(
            place=node.place,
            parent=node.parent,
            step=node.step,
            piece=vocabulary[node.piece],
            kind=node.fate,
            numbers=[*numbers_of(found, node), *([fate] if fate else [])],
            result=ways.get(node.place) if node.is_kept else None,
            named=node.step == step or scene.until < FEW_STEPS,
        )

    drawn: list[int] = []
    for n, one in enumerate(found.rounds[: scene.until + 1]):
        drawn += [*one.kept, *one.dropped[: MOST_ENDS_HERE if n == step else MOST_ENDS], *one.closed]
    return [twig(found.nodes[place]) for place in drawn]


def _leaves(scene: Searched) -> list[Leaf]:
    """What is written at the right: the results, or what stood best after an earlier round."""
    leaves, decode = [], scene.run.checkpoint.tgt_tokenizer.decode
    for place in scene.tree.standing(scene.known):
        node = scene.tree.nodes[place]
        numbers = say("score {score:.3f}", score=node.score)
        if node.fate == "open":
            numbers = say("not ended, score {score:.3f}", score=node.score)
        leaves.append(Leaf(place, decode(scene.tree.ids(place)) or NO_TEXT, numbers))
    return leaves


def _how_it_ended(scene: Searched) -> str:
    if not scene.tree.settled:
        return say("The search stopped at the maximum output length.")
    if scene.until < scene.last:
        return say("The search continued to step {n} but found no better result.", n=scene.last + 1)
    return say("The search ended once no unfinished output could make it into the results.")
