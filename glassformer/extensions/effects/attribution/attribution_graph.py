"""Attribution graph of a logit: nodes (heads, feed-forward, embeddings) by token, edges, strongest ones, one cut.

With the rest held (`held_run`), a logit is the sum of what it owes to each path from an embedding, a position or a bias
through any heads and feed-forward layers to the output. The nodes are these parts at each token; the biases are one
node. An edge leads from what writes to what reads it directly: along the residual stream, and for a head from the
token of a key to that of a query, by its weight. Its value is what the logit owes to this reading, with all that the
reader does of it later:

    value(s -> t) = g_t . J_t (what s wrote, as it reaches t),    g_t = d logit / d (what t wrote), J_t the held map

The edges into the output add up to the logit; those into any other node, to those out of it.

**Pruning.** The output has a weight of 1. Each node hands its weight back to what it read, in proportion to the
absolute values of these edges, until all of it has reached embeddings, positions and biases. The weight that passes an
edge is its influence. The strongest edges are kept; what they explain is the weight that arrives if only they are
there, which is that of the paths all of whose edges are kept.

What is held may be what decides. **Path patching**, `cut`, measures what cutting an edge truly does to the step, with
nothing held, in two passes of the model. In the first, every sub-layer writes what it wrote in the run, except that
what the source wrote is taken away at its token: so the loss goes to the target along the residual stream alone. Norms
measure anew, and the target computes for itself with what is left, a head its query, key and value, too. The second
pass is the run, with what the target computed then in the place of what it wrote at its token; all that comes later
follows.

Source: Ameisen et al., "Circuit Tracing: Revealing Computational Graphs in Language Models" (2025), for attribution
graphs and their pruning, with features of a trained transcoder in the place of feed-forward layers; Wang et al.,
"Interpretability in the Wild" (2023), section 3.1, and Goldowsky-Dill et al., "Localizing Model Behavior with Path
Patching" (2023), for cuts.

Shapes: N nodes, E edges, V target vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import torch
from torch import Tensor

from glassformer.extensions.effects.attribution.held_run import HeldRun, LogitPart, reads
from glassformer.extensions.effects.attribution.target import AttributionTarget
from transformer.errors import QueryError
from transformer.model.anatomy import StackName
from transformer.model.taps import Recorder, Replacer
from transformer.runs.array_records import ArrayRecord

MOST_LAYERS: Final = 12  # of a stack
MOST_VALUES: Final = 2**26  # of what all parts write into a stack, or of the edges of a sub-layer: 512 MB
KEPT: Final = 2**16
"""Edges into a sub-layer that are kept, the strongest; small models have fewer."""


@dataclass(frozen=True, eq=False)
class AttributionGraph(ArrayRecord):
    """The nodes and edges of one logit, in the order of the computation: the biases first, the output last."""

    parts: tuple[LogitPart, ...]  # what the nodes are, at a token each
    part: np.ndarray  # of each node, its place in `parts` [N]
    token: np.ndarray  # of each node, from 0; 0 for the biases and the output [N]
    source: np.ndarray  # the node that each edge leaves [E]
    target: np.ndarray  # the node that reads it [E]
    value: np.ndarray  # what the edge adds to the logit [E]
    ends: np.ndarray  # where the edges into each sub-layer begin, and E
    into: np.ndarray  # the sum of all edges into each node, kept or not [N]
    size: np.ndarray  # the sum of their absolute values [N]

    @cached_property
    def influence(self) -> np.ndarray:
        """The share of the output's weight that passes each edge [E]."""
        return self._arriving(np.arange(len(self.value)))[self.target] * self._shares

    @cached_property
    def _shares(self) -> np.ndarray:
        """What each edge takes of the weight of the node that it leads to [E]."""
        return np.abs(self.value) / self.size[self.target]

    @cached_property
    def _is_leaf(self) -> np.ndarray:
        return np.array([self.parts[part].kind not in ("head", "ffn", "logit") for part in self.part])

    def ends_of(self, edge: int) -> tuple[tuple[LogitPart, int], tuple[LogitPart, int]]:
        """Part and token of what an edge leaves, and of what reads it."""
        ends = [(self.parts[self.part[n]], int(self.token[n])) for n in (self.source[edge], self.target[edge])]
        return ends[0], ends[1]

    def explained(self, edges: np.ndarray) -> float:
        """The share of the output's weight that arrives by paths of these edges alone, which are in order."""
        return float(self._arriving(edges)[self._is_leaf].sum())

    def strongest(self, share: float, *, most: int | None = None) -> np.ndarray:
        """The fewest edges, strongest first by influence, that explain this share, or `most` of them; in order.

        Of these, edges on no path from a leaf to the output are left out.
        """
        order = np.argsort(-self.influence, kind="stable")
        low, high = 1, min(len(order), most or len(order))
        while low < high:
            middle = (low + high) // 2
            enough = self.explained(np.sort(order[:middle])) >= share
            low, high = (low, middle) if enough else (middle + 1, high)
        edges, fed = np.sort(order[:low]), self._is_leaf.copy()
        for some in self._by_sublayer(edges):
            fed[self.target[some[fed[self.source[some]]]]] = True
        edges = edges[fed[self.source[edges]]]
        return edges[self._arriving(edges)[self.target[edges]] > 0]

    def _by_sublayer(self, edges: np.ndarray) -> list[np.ndarray]:
        """Some edges, in order, apart by what they lead to."""
        return np.split(edges, np.searchsorted(edges, self.ends[1:-1]))

    def _arriving(self, edges: np.ndarray) -> np.ndarray:
        """The weight of each node if only these edges are there [N]."""
        weight = np.zeros(len(self.part))
        weight[-1] = 1.0
        for some in reversed(self._by_sublayer(edges)):
            passed = weight[self.target[some]] * self._shares[some]
            weight += np.bincount(self.source[some], passed, minlength=len(weight))
        return weight


