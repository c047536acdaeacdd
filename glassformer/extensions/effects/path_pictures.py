"""The part "Why this token" of What matters: the graph of paths to a logit, a cut edge, the parts of a score."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, TypeVar

import numpy as np
import torch

from glassformer.charts.graphs import HOW_TO_READ_PATHS, GraphEdge, GraphNode, path_graph_spec
from glassformer.charts.marks import Axis, Numbers, heat
from glassformer.charts.theme import Colour
from glassformer.extensions.effects.attribution.attribution_graph import AttributionGraph, Cut, attribution_graph, cut
from glassformer.extensions.effects.attribution.held_run import HeldRun, LogitPart
from glassformer.extensions.effects.attribution.parts import ScoreParts, score_parts
from glassformer.extensions.effects.attribution.target import AttributionTarget, ask
from glassformer.extensions.effects.attribution_pictures import MATTERS, key_of
from glassformer.extensions.effects.effects_look import EffectsLook
from glassformer.extensions.effects.parts_of_logit import part_names, rival_of
from glassformer.runs.hidden_pieces import gap_of, hidden_place
from glassformer.runs.picture import Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.state.view import Click, place_of
from transformer.i18n import say
from transformer.model.anatomy import anatomy
from transformer.runs.apply_interventions import tap_of_run
from transformer.runs.array_records import ArrayRecord

MOST_DRAWN: Final = 600
_AT: Final = {"self_attn": -0.25, "cross_attn": 0.0, "ffn": 0.25}
_SYMBOLS: Final = {"tokens": "square", "positions": "diamond", "types": "cross", "bias": "x", "ffn": "hexagon"}
Cutting = tuple[int, ...]
"""An edge in an address: part and token of its source, and of its target."""
_Found = TypeVar("_Found", bound=ArrayRecord)


@dataclass(frozen=True)
class Paths(RunScene):
    """The graph of a logit, as far as it is drawn."""

    graph: AttributionGraph

    @cached_property
    def edges(self) -> np.ndarray:
        """The edges that are drawn, by influence, the strongest first."""
        share = int(self.run.view.of(EffectsLook).explained) / 100
        drawn = self.graph.strongest(share, most=MOST_DRAWN)
        return drawn[np.argsort(-self.graph.influence[drawn], kind="stable")]

    @cached_property
    def _named(self) -> np.ndarray:
        """How addresses name all edges [E, 4]."""
        ends = self.graph.source, self.graph.target
        return np.stack([of[end] for end in ends for of in (self.graph.part, self.graph.token)], axis=1)

    def cutting(self, edge: int) -> Cutting:
        """How an address names an edge."""
        return tuple(self._named[edge].tolist())

    @cached_property
    def chosen(self) -> int | None:
        """The edge that is cut; None for none, and where this step has no such edge."""
        asked = self.run.view.of(EffectsLook).cut
        if len(asked) != self._named.shape[1]:
            return None
        found = np.flatnonzero((self._named == asked).all(axis=1))
        return int(found[0]) if len(found) else None

    def in_words(self, edge: int) -> str:
        """An edge by its ends."""
        source, target = self.names[self.graph.source[edge]], self.names[self.graph.target[edge]]
        return say("{source} → {target}", source=source, target=target)

    @cached_property
    def names(self) -> list[str]:
        """Each node in words."""
        places = zip(self.graph.part, self.graph.token, strict=True)
        return [self._name(self.graph.parts[part], int(token)) for part, token in places]

    def _name(self, part: LogitPart, at: int) -> str:
        if part.stack is None:
            return say("Logit of {piece}", piece=piece_of(self.run)) if part.kind == "logit" else part_names(part)[0]
        what, token = part_names(part)[1], tokens_of(self.run, part.stack)[at]
        if len(anatomy(self.run.checkpoint.config).stacks) == 1:
            return say("{part} at token {n}, {token}", part=what, n=at + 1, token=token)
        if part.stack == "encoder":
            return say("Encoder: {part} at token {n}, {token}", part=what, n=at + 1, token=token)
        return say("Decoder: {part} at token {n}, {token}", part=what, n=at + 1, token=token)


def tokens_of(run: ViewedRun, stack: str) -> list[str]:
    """What a stack had read by this step; a hidden token as the model sees it."""
    if stack == "encoder":
        gap, place = gap_of(run), hidden_place(run)
        hidden = {} if gap is None else {place: run.checkpoint.src_tokenizer.piece(gap)}
        return [hidden.get(n, token) for n, token in enumerate(run.trace.src_tokens)]
    return list(run.trace.read_tokens[: run.trace.row_of(run.view.step) + 1])


def piece_of(run: ViewedRun) -> str:
    """The piece that is explained: the one that was written, or that is hidden."""
    return run.trace.src_tokens[hidden_place(run)] if gap_of(run) is not None else run.trace.tgt_tokens[run.view.step]


def target_of(run: ViewedRun) -> AttributionTarget:
    """What is explained: a step, or for an encoder-only model the token that is hidden."""
    trace, gap = run.trace, gap_of(run)
    if gap is None:
        return ask(run.checkpoint, trace, run.view.step)
    place = hidden_place(run)
    ids = torch.tensor([[*trace.src_ids[:place], gap, *trace.src_ids[place + 1 :]]])
    none = torch.zeros(1, 0, dtype=torch.long)
    tap = tap_of_run(run.checkpoint, trace.query)
    return AttributionTarget(run.checkpoint.model, ids, none, trace.src_ids[place], len(trace.src_ids), tap, place)


def rival(run: ViewedRun) -> int | None:
    """The piece whose logit is taken off."""
    return rival_of(run) if anatomy(run.checkpoint.config).writes else None


def _made(run: ViewedRun, name: str, work: Callable[[AttributionTarget], _Found], *more: Hashable) -> _Found:
    """What some work makes of the step, once for all who look at it."""
    asked = target_of(run)
    key = key_of(run, name, asked.row, asked.piece, rival(run), *more)
    return run.work.compute(key, lambda: work(asked), nbytes=lambda found: found.nbytes)


def open_paths(run: ViewedRun) -> Paths | None:
    """The graph; None where there is no logit that may be seen. Errors as of `ModelAccess`."""
    if gap_of(run) is None and (run.visible.covered or not anatomy(run.checkpoint.config).writes):
        return None
    return Paths(run, _made(run, "paths", partial(attribution_graph, rival=rival(run))))


def cut_of(scene: Paths) -> Cut | None:
    """What the chosen cut does; None without one. A QueryError where the edge comes from the biases."""
    if (edge := scene.chosen) is None:
        return None
    return _made(scene.run, "cut", lambda asked: cut(HeldRun(asked), *scene.graph.ends_of(edge)), scene.cutting(edge))


def score_of(scene: Paths) -> ScoreParts | None:
    """The parts of the score by which the head at the end of the cut edge looks at its start."""
    if (edge := scene.chosen) is None or not scene.graph.source[edge]:
        return None
    (_, key), (head, query) = scene.graph.ends_of(edge)
    if head.kind != "head":
        return None
    return _made(scene.run, "score", lambda asked: score_parts(HeldRun(asked), head, query, key), head, query, key)


PATHS = MATTERS.part("paths", open_paths, asks=True)


@PATHS.picture("matters_paths", say("Why this token"), follows="server")
def graph(scene: Paths) -> Plot:
    """The strongest edges; a click cuts one."""
    run, found, order = scene.run, scene.graph, scene.edges.tolist()
    stacks = anatomy(run.checkpoint.config).stacks
    total = np.bincount(found.source, found.value, minlength=len(found.part))  # what the logit owes to each node
    total[-1] = found.into[-1]
    ends = {
        node: _node(scene, node, total[node]) for edge in order for node in (found.source[edge], found.target[edge])
    }
    drawn = [
        GraphEdge(ends[found.source[edge]], ends[found.target[edge]], found.value[edge], found.influence[edge])
        for edge in order
    ]
    piece, other = piece_of(run), rival(run)
    title = say("Paths to the logit of {piece}", piece=piece)
    if other is not None:
        other_piece = run.trace.vocabulary[other]
        title = say("Paths to the logit of {piece} minus that of {other}", piece=piece, other=other_piece)
    spec = path_graph_spec(
        drawn,
        rows=_rows(run),
        labels=[(_base(run, stack.name), tokens_of(run, stack.name)) for stack in stacks],
        title=title,
        notes=sums(scene),
        chosen=order.index(scene.chosen) if scene.chosen in order else None,
    )
    alt = say(
        "A graph of {n} edges between embeddings, heads, feed-forward networks and the output. The strongest edge goes "
        "from {source} to {target}. The table has all of them.",
        n=len(drawn),
        source=drawn[0].source.name,
        target=drawn[0].target.name,
    )
    clicked = partial(_cut_at, tuple(scene.cutting(edge) for edge in order))
    return Plot(spec=spec, alt=alt, how_to_read=HOW_TO_READ_PATHS, clicked=clicked)


def _cut_at(edges: Sequence[Cutting], click: Click) -> dict[str, Any] | None:
    place = place_of(click)
    return None if place is None or place >= len(edges) else {"cut": edges[place]}


def _base(run: ViewedRun, stack: str) -> float:
    """The depth of a stack's embeddings: the decoder is above the encoder."""
    encoder = run.checkpoint.config.n_encoder_layers
    return encoder + 1.7 if stack == "decoder" and encoder else 0.0


