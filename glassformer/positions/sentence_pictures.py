"""Pictures of positions in a sentence: embedding, position and sum; score by distance; q·k against bias."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import SIDES, Kind, edge, frame
from glassformer.charts.marks import Axis, Numbers, Places, Scale, Series, heat, lines
from glassformer.charts.points import DIMENSION_AXIS
from glassformer.charts.theme import literal
from glassformer.positions.positions_page import LOOKED_AT, PAGE, PositionScene, by_distance, open_shown
from glassformer.runs.map_axes import STACKS, MapAxes, sides
from glassformer.runs.picture import Captions, Part, Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.state.view import Side, into, place_below
from transformer.analysis.positions import Spreads, Turning, product_by_distance, spreads
from transformer.analysis.stream import rms
from transformer.i18n import joined, say

_AXES: dict[Side, str] = {"source": say("Source token"), "target": say("Output token read")}
HOW_TO_READ_ROWS = say(
    "Each row is one vector for the chosen token, each column a dimension. The last row is what the first layer "
    "reads; dropout is off except during training, so it does not change this row."
)
HOW_TO_READ_STRENGTHS = say(
    "Each group is one token. Each bar or mark is the root mean square √(Σ xⱼ² / d) of a vector. When two vectors "
    "are added, the larger one influences the sum more."
)
HOW_TO_READ_SCORES = say(
    "The curve shows the score that this query and key would have at each distance, in tokens; the ring marks "
    "their actual distance. To the left of 0, the key comes before the query."
)
HOW_TO_READ_SPREADS = say(
    "Each head has two bars: one for q·k, one for the distance bias. The length is how much that term differs "
    "between the keys of a row: its standard deviation, averaged over rows. Only such differences affect the "
    "softmax."
)
_MOST_BARS = 24  # tokens; above this bars are too thin to distinguish
_RING = {"marker": {"symbol": "circle-open", "size": 16, "color": theme.MARK_COLOR, "line": edge(3)}}
PLACES: dict[Side, str] = {"source": "key", "target": "query"}
"""The field of the view that says which token of a side is looked at."""


@dataclass(frozen=True)
class Start(RunScene):
    """What the tokens of one side start from; each array is [token, d_model]."""

    pieces: list[str]  # the tokens that may be seen
    embedding: np.ndarray  # rows of the table of embeddings
    scale: float  # what the model multiplies them by
    tokens: np.ndarray  # after that
    positions: np.ndarray  # rows of the table of positions
    total: np.ndarray  # their sum, as the first layer reads it

    @property
    def side(self) -> Side:
        """Whose tokens."""
        return self.run.view.side

    @property
    def chosen(self) -> int:
        """The selected token: the row or column that is selected on other pages."""
        return min(self.run.view.get(PLACES[self.side]) or 0, len(self.pieces) - 1)

    @property
    def embeddings(self) -> list[tuple[str, np.ndarray]]:
        """The embedding, and what becomes of it if the model multiplies it."""
        scaled = [(say("{scale:.4g} × embedding", scale=self.scale), self.tokens)] if self.scale != 1 else []
        return [(say("embedding"), self.embedding), *scaled]


@dataclass(frozen=True)
class InScores(RunScene):
    """What positions do to the scores of a head."""

    shown: PositionScene

    @property
    def shape(self) -> tuple[int, int]:
        """How many layers and heads the attention has."""
        n_layers, n_heads = self.run.trace.maps(self.shown.stack).shape[:2]
        return n_layers, n_heads

    @cached_property
    def axes(self) -> MapAxes:
        """The tokens that may be seen."""
        return sides(self.run.visible, self.shown.stack)

    @property
    def layer(self) -> int:
        """The selected layer; by default the first, or the first in which something turns."""
        asked, turning = self.shown.view.layer, self.shown.turning
        if turning is None:
            return min(asked or 0, self.shape[0] - 1)
        return asked if asked is not None and asked in turning.layers else turning.layers[0]

    @property
    def head(self) -> int:
        """The selected head."""
        asked = self.shown.view.head or 0
        return asked if asked < self.shape[1] else 0

    @property
    def query(self) -> int:
        """The selected query; by default what the current step reads."""
        axes, asked = self.axes, self.shown.view.query
        own = len(axes.queries) - 1 if axes.current is None else axes.current
        return asked if asked is not None and asked < len(axes.queries) else own

    @property
    def keys(self) -> list[str]:
        """The keys that it may read."""
        return self.axes.keys[: self.query + 1] if self.shown.causal else self.axes.keys

    @property
    def key(self) -> int:
        """The selected key; by default the one before the query."""
        asked = self.shown.view.key
        return asked if asked is not None and asked < len(self.keys) else max(self.query - 1, 0)

    @property
    def turning(self) -> Turning | None:
        """How the layer turns; None where positions are a bias."""
        return next((one for one in self.shown.turnings if self.layer in one.layers), None)

    @cached_property
    def score(self) -> tuple[np.ndarray, np.ndarray, float] | None:
        """Distances, what query and key would score at each, and their own score before any cap; None for a bias.

        Raises QueryError if what the run read is not finite.
        """
        shown, query, key, turning = self.shown, self.query, self.key, self.turning
        if turning is None:
            return None
        config, site = shown.config.of(shown.stack), f"{shown.stack}.{self.layer}.self_attn"
        names = [f"{site}.{name}" for name in ("queries", "keys")]
        recorded = self.run.work.replay(self.run.checkpoint, self.run.trace, names)
        q = recorded[names[0]][self.head, query]
        k = recorded[names[1]][self.head // (config.n_heads // config.n_kv_heads), key]  # heads may share keys
        scale = 1 / np.sqrt(config.d_head) if config.score_scale is None else config.score_scale
        most = max(min(shown.count, config.max_len) - 1, abs(key - query))
        distances = np.arange(-most, 1 if shown.causal else most + 1)
        scores = scale * product_by_distance(q, k, turning.speeds, distances - (key - query))
        return distances, scores, float(scale * (np.asarray(q, np.float64) @ np.asarray(k, np.float64)))

    @cached_property
    def spreads(self) -> Spreads:
        """How far scores differ, in each layer and head, over the rows that may be seen; errors as of `score`."""
        run, shown, stack = self.run, self.shown, self.shown.stack
        n = len(run.trace.src_tokens) if stack == "encoder" else run.visible.n_rows
        n_layers, cap = self.shape[0], shown.config.score_cap
        names = [f"{stack}.{layer}.self_attn.{name}" for layer in range(n_layers) for name in ("scores", "bias")]
        recorded = run.work.replay(run.checkpoint, run.trace, names)
        scores, bias = (np.stack([recorded[name] for name in names[first::2]])[..., :n, :n] for first in (0, 1))
        masks = np.stack([run.trace.mask(shown.stack, layer)[:n, :n] for layer in range(n_layers)])
        if cap is not None:
            scores = cap * np.arctanh(np.clip(scores / cap, -1 + 1e-6, 1 - 1e-6))
        return spreads(scores, bias, masks)


def open_sentence(run: ViewedRun) -> Start | InScores | None:
    """What positions do in the sentence, in guess mode without those that are still to come; None if it has none."""
    if run.checkpoint.config.placing.adds == "table":
        return _start_of(run)
    shown = open_shown(run.checkpoint, run.link.view, run.slot)
    return None if shown is None else InScores(run, shown)


def _start_of(run: ViewedRun) -> Start:
    side, stack = run.view.side, STACKS[run.view.side]
    values = run.work.replay(run.checkpoint, run.trace, [f"{stack}.embedding.*"])
    pieces = run.trace.src_tokens if side == "source" else run.trace.read_tokens[: run.visible.n_rows]
    tokens, positions, total = (
        values[f"{stack}.embedding.{name}"][: len(pieces)] for name in ("tokens", "positions", "output")
    )
    scale = float(run.checkpoint.model.stack(stack).embedding.scale)
    return Start(run, list(pieces), tokens / np.float32(scale), scale, tokens, positions, total)


SENTENCE: Part[Start | InScores] = PAGE.part("sentence", open_sentence)


@SENTENCE.picture("embedding_strengths", say("Size of embedding and position vectors"), follows="still")
def strengths(o: Start | InScores) -> Plot | None:
    """How large embedding, position and sum of each token are; a click means a token."""
    if not isinstance(o, Start):
        return None
    n, (pale, full) = len(o.pieces), SIDES[o.side]
    kinds = [(name, rms(vectors)) for name, vectors in o.embeddings]
    kinds += [(say("position"), rms(o.positions)), (say("sum"), rms(o.total))]
    styles = [(pale, "circle"), (full, "square"), (theme.NEUTRAL_COLOR, "diamond"), (theme.MARK_COLOR, "cross")]
    kind: Kind = "bar" if n <= _MOST_BARS else "markers"
    series = []
    for (name, values), (colour, symbol) in zip(kinds, styles, strict=False):
        look = {"marker": {"color": colour} | ({} if kind == "bar" else {"symbol": symbol, "size": 8})}
        series.append(Series(name, values, look, kind, "%{y:.3f}", clicks=range(n)))
    looked_at = frame((o.chosen - 0.5, o.chosen + 0.5), (0, 1), width=1.5, dash="dot", yref="y domain")
    across, scale = Axis(_AXES[o.side], o.pieces), Scale(say("Root mean square"), {"rangemode": "tozero"})
    drawn = lines(strengths.title, across, scale, series, height=380, top=92, shapes=[looked_at])
    alt = say("Root mean square of the embedding, the position vector and their sum for each of {n} tokens.", n=n)
    clicked = into(PLACES[o.side], place_below(n))
    return Plot(spec=drawn["spec"], alt=alt, how_to_read=HOW_TO_READ_STRENGTHS, fit=True, clicked=clicked)


@SENTENCE.picture("embedding_rows", say("Initial vector of a token"), follows="still")
def rows(o: Start | InScores) -> Plot | None:
    """Embedding, position and sum of the chosen token."""
    if not isinstance(o, Start):
        return None
    position, piece = say("position, p = {p}", p=o.chosen), o.pieces[o.chosen]
    vectors = dict([*o.embeddings, (position, o.positions), (say("sum"), o.total)])
    drawn = heat(
        say("Initial vector of token {n}, {piece}", piece=piece, n=o.chosen + 1),
        Axis(say("Vector"), list(vectors), counted=False),
        Axis(DIMENSION_AXIS, range(o.total.shape[1])),
        Numbers(say("value"), np.stack([values[o.chosen] for values in vectors.values()]), ".4f"),
        signed=True,
        gaps=(0, 3),
        height=150 + 38 * len(vectors),
    )
    layout = drawn["spec"]["layout"]
    layout["yaxis"]["ticktext"] = layout["meta"]["ticks"]["yaxis"]["labels"] = [*map(literal, vectors)]  # not cut
    return Plot(**drawn, how_to_read=HOW_TO_READ_ROWS)


@SENTENCE.picture("rotary_scores", say("Score by distance"))
def scores(o: Start | InScores) -> Plot | None:
    """What the chosen query and key would score at each distance."""
    if not isinstance(o, InScores) or o.turning is None or o.score is None:
        return None
    distances, found, _ = o.score
    place = o.key - o.query
    series = [Series(say("score"), found, LOOKED_AT)]
    if place in distances:
        own = found[distances.tolist().index(place)]
        series.append(Series(say("score"), [own], _RING, "markers", at=[place], texts=[say("actual distance")]))
    title = say("Layer {layer}, head {head}: score by distance", layer=o.layer + 1, head=o.head + 1)
    drawn = by_distance(title, distances, say("score"), series)
    alt = say("The score that the query {query} and the key {key} would have at each distance.",
              query=o.axes.queries[o.query], key=o.axes.keys[o.key])  # fmt: skip
    said = Captions(below=joined(" ", _said(o.turning, o.shown.config.score_cap, *o.score)))
    return Plot(spec=drawn["spec"], alt=alt, how_to_read=HOW_TO_READ_SCORES, fit=True, said=said)


def _said(turning: Turning, cap: float | None, distances: np.ndarray, scores: np.ndarray, own: float) -> Iterator[str]:
    best, worst = int(scores.argmax()), int(scores.argmin())
    if turning.n_pairs:
        yield say("At their actual distance, the query and the key have the score {own:.3f}. Over all distances "
                  "shown, the score of the same two vectors would range from {least:.3f} (distance {worst}) to "
                  "{most:.3f} (distance {best}). This range is due to position; the rest of the score depends on the "
                  "tokens themselves.", own=own, least=scores[worst], worst=int(distances[worst]), most=scores[best],
                  best=int(distances[best]))  # fmt: skip
    else:
        yield say(
            "This layer does not rotate queries and keys, so their score is {own:.3f} wherever they are in the text.",
            own=own,
        )
    if cap is not None:
        yield say(
            "The soft cap, which keeps every score within ±{cap:g}, then turns this score into {own:.3f}.",
            own=cap * np.tanh(own / cap),
            cap=cap,
        )


@SENTENCE.picture("bias_spreads", say("What makes scores differ"), follows="still")
def bias_spreads(o: Start | InScores) -> Plot | None:
    """How far scores differ by content and by distance in each head of the chosen layer; a click means a head."""
    if not isinstance(o, InScores) or o.turning is not None:
        return None
    found, n_heads, chosen = o.spreads, o.shape[1], o.shown.view.head
    both = (
        (say("from q·k"), found.content[o.layer], theme.NEUTRAL_COLOR),
        (say("from the distance bias"), found.bias[o.layer], theme.GUIDE_COLOR),
    )
    series = [
        Series(name, values, {"marker": {"color": colour}}, "bar", chosen=chosen, clicks=range(n_heads))
        for name, values, colour in both
    ]
    title = say("Layer {layer}: what makes scores differ", layer=o.layer + 1)
    across = Places(say("Head"), range(1, n_heads + 1), say("head {number}", number="%{x}"))
    scale = Scale(say("Standard deviation of the scores in one row"))
    drawn = lines(title, across, scale, series, height=360, top=88)
    return Plot(**drawn, how_to_read=HOW_TO_READ_SPREADS, fit=True, clicked=place_below(n_heads))