class _Gathered:
    """The nodes and edges so far."""

    def __init__(self, n_tokens: Mapping[StackName, int], keep: int) -> None:
        self._n_tokens, self._keep, self._first = n_tokens, keep, dict[LogitPart, int]()
        self._parts, self._part, self._token = list[LogitPart](), list[int](), list[int]()
        self._edges = list[tuple[np.ndarray, np.ndarray, np.ndarray]]()  # sources, targets, values
        self._sums = list[tuple[np.ndarray, np.ndarray, np.ndarray]]()  # nodes, sums of edges, of their sizes
        self._add(LogitPart("bias"))

    def _add(self, part: LogitPart) -> int:
        """The first node of a part, which gets its nodes if it has none yet."""
        if part not in self._first:
            n = 1 if part.stack is None else self._n_tokens[part.stack]
            self._first[part] = len(self._part)
            self._part += [len(self._parts)] * n
            self._token += range(n)
            self._parts.append(part)
        return self._first[part]

    def take(
        self, targets: Sequence[LogitPart], sources: Sequence[LogitPart], values: Tensor, tokens: np.ndarray
    ) -> None:
        """Edges [target, query, source, key], the biases first of the sources; the keys are at `tokens` [query, key].

        The biases of all keys are one node.
        """
        found = values.numpy()
        bias, rest = found[:, :, 0].sum(axis=-1), found[:, :, 1:]
        starts, firsts = (np.array([self._add(part) for part in some]) for some in (sources[1:], targets))
        nodes = firsts[:, None] + np.arange(found.shape[1])  # [target, query]
        sizes = np.abs(bias) + np.abs(rest).sum(axis=(2, 3))
        self._sums.append((nodes.ravel(), (bias + rest.sum(axis=(2, 3))).ravel(), sizes.ravel()))
        some = np.flatnonzero(rest)
        if len(some) > self._keep:
            some = np.sort(some[np.argsort(-np.abs(rest.ravel()[some]), kind="stable")[: self._keep]])
        target, query, source, key = np.unravel_index(some, rest.shape)
        fed = np.flatnonzero(bias)
        sources_of = np.concatenate([np.zeros(len(fed), np.intp), starts[source] + tokens[query, key]])
        targets_of = np.concatenate([nodes.ravel()[fed], nodes[target, query]])
        self._edges.append((sources_of, targets_of, np.concatenate([bias.ravel()[fed], rest.ravel()[some]])))

    def graph(self) -> AttributionGraph:
        """All of it."""
        into, size = np.zeros(len(self._part)), np.zeros(len(self._part))
        for nodes, sums, sizes in self._sums:
            into[nodes], size[nodes] = sums, sizes
        source, target, value = (np.concatenate(some) for some in zip(*self._edges, strict=True))
        ends = np.cumsum([0, *(len(some[0]) for some in self._edges)])
        part, token = np.array(self._part), np.array(self._token)
        return AttributionGraph(tuple(self._parts), part, token, source, target, value, ends, into, size)


