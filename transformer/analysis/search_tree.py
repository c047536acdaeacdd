"""The tree of a beam search, recorded by watching it: rounds, continuations kept and dropped, and their paths.

A node is a partial output. Its place in the tree follows from the pieces before it, so partial outputs that
hypotheses share appear once. Sums of log-probabilities decide what a round keeps; results are ordered by these sums
divided by the length penalty (`transformer.runs.beam`).

The tree is built by watching the search itself: nothing is searched twice.

Shapes: K beams, k continuations of a beam that can be kept, V target vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.runs.beam import Weighed, length_penalty
from transformer.runs.query import Beam, Query, Runnable
from transformer.runs.reading import DecodedOutput, Pause, go_on, read

MOST_DROPPED = 24
"""Of one round: the nearest to being kept. The round says how many there were."""
MOST_CLOSED = 4

Fate = Literal["open", "ended", "dropped", "closed"]


@dataclass(frozen=True)
class Node:
    """One partial output that the search considered."""

    place: int  # its place in the tree
    parent: int | None  # place of what it continues; None if it is a first piece
    step: int  # the round, and place of its last piece in the output, from 0
    piece: int  # its last piece
    log_prob: float  # of that piece given the pieces before it, in nats
    total: float  # sum of the log-probabilities of all of its pieces, in nats
    compared: float  # what rounds order by: the same, changed by what rules add (a repetition penalty), else equal
    score: float  # `compared` divided by the length penalty
    rank: int  # its place among the continuations of its round, from 1; 0 if it was closed
    # "open": kept, and continued in the next round. "ended": kept, with the end piece. "dropped": others were better.
    # "closed": better than the last that was kept, or as good, but closed by a rule or a forced piece.
    fate: Fate
    result: int | None = None  # its place among the results of the search, from 0; None if it is none of them

    @property
    def is_kept(self) -> bool:
        """Whether its round kept it."""
        return self.fate in ("open", "ended")


@dataclass(frozen=True)
class Round:
    """What one round did."""

    kept: tuple[int, ...]  # places of the nodes that were kept, best first
    dropped: tuple[int, ...]  # places of those that were dropped, best first; at most `MOST_DROPPED`
    closed: tuple[int, ...]  # places of those that a rule or a forced piece closed, at most `MOST_CLOSED`
    n_dropped: int  # how many were dropped: every other continuation of every beam that was open
    forced: bool = False  # whether its pieces were forced


@dataclass(frozen=True)
class SearchTree:
    """A whole search."""

    nodes: tuple[Node, ...]  # all nodes, parents before their children
    rounds: tuple[Round, ...]  # what each round did
    results: tuple[int, ...]  # the node of each result, best first
    log_probs: tuple[float, ...]  # of each result, in nats
    scores: tuple[float, ...]  # of each result
    how: Beam  # size of the beam and length penalty
    most: int  # most pieces that could be written

    @property
    def settled(self) -> bool:
        """Whether it ended before the limit, because no open partial output could still enter the results."""
        return len(self.rounds) < self.most

    @property
    def nbytes(self) -> int:
        """Approximate memory, in bytes."""
        return 300 * len(self.nodes)

    def path(self, place: int) -> tuple[int, ...]:
        """Places of a node and all nodes before it, in order."""
        found: list[int] = []
        at: int | None = place
        while at is not None:
            found.append(at)
            at = self.nodes[at].parent
        return tuple(reversed(found))

    def ids(self, place: int) -> tuple[int, ...]:
        """The pieces of a partial output."""
        return tuple(self.nodes[at].piece for at in self.path(place))

    def last_kept(self, step: int) -> Node | None:
        """The worst node that a round kept; None if it kept nothing."""
        kept = self.rounds[step].kept
        return self.nodes[kept[-1]] if kept else None

    def short(self, node: Node) -> float | None:
        """How far a dropped node is behind the worst that its round kept, in nats; None for other nodes."""
        last = self.last_kept(node.step)
        return None if node.fate != "dropped" or last is None else last.compared - node.compared

    def standing(self, step: int) -> tuple[int, ...]:
        """The best partial outputs after a round, best first: those that had ended, and those still open."""
        if step >= len(self.rounds) - 1:
            return self.results
        kept = [node for node in self.nodes if node.is_kept and node.step <= step]
        there = [node for node in kept if node.fate == "ended" or node.step == step]
        return tuple(node.place for node in sorted(there, key=lambda node: -node.score)[: self.how.size])

    def best_continuation(self, place: int) -> Node | None:
        """The best continuation of a partial output in the next round, if it was recorded."""
        found = self._best_continuations.get(place)
        return None if found is None else self.nodes[found]

    @cached_property
    def _best_continuations(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for node in sorted(self.nodes, key=lambda node: node.rank):
            if node.parent is not None and node.rank:
                found.setdefault(node.parent, node.place)
        return found

    def ways_to(self, ends: Sequence[int]) -> dict[int, int]:
        """For each node on the way to one of these ends, the first such end."""
        found: dict[int, int] = {}
        for result, place in enumerate(ends):
            for at in self.path(place):
                found.setdefault(at, result)
        return found


@torch.inference_mode()
def search_tree(checkpoint: Runnable, query: Query, *, pause: Pause = go_on) -> SearchTree:
    """Search like a run of a query with beam search, and keep what was considered.

    The query's interventions and forced pieces apply here, too; `pause` is called between two rounds. A QueryError
    says that the query decodes in another way, or does not fit the checkpoint; see `run`.
    """
    how = query.decoding
    if not isinstance(how, Beam):
        raise QueryError(
            "a search tree needs beam search, but the decoding is {found}. Set the decoding to Beam.",
            found=type(how).__name__,
        )
    reading = read(checkpoint, [replace(query, hypothesis=0)], most_map_bytes=0)  # with the numbers of `run`
    watcher = _Watcher(how, checkpoint.config.end_ids, len(reading.sources[0].forced))
    (output,) = reading.decode(pause, watch=watcher.see)
    return watcher.tree(output, min(query.max_new, reading.sources[0].room))


@dataclass
class _Watcher:
    """Makes nodes of what each round weighed."""

    how: Beam
    end_ids: tuple[int, ...]
    n_forced: int
    nodes: list[Node] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    beams: list[int | None] = field(default_factory=list)  # the node of each row of the beam

    def see(self, weighed: Weighed) -> None:
        """Take one round in."""
        self.beams = self.beams or [None] * self.how.size
        before = (weighed.log_probs + weighed.lowered)[0]  # [K]
        totals = before[:, None] + weighed.scores[0]  # [K, V], in float64 like the sums
        kept = list(_kept(weighed))
        wanted = min(self.how.size + MOST_DROPPED, totals.numel())
        likeliest: list[int] = totals.flatten().topk(wanted).indices.tolist()
        best = [divmod(place, totals.size(1)) for place in likeliest]
        others = [one for one in best if one not in set(kept) and totals[one] > -torch.inf][:MOST_DROPPED]
        first = len(kept) + 1
        places = [self._node(weighed, *at, float(totals[at]), n) for n, at in enumerate(kept, start=1)]
        dropped = [self._node(weighed, *at, float(totals[at]), n, "dropped") for n, at in enumerate(others, first)]
        least = self.nodes[places[-1]].compared if kept else torch.inf
        closed = self._closed(weighed, before[:, None] + weighed.own[0], least) if kept else []
        n_dropped = int((totals > -torch.inf).sum()) - len(kept)
        is_forced = weighed.index < self.n_forced
        self.rounds.append(Round(tuple(places), tuple(dropped), tuple(closed), n_dropped, is_forced))
        self.beams = [*places, *[None] * (self.how.size - len(places))]

    def _node(
        self, weighed: Weighed, beam: int, piece: int, compared: float, rank: int, fate: Fate | None = None
    ) -> int:
        """A node for a beam and a piece that continues it."""
        fate = fate or ("ended" if piece in self.end_ids else "open")
        log_prob = float(weighed.own[0, beam, piece])
        total = float(weighed.log_probs[0, beam]) + log_prob
        score = compared / length_penalty(weighed.index + 1, self.how.length_penalty)
        place = len(self.nodes)
        parent = self.beams[beam]
        self.nodes.append(Node(place, parent, weighed.index, piece, log_prob, total, compared, score, rank, fate))
        return place

    def _closed(self, weighed: Weighed, compared: Tensor, least: float) -> Iterator[int]:
        """Nodes for what is at least as good [K, V] as the last that was kept, and closed; the best first."""
        missed = (weighed.scores[0] == -torch.inf) & (compared >= least)
        found = [(float(compared[beam, piece]), beam, piece) for beam, piece in missed.nonzero().tolist()]
        for value, beam, piece in sorted(found, reverse=True)[:MOST_CLOSED]:
            yield self._node(weighed, beam, piece, value, 0, "closed")

    def tree(self, output: DecodedOutput, most: int) -> SearchTree:
        """The tree, with its results marked."""
        by_path = {(node.parent, node.piece): node.place for node in self.nodes if node.is_kept}
        nodes, results = list(self.nodes), []
        for rank, found in enumerate(output.hypotheses):
            at: int | None = None
            for piece in found.ids:
                at = by_path[at, piece]
            if at is not None:
                nodes[at] = replace(nodes[at], result=rank)
                results.append(at)
        log_probs, scores = zip(*((one.log_prob, one.score) for one in output.hypotheses), strict=True)
        return SearchTree(tuple(nodes), tuple(self.rounds), tuple(results), log_probs, scores, self.how, most)


def _kept(weighed: Weighed) -> Iterator[tuple[int, int]]:
    """The beams and pieces that a round keeps, best first; it may have fewer to choose from than it has beams."""
    pieces, totals = weighed.pieces[0], weighed.totals[0].flatten()
    for place in weighed.kept[0].tolist():
        if totals[place] > -torch.inf:
            beam, n = divmod(place, pieces.size(1))
            yield beam, int(pieces[beam, n])
