"""The pictures of the page How pieces are chosen: a beam search as a tree, a step before the draw, many draws.

Knows nothing of Streamlit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from glassformer.charts.draws import HOW_TO_READ as HOW_TO_READ_DRAWS
from glassformer.charts.draws import Drawn, draws_spec
from glassformer.charts.reshaped import HOW_TO_READ as HOW_TO_READ_RESHAPED
from glassformer.charts.reshaped import Shares, others_named, reshaped_spec
from glassformer.charts.search_marks import Leaf, Twig
from glassformer.charts.search_tree import HOW_TO_READ as HOW_TO_READ_TREE
from glassformer.charts.search_tree import search_tree_spec
from glassformer.runs.picture import Page, Plot
from glassformer.runs.seen import OfRun, Seen
from glassformer.search import SearchLook, reshaping_words, telling
from glassformer.server.jobs import SMALL
from glassformer.server.queue import cost_of
from glassformer.state.click import place_of
from glassformer.state.view import Slot, View
from transformer.analysis.draws import Draw, Outcome, draws, outcomes
from transformer.analysis.reshaping import Reshaped, reshaped
from transformer.analysis.search_tree import Node, SearchTree, search_tree
from transformer.i18n import joined, say, say_n
from transformer.model.anatomy import anatomy
from transformer.runs.distribution import best
from transformer.runs.query import Beam, Query, Sampling

SEARCH = Page("search", say("How pieces are chosen"), panel="search_panel", kind=lambda view: "cross")
NO_TEXT: Final = say("(no text)")


# ------------------------------------------------------------------------------------------------ the tree


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


TREE = SEARCH.part("tree", say("Beam tree"), searched)
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


# ------------------------------------------------------------------------------------------------ before the draw


@dataclass(frozen=True)
class BeforeDraw(OfRun):
    """What a step may draw from."""

    found: Reshaped


def run_draws(run: Seen) -> Sampling:
    """How the run samples; without cuts at temperature 1 if it decodes in another way."""
    how = run.trace.query.decoding
    return how if isinstance(how, Sampling) else Sampling()


def looked_at(run: Seen) -> Sampling:
    """How it would sample: by the run's own settings, where the reader has not chosen others."""
    look, own = run.view.of(SearchLook), run_draws(run)
    top_k = own.top_k if look.try_k is None else look.try_k
    return replace(
        own,
        temperature=own.temperature if look.try_temperature is None else look.try_temperature,
        top_k=top_k if top_k < len(run.trace.vocabulary) else 0,
        top_p=own.top_p if look.try_p is None else look.try_p,
    )


def before(run: Seen) -> BeforeDraw | None:
    """What the step may draw from; None where nothing is written, and while somebody guesses."""
    if not run.trace.n_steps or run.looking.covered:
        return None
    step = run.view.step
    return BeforeDraw(run, reshaped(run.trace.log_probs[step], run.trace.scores_at(step), looked_at(run)))


SAMPLING = SEARCH.part("sampling", say("Before the draw"), before)
MOST_ROWS: Final = 14


@SAMPLING.picture("search_before", say("Before the draw"))
def shares(scene: BeforeDraw) -> Plot:
    """The model's own probabilities, those after the temperature, and those that are drawn from."""
    found, step = scene.found, scene.run.view.step
    ids = _listed(scene)
    kept, whole = sum(found.cut[i] > 0 for i in ids), int((found.cut > 0).sum())
    rest = len(found.raw) - len(ids)
    return Plot(
        spec=reshaped_spec(
            [_row(scene, i) for i in ids],
            others=(rest, _others(found, ids, rest)),
            border=kept if whole == kept < len(ids) else None,
            title=say("Step {n}: before the draw", n=step + 1),
        ),
        alt=say("Each of the likeliest pieces at step {n} with three probabilities: the model's own, after "
                "temperature, and after top-k and top-p.", n=step + 1),
        how_to_read=HOW_TO_READ_RESHAPED,
        fit=True,
        said=reshaping_words.about(scene.run.trace, found),
    )  # fmt: skip


def _listed(scene: BeforeDraw) -> list[int]:
    """The pieces that have a row: the likeliest of what is drawn from, and the one that the run has."""
    listed = best(np.log(np.maximum(scene.found.tempered, 1e-45)), min(MOST_ROWS, len(scene.found.raw)))
    drawn = _drawn_by(scene.run)
    return listed if drawn is None or drawn in listed else [*listed[:-1], drawn]


