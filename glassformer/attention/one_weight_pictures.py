"""Pictures of the part "One weight": default cell, q·k products, scores, mask, softmax, weighted values, shares.

Shown is the weight that was chosen, and where none was, one that is worth a first look. The address says nothing of
the page's own choice; once the reader has stepped, the row is that of the step. A click on a key in any picture is
followed in all.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from glassformer.attention import one_weight_text as text
from glassformer.attention.drawn_maps import ATTENTION
from glassformer.charts import theme
from glassformer.charts.grammar import UNSEEN, frame, layer
from glassformer.charts.heatmap import HOW_TO_READ as HOW_TO_READ_MAP
from glassformer.charts.heatmap import MOST_EXACT, heatmap_spec
from glassformer.charts.marks import Axis, Numbers, bars, heat
from glassformer.charts.one_weight import HEIGHT, key_row_spec, query_times_key_spec
from glassformer.charts.theme import Spec
from glassformer.runs.map_axes import KIND_NAMES, MapAxes, sides
from glassformer.runs.picture import Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun, VisibleTrace
from glassformer.shared.model_notes import formula
from glassformer.state.view import cell_of, fields, place_of, row_below
from transformer.analysis.one_weight import Projection, Tops, Walk, place, projected, read_by, sites, walk, worth_seeing
from transformer.i18n import joined, say, say_n
from transformer.model.anatomy import EVERY_PART, anatomy
from transformer.model.config import ModelConfig
from transformer.runs.apply_interventions import tap_for

MOST_ON_MAP: Final = 128  # rows and columns of the map that cells are picked from
MAP_HEIGHT: Final = 300
MOST_TOKENS: Final = 128  # rows of a map of vectors; of more tokens those around the chosen one are drawn
MOST_GAPPED: Final = 40  # rows of it; of more, gaps between them would eat them
SCORE: Final = say("score")
KEY: Final = say("Key")
_PADDING: Final = say("closed: padding")


# ------------------------------------------------------------------------------------------------ which weight


@dataclass(frozen=True)
class WeightSelection:
    """What the part opens on."""

    layer: int  # from 0
    head: int  # from 0
    # The row, if it is the page's own choice; None where the reader's choice or the step decides.
    query: int | None = None


def opening(visible: VisibleTrace) -> WeightSelection:
    """The head and the row that are shown."""
    view = visible.view
    if view.layer is not None and view.head is not None:
        return WeightSelection(view.layer, view.head)

    def each(tops: Tops, layers: tuple[int, ...]) -> list[np.ndarray]:
        return visible.each(view.kind, tops, key=("worth_seeing", visible.n_steps), layers=layers)

    cell = worth_seeing(visible.trace, view.kind, n_steps=visible.n_steps, layer=view.layer, each=each)
    steps = EVERY_PART.attention(view.kind).stack == "decoder"
    free = view.query is None and not (steps and view.step)
    return WeightSelection(cell.layer, cell.head, cell.query if free else None)


@dataclass(frozen=True)
class OpenWeight(RunScene):
    """One weight, and all that led to it."""

    walk: Walk  # the numbers
    axes: MapAxes  # what rows and columns are
    # q, k and v of this head for every token that may be seen, each [token, d_head].
    vectors: tuple[np.ndarray, np.ndarray, np.ndarray]
    begin: tuple[Projection, Projection]  # how the query and the key begin
    own_row: int | None  # the row, if the page chose it by itself

    @property
    def config(self) -> ModelConfig:
        """Of the model."""
        return self.run.checkpoint.config

    @property
    def query(self) -> str:
        """The query's label."""
        return self.axes.queries[self.walk.query]

    @property
    def key(self) -> str:
        """The key's label."""
        return self.axes.keys[self.walk.key]

    @property
    def later(self) -> str:
        """Why the mask closes what stands after the query; "" if it does not."""
        parts = anatomy(self.config)
        if not parts.attention(self.walk.kind).causal:
            return ""
        return say("closed: comes later in the output") if parts.reads else say("closed: comes later in the text")

    @property
    def window(self) -> int:
        """How many keys a query may see, where a window says so; else 0."""
        return self.config.window(self.walk.layer) if self.later else 0

    @cached_property
    def reasons(self) -> list[str]:
        """Why each key is closed; "" if it is open."""
        return [self._reason(column) for column in range(len(self.axes.keys))]

    def _reason(self, column: int) -> str:
        if self.walk.allowed[column]:
            return ""
        if self.window and column <= self.walk.query - self.window:
            return say("closed: before the window of {n} keys", n=self.window)
        return self.later if self.later and column > self.walk.query else _PADDING