def attribution_graph(asked: AttributionTarget, *, rival: int | None = None, keep: int = KEPT) -> AttributionGraph:
    """The graph of the logit of a step's piece, minus that of a rival, if one is given.

    `keep` is the most edges into a sub-layer that are kept; `into` and `size` are of all. A QueryError says that the
    model or the text is too large.
    """
    check_size(asked)
    held = HeldRun(asked)
    rows, biases = held.output([asked.piece, *([] if rival is None else [rival])])
    row, bias = (rows[0], biases[0]) if rival is None else (rows[0] - rows[1], biases[0] - biases[1])
    slopes = held.slopes(row)
    made = _Gathered({stack: len(held.value(f"{stack}.embedding.tokens")) for stack in held.stacks}, keep)
    for one, _, context in reads(held):
        read = context.merged
        if one is None:
            last = read.rows[:, asked.row] @ row  # [S]
            last[0] += bias
            made.take([LogitPart("logit")], read.parts, last[None, None, :, None], np.array([[asked.row]]))
        elif one.writers[0].varies:
            values = one.edges(read.rows, slopes[one.near.place])
            queries, keys = np.indices((values.size(1), read.rows.size(1)))
            made.take(one.writers, read.parts, values, queries[:, :1] if one.near.sublayer == "ffn" else keys)
    return made.graph()


def check_size(asked: AttributionTarget) -> None:
    """Check that the graph of a step can be computed; a QueryError says why not."""
    config, stacks = asked.model.config, asked.model.anatomy.stacks
    if (deepest := max(stack.n_layers for stack in stacks)) > MOST_LAYERS:
        raise QueryError(
            "this model has {n} layers; the graph of a logit is computed for at most {most} in a stack.",
            n=deepest,
            most=MOST_LAYERS,
        )
    parts = max(stack.n_layers * (2 * config.of(stack.name).n_heads + 6) for stack in stacks)
    most = min(MOST_VALUES // (parts * config.d_model), int((MOST_VALUES / (parts * config.n_heads)) ** 0.5))
    if (n := max(asked.read_ids.size(1), asked.src_ids.size(1))) > most:
        raise QueryError(
            "a text of {n:,} tokens is too long for the graph of a logit: for this model the limit is {most:,}.",
            n=n,
            most=most,
        )


# ------------------------------------------------------------------------------------------------ cutting an edge


@dataclass(frozen=True, eq=False)
class Cut(ArrayRecord):
    """The logits before and after an edge is cut."""

    before: np.ndarray  # [V]
    after: np.ndarray  # [V]

    def change(self, piece: int, rival: int | None = None) -> float:
        """The true effect on the logit of a piece, minus that of a rival."""
        change = self.after - self.before
        return float(change[piece] - (0.0 if rival is None else change[rival]))

    def probabilities(self, piece: int) -> tuple[float, float]:
        """The probability of a piece before and after."""
        before, after = (float(torch.tensor(one).softmax(dim=0)[piece]) for one in (self.before, self.after))
        return before, after


@torch.inference_mode()
def cut(held: HeldRun, source: tuple[LogitPart, int], target: tuple[LogitPart, int]) -> Cut:
    """Cut the edge from a source to a target, each a part at a token; a QueryError if the source is the biases."""
    (writer, token), (reader, at) = source, target
    if writer.kind == "bias":
        raise QueryError(
            "biases are added in many places at once, so an edge from them cannot be cut; choose another edge."
        )
    written = {f"{one.map.near.place}.output" for some in held.sublayers.values() for one in some} - {
        f"{reader.place}.output"
    }
    changes = {site: _kept(held.seen[site]) for site in written}
    if writer.layer is None:
        site = f"{writer.stack}.embedding.{writer.kind}"
        changes[site] = _kept(_without(held.seen[site], token, held.seen[site][..., token, :]))
    else:
        one = next(one.map for one in held.sublayers[writer.stack or "encoder"] if writer in one.map.writers)
        site, lost = f"{writer.place}.output", one.written[one.writers.index(writer), token]
        changes[site] = _kept(_without(held.seen[site], token, lost))
    site = f"{reader.place}.{'heads' if reader.kind == 'head' else 'output'}"
    recorder, tap = Recorder([site]), held.asked.tap
    logits = held.asked.logits(tap=tap.also(Replacer(changes), recorder))
    if reader.kind != "logit":
        where = (0, at) if reader.head is None else (0, reader.head, at)

        def patch(value: Tensor) -> Tensor:
            patched = value.clone()
            patched[where] = recorder.values[site][where].to(value)
            return patched

        logits = held.asked.logits(tap=tap.also(Replacer({site: patch})))
    return Cut(held.logits.numpy(), logits[0].cpu().double().numpy())


def _kept(was: Tensor) -> Callable[[Tensor], Tensor]:
    """Puts what a site had in the run in the place of what it has."""
    return lambda computed: was.to(computed)


def _without(was: Tensor, token: int, lost: Tensor) -> Tensor:
    rest = was.clone()
    rest[..., token, :] -= lost.to(was)
    return rest
