"""The picture of the part Beam tree: a beam search as a tree.

Knows nothing of Streamlit.
"""

from dataclasses import dataclass, replace
from typing import Final

from glassformer.charts.search_marks import Leaf, Twig
from glassformer.charts.search_tree import HOW_TO_READ as HOW_TO_READ_TREE
from glassformer.charts.search_tree import search_tree_spec
from glassformer.runs.picture import Plot
from glassformer.runs.seen import OfRun, Seen
from glassformer.search import SearchLook
from glassformer.search.search_page import NO_TEXT, SEARCH
from glassformer.search.tree import telling
from glassformer.server.jobs import SMALL
from glassformer.server.queue import cost_of
from glassformer.state.click import place_of
from transformer.analysis.search_tree import Node, SearchTree, search_tree
from transformer.i18n import joined, say, say_n
from transformer.model.anatomy import anatomy
from transformer.runs.query import Beam


@dataclass(frozen=True)
class Searched(OfRun):
    """A beam search of the sentence at hand."""

    tree: SearchTree

    @property
    def last(self) -> int:
        """The last round, from 0."""
        return len(self.tree.rounds) - 1

    @property
    def known(self) -> int:
        """The last round of which anything is said: no later one than the reader has stepped to, or may see."""
        looking, view = self.run.looking, self.run.view
        if view.guess:
            return min(looking.n_steps - int(looking.covered) - 1, self.last)
        return min(view.step, self.last) if view.of(SearchLook).rounds == "step" else self.last

    @property
    def until(self) -> int:
        """The last round that is drawn: after the last result the search goes on, to see that it is the last."""
        if self.run.view.guess or self.run.view.of(SearchLook).rounds != "results":
            return self.known
        return max(self.tree.nodes[place].step for place in self.tree.results)


def searched(run: Seen) -> Searched | None:
    """The search of the run, or where it decodes in another way one by a beam of the usual size.

    None where nothing is written, and where another search may take long and was not asked for. It is made once, and
    shorter work may go first. Errors as of `Work`.
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
MOST_ENDS_HERE: Final = 4  # of the step that is looked at, whose pieces are written, too
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
    said = telling.of_round(found, min(run.view.step, known), run.trace.vocabulary, until=known)
    return Plot(spec=spec, alt=alt, how_to_read=read, fit=True, clicked=place_of, said=said)


def _twigs(scene: Searched) -> list[Twig]:
    """The beginnings that are drawn, parents before their children."""
    found, vocabulary, step = scene.tree, scene.run.trace.vocabulary, scene.run.view.step
    ends = found.standing(scene.known)
    ways = found.ways_to(ends)

    def twig(node: Node) -> Twig:
        fate = telling.fate_of(found, node, vocabulary, ends=ends, until=scene.known)
        return Twig(
            place=node.place,
            parent=node.parent,
            step=node.step,
            piece=vocabulary[node.piece],
            kind=node.fate,
            numbers=[*telling.numbers_of(found, node), *([fate] if fate else [])],
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