def open_weight(run: ViewedRun) -> OpenWeight:
    """The walk to the selected weight; errors as of `ModelAccess`, and where the model's numbers are not finite."""
    kind, shown, checkpoint = run.view.kind, opening(run.visible), run.checkpoint
    axes, where = sides(run.visible, kind), place(kind, shown.layer)
    needed = (*sites(kind, shown.layer, config=checkpoint.config), *read_by(checkpoint.config, kind, shown.layer))
    recorded = run.work.replay(checkpoint, run.trace, tuple(dict.fromkeys(needed)))
    model_does = checkpoint.model.attentions(kind)[shown.layer].scoring
    rows = (_inside(run.view.query, axes.queries), shown.query, axes.current, 0)
    found = walk(
        recorded,
        checkpoint.model,
        kind=kind,
        layer=shown.layer,
        head=shown.head,
        query=next(row for row in rows if row is not None),
        key=_inside(run.view.key, axes.keys),
        n_keys=len(axes.keys),
        how=tap_for(run.trace.query.interventions, checkpoint).child(where).setting("scoring", model_does),
    )
    queries = recorded[f"{where}.queries"][shown.head, : len(axes.queries)]  # [token, d_head]
    begin = projected(recorded, checkpoint.model, found)
    return OpenWeight(run, found, axes, (queries, found.keys, found.values), begin, shown.query)


def _inside(wanted: int | None, labels: list[str]) -> int | None:
    return wanted if wanted is not None and wanted < len(labels) else None


WALK = ATTENTION.part("walk", open_weight, asks=True)


@WALK.picture("walk_map", say("One map"))
def head_map(o: OpenWeight) -> Plot | None:
    """The head's map, to pick a cell from; none where there are too many."""
    w, n_rows, n_columns = o.walk, len(o.axes.queries), len(o.axes.keys)
    if max(n_rows, n_columns) > MOST_ON_MAP:
        return None
    figure = heatmap_spec(
        o.run.visible.heads(w.kind, w.layer)[w.head, :n_rows, :n_columns],
        queries=o.axes.queries,
        keys=o.axes.keys,
        title=say("Weights of layer {layer}, head {head}: click a cell", layer=w.layer + 1, head=w.head + 1),
        allowed=o.run.trace.mask(w.kind, w.layer)[:n_rows, :n_columns],
        mask_reason=say("closed: comes later, or before the window") if o.window else o.later or _PADDING,
        marked_row=w.query,
        colour=o.axes.key_side,
    )
    figure["layout"]["height"] = MAP_HEIGHT
    figure["layout"]["shapes"].append(frame((w.key - 0.5, w.key + 0.5), (w.query - 0.5, w.query + 0.5), width=1.5))
    followed = o.axes.current if o.own_row is None else None  # the row that is shown if none is chosen
    alt = say(
        "{attention}, layer {layer}, head {head}: weights of all queries over all keys.",
        attention=KIND_NAMES[w.kind],
        layer=w.layer + 1,
        head=w.head + 1,
    )
    clicked = fields(cell_of, lambda cell: {"query": None if cell[0] == followed else cell[0], "key": cell[1]})
    return Plot(spec=figure, alt=alt, how_to_read=HOW_TO_READ_MAP, fit=True, clicked=clicked)


# ------------------------------------------------------------------------------------------------ the steps


@WALK.picture("walk_products", say("q, k and their products"))
def products(o: OpenWeight) -> Plot:
    """q, k and their products."""
    w = o.walk
    spec = query_times_key_spec(w.q, w.keys[w.key], title=say("q, k and their products"), query=o.query, key=o.key)
    alt = say(
        "The vectors q of {query} and k of {key}, {n} numbers each, and their products.",
        query=o.query,
        key=o.key,
        n=w.d_head,
    )
    read = say(
        "q · k = Σᵢ qᵢ kᵢ. Where q and k have the same colour, their product is positive, and its purple bar "
        "raises q · k. Where their colours differ, the product is negative, and its green bar lowers q · k."
    )
    return Plot(spec=spec, alt=alt, how_to_read=read)


def _key_row(o: OpenWeight, values: np.ndarray, alt: str, how_to_read: str, **row: Any) -> Plot:
    """A number of every key, else as for `key_row_spec`; a click follows that key."""
    of_key: dict[str, Any] = {"chosen": o.walk.key, "side": o.axes.key_side, "key_axis": o.axes.key_axis}
    figure = key_row_spec(values, o.axes.keys, **of_key | {"value_name": say("score")} | row)
    return Plot(spec=figure, alt=alt, how_to_read=how_to_read, clicked=fields(place_of, lambda key: {"key": key}))