def _drawn_by(run: Seen) -> int | None:
    """The piece of the step, if the run drew it."""
    drew = isinstance(run.trace.query.decoding, Sampling) and run.view.step >= run.trace.n_forced
    return run.trace.tgt_ids[run.view.step] if drew else None


def _row(scene: BeforeDraw, i: int) -> Shares:
    found, drawn = scene.found, i == _drawn_by(scene.run)
    said = [say("drawn by this run")] if drawn else []
    if found.raw[i] > 0 and found.tempered[i] == 0:
        said.append(say("excluded by the model's settings, or its probability is too small to distinguish from 0"))
    elif found.by_k[i] == 0 < found.tempered[i]:
        said.append(say("cut off by top-k"))
    elif found.cut[i] == 0 < found.by_k[i]:
        said.append(say("cut off by top-p"))
    raw, tempered, cut = (float(one[i]) for one in (found.raw, found.tempered, found.cut))
    return Shares(scene.run.trace.vocabulary[i], raw, tempered, cut, id=i, note=joined("; ", said), drawn=drawn)


def _others(found: Reshaped, ids: list[int], rest: int) -> Shares:
    raw, tempered, cut = (max(1.0 - float(one[ids].sum()), 0.0) for one in (found.raw, found.tempered, found.cut))
    some_left = bool((np.delete(found.cut, ids) > 0).any())
    return Shares(others_named(rest), raw, tempered, cut if some_left else 0.0)


# ------------------------------------------------------------------------------------------------ many draws


@dataclass(frozen=True)
class Outputs:
    """The outputs of many draws."""

    slot: Slot
    n: int  # draws that are there
    every: Sequence[Outcome]  # what came of them, the most frequent first
    seed: int | None  # of the draw that is opened

    @property
    def chosen(self) -> int | None:
        """The place of the output that is opened."""
        return next((place for place, one in enumerate(self.every) if self.seed in one.seeds), None)


COUNTS: Final = (20, 50, 100, 200)
USUAL_COUNT: Final = 50
QUICK_SECONDS: Final = 0.6


def to_draw(run: Seen) -> tuple[Query, int]:
    """What is drawn many times, with seed 0, and how often."""
    query = replace(run.trace.query, decoding=replace(looked_at(run), seed=0), hypothesis=0)
    return query, run.view.of(SearchLook).draws if run.view.of(SearchLook).draws in COUNTS else USUAL_COUNT


def seconds_of(run: Seen, n: int) -> float:
    """How long draws take, about: they are as long as the run, and go through the model some at a time."""
    return n * run.trace.n_steps * (3e-4 + run.checkpoint.config.count_parameters() * 2.1e-10)


def outputs(found: Sequence[Draw], slot: Slot, view: View) -> Outputs:
    """What came of draws."""
    return Outputs(slot, len(found), outcomes(found), view.of(SearchLook).opened_seed)


def _drawn_now(run: Seen) -> Outputs | None:
    """Draws that are made at once; None where that takes long, and while somebody guesses."""
    (query, n), first = to_draw(run), run.view.of(SearchLook).first_seed
    if not run.trace.n_steps or run.view.guess or seconds_of(run, n) > QUICK_SECONDS:
        return None
    found = run.work.long(
        ("draws", query, first, n),
        lambda pause: tuple(draws(run.checkpoint, query, range(first, first + n), pause=pause)),
        cost=cost_of(query) * n,
        nbytes=lambda made: 500 * len(made),
    )
    return outputs(found, run.slot, run.view)


DRAWS = SEARCH.part("draws", say("Many draws"), _drawn_now)
MOST_BARS: Final = 12  # the table has all


@DRAWS.picture("search_draws", say("The outputs of many draws"), follows="still")
def drawn(scene: Outputs) -> Plot:
    """How often each output came, beside how probable it was; a click means a seed that draws it."""
    rows = [
        Drawn(one.text or NO_TEXT, len(one.seeds), one.frequency, one.drawn, one.own, one.low, one.high, one.seeds[0])
        for one in scene.every[:MOST_BARS]
    ]
    several = len(scene.every) > MOST_BARS
    chosen = scene.chosen if scene.chosen in range(len(rows)) else None
    spec = draws_spec(
        rows,
        title=say("The most frequent outputs in {n} draws", n=scene.n)
        if several
        else say("All outputs of {n} draws", n=scene.n),
        chosen=chosen,
    )
    alt = say(
        "How often each output was drawn, next to how probable it is; the most frequent output is “{text}”.",
        text=rows[0].text,
    )
    return Plot(spec=spec, alt=alt, how_to_read=HOW_TO_READ_DRAWS, clicked=place_of)