def _rows(run: ViewedRun) -> list[tuple[float, str]]:
    """The depths that are named."""
    rows, stacks = [(-1.0, say("Biases"))], anatomy(run.checkpoint.config).stacks
    for stack in stacks:
        base = _base(run, stack.name)
        rows.append((base, say("Embedding")))
        for n in range(1, stack.n_layers + 1):
            alone, encoder = len(stacks) == 1, stack.name == "encoder"
            name = say("Layer {n}", n=n) if alone else say("Encoder {n}", n=n) if encoder else say("Decoder {n}", n=n)
            rows.append((base + n, name))
    return [*rows, (rows[-1][0] + 0.9, say("Output"))]


def _node(scene: Paths, node: int, total: float) -> GraphNode:
    config, part = scene.run.checkpoint.config, scene.graph.parts[scene.graph.part[node]]
    side: Colour = "neutral"
    x, y = float(scene.graph.token[node]), -1.0
    if part.stack is not None:
        n_heads, side = config.of(part.stack).n_heads, "source" if part.stack == "encoder" else "target"
        x += {"positions": 0.25, "types": -0.25}.get(part.kind, 0.0)
        x += 0.0 if part.head is None else 0.7 * ((part.head + 0.5) / n_heads - 0.5)
        y = _base(scene.run, part.stack)
        y += 0.0 if part.layer is None else part.layer + 1 + _AT[part.sublayer or "ffn"]
    elif part.kind == "logit":
        x, y = float(target_of(scene.run).row), _rows(scene.run)[-1][0]
    return GraphNode(
        x, y, scene.names[node], "star" if part.kind == "logit" else _SYMBOLS.get(part.kind, "circle"), side, total
    )