@WALK.picture("walk_scores", say("q · k of every key, and its score"))
def scores(o: OpenWeight) -> Plot:
    """The score of every key."""
    w = o.walk
    alt = say_n(
        "q · k and scores of {n} key; the chosen key, {key}, has the score {score:.3f}.",
        "q · k and scores of {n} keys; the chosen key, {key}, has the score {score:.3f}.",
        len(o.axes.keys),
        key=o.key,
        score=w.scores[w.key],
    )
    read = say("Wide bars: q · k. Narrow bars: the score. Click a key to see how its weight is computed.")
    return _key_row(o, w.scores, alt, read, title=scores.title, before=("q · k", w.dots))


@WALK.picture("walk_masked", say("Scores after the mask"))
def masked(o: OpenWeight) -> Plot:
    """The scores after the mask."""
    w = o.walk
    closed_at = "−∞" if w.how.fill is None else text.number(w.how.fill)
    reasons = [joined(", ", [closed_at, reason]) if reason else "" for reason in o.reasons]
    n_closed, n = int((~w.allowed).sum()), len(o.axes.keys)
    alt = say("Scores after the mask; {closed} of {all} keys are closed.", closed=n_closed, all=n)
    read = say("Each bar is a score; hatched keys are closed. Click a key to see how its weight is computed.")
    return _key_row(o, w.scores, alt, read, title=masked.title, closed=reasons)


@WALK.picture("walk_weights", say("Weights of this row"))
def weights(o: OpenWeight) -> Plot:
    """The weights."""
    w = o.walk
    closed = [reason if not weight else "" for reason, weight in zip(o.reasons, w.weights, strict=True)]
    alt = say(
        "Attention weights of {query} over the keys; {key} gets {weight:.3f}.",
        query=o.query,
        key=o.key,
        weight=w.weights[w.key],
    )
    read = say("weight = exp(score − max) / Σ exp(score − max). Click a key to see how its weight is computed.")
    named = {"title": weights.title, "value_name": say("weight")}
    return _key_row(o, w.weights, alt, read, closed=closed, limits=(0.0, 1.0), **named)


def _vectors_map(title: str, rows: Axis, dimensions: str, name: str, vectors: np.ndarray, **look: Any) -> Spec:
    """Vectors, one below the other."""
    columns, gap = Axis(dimensions, range(vectors.shape[1])), 1 if len(vectors) <= MOST_GAPPED else 0
    numbers = Numbers(name, vectors, ".6g" if vectors.size <= MOST_EXACT else ".5g")
    look |= {"signed": True, "gaps": (0, gap), "height": look.get("height", HEIGHT)}
    found: Spec = heat(title, rows, columns, numbers, **look)["spec"]
    return found


@WALK.picture("walk_values", say("Weighted values and their sum"))
def values(o: OpenWeight) -> Plot:
    """Each value times its weight; a click follows a row's key."""
    w = o.walk
    shown = text.shown_keys(w)
    others = np.delete(w.weighted, shown, axis=0)
    parts, labels = [w.weighted[shown]], [o.axes.keys[place] for place in shown]
    if len(others):
        parts.append(others.sum(axis=0, keepdims=True))
        labels.append(text.other_keys(len(others)))
    labels.append(say("sum: o"))
    closed = [o.reasons[place] for place in shown] + [""] * (len(labels) - len(shown))
    numbers = np.concatenate([*parts, w.head_out[None]])
    allowed = np.broadcast_to([[not reason] for reason in closed], numbers.shape)
    rows, look = Axis(KEY, labels, counted=False), {"allowed": allowed, "mask_reason": closed}
    marked = shown.index(w.key)
    spec = _vectors_map(values.title, rows, say("Dimension"), say("weight × v"), numbers, marked_row=marked, **look)
    alt = say_n(
        "Weighted value of {n} key and the sum, which is the head's output; {numbers} numbers each.",
        "Weighted values of {n} keys and their sum, which is the head's output; {numbers} numbers each.",
        len(shown),
        numbers=w.d_head,
    )
    read = say(
        "o = Σ weight · v. Purple means above 0, green below 0; the last row is the sum of the rows above it. "
        "Click a row to see how the weight of its key is computed."
    )
    clicked = fields(row_below(len(shown)), lambda row: {"key": shown[row]})
    return Plot(spec=spec, alt=alt, how_to_read=read, clicked=clicked)


@WALK.picture("walk_share", say("From heads to the sub-layer's output"))
def share(o: OpenWeight) -> Plot:
    """What the head adds to the sub-layer's output."""
    w = o.walk
    others = np.delete(w.shares, w.head, axis=0).sum(axis=0)
    names = [say("head {head}: y", head=w.head + 1), say("other heads"), say("bias"), say("sum")]
    parts, rows = np.stack([w.shares[w.head], others, w.bias, w.output]), Axis(say("Part"), names, counted=False)
    spec = _vectors_map(share.title, rows, say("Dimension of the model"), say("adds"), parts, marked_row=0)
    alt = say(
        "What head {head}, the other heads and the bias add to the sub-layer's output in this row.", head=w.head + 1
    )
    read = say(
        "y = o · W_Oᵀ (this head's columns). Purple means above 0, green below 0; the last row, the sum of the "
        "rows above it, is the sub-layer's output."
    )
    return Plot(spec=spec, alt=alt, how_to_read=read)


@WALK.picture("walk_norms", say("Length of each head's contribution"))
def lengths(o: OpenWeight) -> Plot:
    """The lengths of all heads' shares; a click looks at that head."""
    w = o.walk
    taken = {"layer": w.layer} | ({} if o.own_row is None else {"query": w.query})  # a head alone is nothing
    heads, total = range(1, len(w.norms) + 1), float(w.norms.sum())
    drawn = bars(
        say("Length of each head's contribution"),
        Axis(say("Head"), heads, says=[say("Head {head}", head=head) for head in heads]),
        Numbers(say("length"), w.norms, ".6g"),
        Numbers(say("share of the summed lengths"), w.norms / (total or 1.0), ".1%"),
        chosen=w.head,
        axis=say("Length ‖head · W_O‖"),
    )
    spec, pale = drawn["spec"], theme.SCALES["neutral"][1][1]
    spec["data"][0]["marker"] = {"color": [theme.NEUTRAL_COLOR if head == w.head + 1 else pale for head in heads]}
    spec["layout"]["height"], places = HEIGHT, np.arange(len(heads))
    tops = np.full(len(heads), spec["layout"]["yaxis"]["range"][1])  # a bar of 0.001 is too low to be pointed at
    said, column = spec["data"][0]["hovertext"], {"width": 1, **UNSEEN}
    spec["data"].append(layer("bar", places, tops, column, texts=said, clicks=places.tolist()))
    alt = say(
        "Length of each head's contribution; for head {head} of {all}, it is {length:.3g}.",
        all=len(w.norms),
        head=w.head + 1,
        length=w.norms[w.head],
    )
    read = say(
        "The length ‖head · W_O‖ is the square root of the sum of the squares of all numbers in y. Click a bar "
        "to switch to that head."
    )
    return Plot(spec=spec, alt=alt, how_to_read=read, clicked=fields(place_of, lambda head: {"head": head, **taken}))


# ------------------------------------------------------------------------------------------------ all tokens


def _vectors(o: OpenWeight, *, name: str) -> Plot:
    axes, vectors = o.axes, o.vectors["qkv".index(name)]
    into, labels, axis, marked = "key", axes.keys, axes.key_axis, o.walk.key
    if name == "q":
        into, labels, axis, marked = "query", axes.queries, axes.query_axis, o.walk.query
    first = int(np.clip(marked - MOST_TOKENS // 2, 0, max(len(labels) - MOST_TOKENS, 0)))
    last, n = min(first + MOST_TOKENS, len(labels)), vectors.shape[1]
    title = say("{name} of every token", name=name)
    if last - first < len(labels):
        title = say("{name} of tokens {first} to {last} of {all}", name=name, first=first + 1, last=last,
                    all=len(labels))  # fmt: skip
    rows, height = Axis(axis, labels[first:last], counted=False), int(np.clip(110 + 16 * (last - first), 260, 640))
    look = {"marked_row": marked - first, "height": height}
    spec = _vectors_map(title, rows, say("Dimension"), name, vectors[first:last], **look)
    alt = say(
        "The vectors {name} of tokens {first} to {last}, {n} numbers each.", name=name, first=first + 1, last=last, n=n
    )
    clicked = fields(row_below(last - first), lambda row: {into: first + row})
    return Plot(spec=spec, alt=alt, how_to_read=_how_to_read(o, name), clicked=clicked)


def _how_to_read(o: OpenWeight, name: str) -> str:
    if name != "v" and text.is_changed(o.config, o.walk):
        return say(
            "Each row is one token's {name} as the model multiplies it, after normalisation or rotation by "
            "position. Purple means above 0, green below 0. Click a row to switch to that token.",
            name=name,
        )
    return formula(
        say(
            "Each row is one token's {name} = {matrix} · x + b, where x is the token's vector. Purple means above "
            "0, green below 0. Click a row to switch to that token.",
            name=name,
            matrix=f"W_{name.upper()}",
        ),
        bias=o.config.biases.attention,
    )


VECTORS: Final = [
    WALK.picture(f"walk_all_{name}", say("{name} of every token", name=name))(partial(_vectors, name=name))
    for name in "qkv"
]