@PATHS.picture("matters_score", say("Why a head looks there"), follows="server")
def score(scene: Paths) -> Plot | None:
    """The score of the query at the end of the cut edge and the key at its start, by what wrote both."""
    if (found := score_of(scene)) is None or scene.chosen is None:
        return None
    queries, keys = ([part_names(part)[1] for part in some] for some in (found.queries, found.keys))
    drawn = heat(
        say(
            "{head}: score {score:.2f} by what wrote query and key",
            head=scene.names[scene.graph.target[scene.chosen]],
            score=found.score,
        ),
        Axis(say("What wrote the query's stream"), queries, counted=False),
        Axis(say("What wrote the key's stream"), keys, counted=False),
        Numbers(say("amount added to the score"), found.values),
        signed=True,
        height=150 + 22 * len(queries),
    )
    how_to_read = say(
        "The head at the end of the cut edge compares its query with the key at the edge's start. Each cell is the "
        "product of what one part wrote into the query's stream and what another wrote into the key's, divided as "
        "scores are. With the sizes of norms held, all cells add up to {sum:.3f}; positions add {bias:.3f}. The "
        "softmax makes a weight of {weight:.3f} of the score.",
        sum=float(found.values.sum()),
        bias=found.bias,
        weight=found.weight,
    )
    return Plot(**drawn, how_to_read=how_to_read)


# ------------------------------------------------------------------------------------------------ in words

WHAT_IT_IS: Final = say(
    "Attention weights, the sizes by which norms divide and the activity of neurons are held as they are in this run. "
    "Then the logit is a sum over paths, and an edge's amount is what all paths through it add. To measure how much of "
    "all paths is drawn, the output has a share of 1, and each node divides its share among what it reads, in "
    "proportion to the absolute amounts. What is held may be what decides, so cut an edge: then nothing is held, and "
    "what one part wrote is taken out of what the other reads, and out of nothing else. Ameisen et al. (2025); "
    "Goldowsky-Dill et al. (2023)."
)


def sums(scene: Paths) -> list[str]:
    """How much is drawn, and what all edges add up to."""
    found, n, total = scene.graph, len(scene.edges), float(scene.graph.into[-1])
    share, all_edges = found.explained(np.sort(scene.edges)), len(found.value)
    return [
        say("{n:,} of {all:,} edges are drawn and explain {share:.0%} of all paths", n=n, all=all_edges, share=share),
        say("the edges into the output add up to the logit, {total:.4f}", total=total),
    ]


def effect(scene: Paths) -> str:
    """What cutting the chosen edge does, predicted and true."""
    found, edge, piece = cut_of(scene), scene.chosen, piece_of(scene.run)
    if not scene.run.view.of(EffectsLook).cut:
        return ""
    if edge is None or found is None:
        return say("This graph has no edge like the one that was cut. Choose another.")
    i, predicted = target_of(scene.run).piece, -float(scene.graph.value[edge])
    true, (before, after) = found.change(i, rival(scene.run)), found.probabilities(i)
    return say(
        "Effect of the cut on the logit: {predicted:+.3f} predicted, {true:+.3f} true. The probability of “{piece}” "
        "changes from {before:.3g} to {after:.3g}.",
        predicted=predicted,
        true=true,
        piece=piece,
        before=before,
        after=after,
    )
