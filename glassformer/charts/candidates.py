"""Bars of tokens: the candidates of a step, sampling probabilities, sampled outputs, the loss of each token.

The axis of a step goes from 0 to 1 at every setting, so you can compare steps by eye.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import along, edge, layer, legend, level, listed, note, table, table_of, whole_rows
from glassformer.charts.hover import bold, on_lines, with_number
from glassformer.charts.theme import Spec, base_layout, literal, shortened, subtitle
from transformer.i18n import joined, say, say_n
from transformer.i18n.sentence import chance

PROBABILITY = say("probability")
HOW_TO_READ = say(
    "Each bar is one token that the model could write next, with its probability. ✓ marks the chosen token."
)
HOW_TO_READ_DRAWN = say(
    "Each bar is the probability that sampling draws one token, after temperature, top-k and top-p; the tick is "
    "the model's own probability. ✓ marks the chosen token."
)
HOW_TO_READ_RULES = say(
    "This model's settings change what it writes: ⊘ marks tokens that the settings exclude at this step; ↓ and ↑ "
    "mark tokens whose actual score is lower or higher than the bar shows."
)
_MARKS = {"closed": "⊘", "lowered": "↓", "raised": "↑"}
_SIGN: Spec = {"symbol": "line-ns-open", "size": 13, "color": theme.MARK_COLOR, "line": {"width": 2.5}}
_TICK: Spec = {"cliponaxis": False, "marker": _SIGN}


@dataclass(frozen=True)
class Others:
    """The pieces that are not listed: how many, and their total probability."""

    count: int
    probability: float
    drawn_from: float


@dataclass(frozen=True)
class _Row:
    """One row of candidates: how it is named on the axis and on hover, what is drawn, and what is said of it."""

    label: str
    named: str
    id: int
    probability: float
    drawn_from: float | None = None
    chosen: bool = False
    note: str = ""
    closed: bool = False

    @property
    def length(self) -> float:
        """Of its bar."""
        return self.probability if self.drawn_from is None else self.drawn_from


def candidates_spec(
    pieces: Sequence[str],
    probabilities: Sequence[float],
    *,
    ids: Sequence[int],
    chosen: int | None,
    title: str = say("Likeliest next tokens"),
    ranks: Sequence[int] | None = None,
    drawn_from: Sequence[float] | None = None,
    others: Others | None = None,
    rules: Sequence[str | None] | None = None,
    how_chosen: str = say("chosen"),
) -> Spec:
    """Draw the most probable next pieces, the first on top, with their probabilities under the model, 0 to 1.

    `ids` are the pieces' ids; a click returns one. `chosen` is the place of the chosen piece, None if it is not
    listed or still hidden; `ranks` count from 1, in order if not given. `drawn_from` has the probabilities that
    sampling drew from: these are then the bars, and ticks show the model's own. `others` are the pieces that are not
    listed, for a last row. `rules` say how the model's settings change each piece: "closed", "lowered", "raised" or
    None. `how_chosen` is shown on hover: "chosen", "drawn by chance", "chosen by you".
    """
    count = len(pieces)
    ranks = list(range(1, count + 1)) if ranks is None else ranks
    nothing: list[None] = [None] * count
    shares, rules = drawn_from or nothing, rules or nothing
    if {len(probabilities), len(ids), len(ranks), len(shares), len(rules)} != {count}:
        raise ValueError(f"{count} tokens need as many probabilities, ids, ranks, rules and shares to be drawn.")
    rows = [
        _Row(
            label=_label(piece, place == chosen, _MARKS.get(rule or "", "")),
            named=on_lines(bold(piece), say("id {id}, rank {rank}", id=int(token), rank=rank)),
            id=int(token),
            probability=float(probability),
            drawn_from=None if share is None else float(share),
            chosen=place == chosen,
            note=_note(share, how_chosen if place == chosen else "", rule),
            closed=rule == "closed",
        )
        for place, (piece, token, rank, probability, share, rule) in enumerate(
            zip(pieces, ids, ranks, probabilities, shares, rules, strict=True)
        )
    ]
    names: list[tuple[int | None, str]] = [(int(rank), piece) for rank, piece in zip(ranks, pieces, strict=True)]
    if others is not None and others.count:
        names.append((None, name := others_named(others.count)))
        rows.append(_Row(name, name, -1, others.probability, others.drawn_from))
    top = 76 * any(row.drawn_from is not None for row in rows)
    layout = _of_tokens(title, (row.label for row in rows), map(_at_the_edge, rows), (0.28, 60, top))
    layout["height"] = int(np.clip(120 + 24 * len(rows), 200, 560))
    if not count:
        return {"data": [], "layout": layout}
    drawn = [say("sampling probability")] * (drawn_from is not None)
    table(
        layout,
        [say("rank"), say("token"), say("id"), PROBABILITY, *drawn, say("note")],
        [
            [*name, row.id if row.id >= 0 else None, row.probability, *[row.drawn_from] * len(drawn), row.note]
            for name, row in zip(names, rows, strict=True)
        ],
    )
    texts = [on_lines(row.named, *_on_hover(row)) for row in rows]
    data = [_candidate_bars(rows, texts), whole_rows([row.id for row in rows], texts)]
    if drawn:
        own = np.array([row.probability for row in rows])
        data.insert(1, layer("markers", own, np.arange(len(rows)), _TICK, name=say("the model's own")))
    return {"data": data, "layout": layout}


def _label(piece: str, chosen: bool, mark: str = "") -> str:
    label = f"{mark} {literal(shortened(piece))}".strip()
    return f"✓ <b>{label}</b>" if chosen else label


def _note(drawn_from: float | None, how_chosen: str, rule: str | None) -> str:
    said = [how_chosen] if how_chosen else []
    if rule == "closed":
        said.append(say("excluded by the model's settings"))
    elif drawn_from == 0:
        said.append(say("cut off before sampling"))
    if rule == "lowered":
        said.append(say("scored lower by the repetition penalty"))
    if rule == "raised":
        said.append(say("scored higher by the repetition penalty"))
    return joined("; ", said)


def _of_tokens(title: str, labels: Iterable[str], at_edge: Iterable[str], sizes: tuple[float, int, int]) -> Spec:
    """The layout of a row for each token, with a number at the right edge.

    `sizes` are the gap between bars, the pixels at the right edge, and those of a legend, 0 for none.
    """
    gap, room, top = sizes
    layout = base_layout(title, say("Probability"), say("Token")) | {"bargap": gap, "barmode": "overlay"}
    layout["xaxis"] |= {"range": [0, 1], "tickformat": ".1f", "fixedrange": True}
    listed(layout, labels)
    layout["margin"] |= {"r": room + 4}
    if top:
        legend(layout, top)
    aligned = {"xref": "paper", "xanchor": "right", "xshift": room, "yref": "y"}
    layout["annotations"] = [note(1, place, text) | aligned for place, text in enumerate(at_edge)]
    return layout


def _at_the_edge(row: _Row) -> str:
    if row.drawn_from == 0 and row.closed:
        return say("closed")
    return say("cut off") if row.drawn_from == 0 and row.id >= 0 else literal(chance(row.length))


def _candidate_bars(rows: Sequence[_Row], texts: Sequence[str]) -> Spec:
    # A pale bar alone is hard to see, and one of 0.1 % is nothing but its edge.
    widths = [1.5 if row.chosen else 1.0 if row.length else 0.0 for row in rows]
    edges = edge(widths, [theme.MARK_COLOR if row.chosen else theme.TARGET_COLOR for row in rows])
    shades = [theme.TARGET_COLOR if row.chosen else theme.TARGET_PALE for row in rows]
    look = {"marker": {"color": shades, "line": edges}}
    x, clicks = np.array([row.length for row in rows]), [row.id for row in rows]
    return layer("lying", x, np.arange(len(rows)), look, name=say("sampling probability"), texts=texts, clicks=clicks)


def _on_hover(row: _Row) -> list[str]:
    own = f"{row.probability:.4f}"
    if row.drawn_from is None:
        return [literal(row.note), with_number(PROBABILITY, own)]
    drawn = with_number(say("sampling probability"), f"{row.drawn_from:.4f}")
    return [literal(row.note), drawn, with_number(say("the model's own"), own)]


HOW_TO_READ_RESHAPED = say(
    "Each row is one token. The tick is the model's own probability, the diamond the probability after "
    "temperature. The bar is the sampling probability: top-k and top-p have removed some tokens, and the "
    "probabilities of the others are rescaled to sum to 1."
)
_NAMED_FRAME = 128  # pixels of title, names of the marks and axis


@dataclass(frozen=True)
class Shares:
    """The shares of one piece, or of all other pieces together."""

    name: str  # the piece, or what stands for the others
    raw: float  # its probabilities
    tempered: float  # its probabilities
    cut: float  # its probabilities
    id: int | None = None  # of the piece; None for the others
    note: str = ""  # what else is said of it
    drawn: bool = False  # whether the run drew it


def reshaped_spec(rows: Sequence[Shares], *, others: tuple[int, Shares] | None, border: int | None, title: str) -> Spec:
    """Draw the distributions of one step before a piece is drawn, most probable piece first; a click returns its id.

    `others` are the number of pieces that are not listed, and their shares together. If some are cut, a line is below
    the `border` rows that are left.
    """
    shown = [*rows, *([others[1]] if others is not None and others[0] else [])]
    texts = [say("cut off") if row.cut == 0 and row.id is not None else literal(chance(row.cut)) for row in shown]
    labels = (row.name if row.id is None else _label(row.name, row.drawn) for row in shown)
    layout = _of_tokens(title, labels, texts, (0.34, 64, 92))
    layout["height"] = int(np.clip(_NAMED_FRAME + 27 * len(shown), 220, 560))
    if border is not None and 0 < border < len(rows):
        layout["shapes"] = [level(border - 0.5, "dash")]
    names = say("the model's own"), say("tempered"), say("sampling probability")
    raw, tempered, cut = ([getattr(row, field) for row in shown] for field in ("raw", "tempered", "cut"))
    numbers = list(zip(names, (raw, tempered, cut), strict=True))
    tokens, notes = [row.name for row in shown], [row.note for row in shown]
    ids = [row.id for row in shown]
    table_of(layout, (say("token"), tokens), (say("id"), ids), *numbers, (say("note"), notes))
    heads = [on_lines(bold(row.name), literal(row.note)) for row in shown]
    said = [[with_number(name, f"{value:.5f}") for value in values] for name, values in numbers]
    hovers = [on_lines(*lines) for lines in zip(heads, *said, strict=True)]
    shades = [theme.TARGET_COLOR if row.drawn else theme.TARGET_PALE for row in shown]
    edges = {"color": theme.TARGET_COLOR, "width": [1.0 if row.cut else 0.0 for row in shown]}
    diamond = {"symbol": "diamond-open", "size": 9, "color": theme.SOURCE_COLOR, "line": {"width": 2}}
    y = np.arange(len(shown))
    data = [
        layer("lying", np.array(cut), y, {"marker": {"color": shades, "line": edges}}, name=names[2]),
        layer("markers", np.array(tempered), y, {"cliponaxis": False, "marker": diamond}, name=names[1]),
        layer("markers", np.array(raw), y, _TICK, name=names[0]),
        whole_rows([-1 if one is None else one for one in ids], hovers),
    ]
    return {"data": data, "layout": layout}


def others_named(count: int) -> str:
    """The name of all pieces that are not listed."""
    return say_n("{n:,} other", "{n:,} others", count)


# ------------------------------------------------------------------------------------------------ sampled outputs

HOW_TO_READ_DRAWS = say(
    "Each row is one output. The bar is its share of the draws, with a 95 % interval for its probability. The tick "
    "is its probability after temperature, top-k and top-p; the diamond is the model's own probability."
)


@dataclass(frozen=True)
class Drawn:
    """One output."""

    text: str  # what it says
    count: int  # how often it was drawn
    frequency: float  # its share of the draws
    drawn: float  # its probability where it was drawn from
    own: float  # that under the model
    low: float  # where the interval of its probability begins
    high: float  # and ends
    seed: int  # one that draws it


def draws_spec(rows: Sequence[Drawn], *, title: str, chosen: int | None = None) -> Spec:
    """Draw the outputs, the most frequent first; a click on a row returns its seed."""
    layout = base_layout(title, say("Share and probability"), say("Output")) | {"bargap": 0.3, "barmode": "overlay"}
    most = max((max(row.high, row.drawn, row.own) for row in rows), default=1.0)
    layout["xaxis"] |= {"range": [0, min(1.0, 1.04 * most)], "tickformat": ".2~f", "fixedrange": True}
    labels = (literal(shortened(row.text, limit=28)) for row in rows)
    listed(layout, (f"<b>{label}</b>" if place == chosen else label for place, label in enumerate(labels)))
    legend(layout, 92)
    layout["height"] = int(np.clip(_NAMED_FRAME + 26 * len(rows), 200, 600))
    table_of(
        layout,
        (say("output"), [row.text for row in rows]),
        (say("draws"), [row.count for row in rows]),
        (say("share"), [row.frequency for row in rows]),
        (say("interval from"), [row.low for row in rows]),
        (say("interval to"), [row.high for row in rows]),
        (say("sampling probability"), [row.drawn for row in rows]),
        (say("the model's own"), [row.own for row in rows]),
        (say("seed"), [row.seed for row in rows]),
    )
    shares, drawn, own, low, high = (
        np.array([getattr(row, field) for row in rows]) for field in ("frequency", "drawn", "own", "low", "high")
    )
    shades = [theme.TARGET_COLOR if place == chosen else theme.TARGET_PALE for place in range(len(rows))]
    whiskers = {"type": "data", "symmetric": False, "array": high - shares, "arrayminus": shares - low}
    whiskers |= {"color": theme.MARK_COLOR, "thickness": 1, "width": 4}
    bars = {"marker": {"color": shades, "line": {"color": theme.TARGET_COLOR, "width": 1}}, "error_x": whiskers}
    tick = _SIGN | {"size": 15, "line": {"width": 3}}
    diamond = {"symbol": "diamond-open", "size": 8, "color": theme.SOURCE_COLOR, "line": {"width": 2}}
    y, whole = np.arange(len(rows)), {"cliponaxis": False}
    data = [
        layer("lying", shares, y, bars, name=say("share")),
        layer("markers", drawn, y, whole | {"marker": tick}, name=say("probability")),
        layer("markers", own, y, whole | {"marker": diamond}, name=say("the model's own")),
        whole_rows([row.seed for row in rows], [_draws_on_hover(row) for row in rows], width=2 * most),
    ]
    return {"data": data, "layout": layout}


def _draws_on_hover(row: Drawn) -> str:
    return on_lines(
        bold(row.text),
        say_n("drawn {n} time", "drawn {n} times", row.count),
        with_number(say("share"), f"{row.frequency:.3f}"),
        say("95 % interval from {low:.3f} to {high:.3f}", low=row.low, high=row.high),
        with_number(say("sampling probability"), f"{row.drawn:.4g}"),
        with_number(say("the model's own"), f"{row.own:.4g}"),
    )


# ------------------------------------------------------------------------------------------------ losses

HOW_TO_READ_LOSSES = say(
    "Each bar is the loss −ln p of one given token; it is 0 if the model is certain of that token. Pale bars are "
    "tokens that the model ranks first. The dotted line is the mean loss; the dashed line is the loss of guessing "
    "uniformly among all tokens. Click a bar to look at that token."
)
HOW_TO_READ_HIDDEN = say(
    "Each bar is one token's loss −ln p when only that token is hidden; it is 0 if the model is certain of the "
    "token. Pale bars are tokens that the model itself would have written. Click a bar to hide that token."
)
LOSS = say("Loss (nats)")


def piece_losses_spec(
    pieces: Sequence[str],
    losses: Sequence[float],
    *,
    places: Sequence[int],
    ranks: Sequence[int],
    best: Sequence[str],
    best_probabilities: Sequence[float],
    chosen: int | None,
    title: str,
    piece_axis: str = say("Given token"),
    guessing: float | None = None,
) -> Spec:
    """Draw the loss of each piece of a text, in nats.

    `places` in the text count from 0; a click returns one. `ranks` count from 1 among all pieces, `best` are the most
    probable pieces, and `best_probabilities` their probabilities, 0 to 1. `guessing` is the loss of guessing among
    all pieces, in nats; None draws no line.
    """
    if {len(losses), len(places), len(ranks), len(best), len(best_probabilities)} != {len(pieces)}:
        raise ValueError(f"{len(pieces)} tokens need as many losses, places, ranks and likeliest tokens.")
    layout = base_layout(title, piece_axis, LOSS) | {"height": 380, "bargap": 0.25}
    along(layout, pieces)
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 7}
    rows = table_of(
        layout,
        (say("token"), [place + 1 for place in places]),
        (say("token"), pieces),
        (LOSS, map(float, losses)),
        (say("probability"), [float(np.exp(-loss)) for loss in losses]),
        (say("rank"), map(int, ranks)),
        (say("likeliest"), best),
        (say("its probability"), map(float, best_probabilities)),
    )
    if not len(pieces):
        return {"data": [], "layout": layout}
    here = np.array([place == chosen for place in places], bool)
    edges = edge(np.where(here, 3.0, 1.0), [theme.MARK_COLOR if one else theme.SOURCE_COLOR for one in here])
    shades = [theme.SOURCE_PALE if rank == 1 else theme.SOURCE_COLOR for rank in ranks]
    look = {"marker": {"color": shades, "line": edges}}
    texts, clicks = [_said(*row) for row in rows], [int(place) for place in places]
    x, y, mean = np.arange(len(pieces), dtype=np.int32), np.asarray(losses, np.float32), float(np.mean(losses))
    bars = layer("bar", x, y, look, texts=texts, clicks=clicks)
    layout["shapes"] = [level(mean, xref="x domain")]
    if guessing is not None:
        layout["shapes"].append(level(guessing, "dash", xref="x domain"))
        said = say(
            "dotted: mean loss, {mean:.3f} nats; dashed: loss of guessing, {loss:.2f} nats", mean=mean, loss=guessing
        )
        subtitle(layout, [said])
        layout["yaxis"]["range"] = [0, 1.08 * max(guessing, *losses)]
    return {"data": [bars], "layout": layout}


hidden_pieces_spec = partial(piece_losses_spec, piece_axis=say("Hidden token"))
"""The same of a text whose pieces are hidden, each alone."""


def _said(token: int, piece: str, loss: float, probability: float, rank: int, likeliest: str, best: float) -> str:
    return on_lines(
        say("token {place}: {piece}", place=token, piece=bold(piece)),
        with_number(say("loss"), f"{loss:.3f}"),
        say("probability {p}, rank {rank:,}", p=literal(chance(probability)), rank=rank),
        say("likeliest: {piece} ({p})", piece=literal(likeliest), p=literal(chance(best))),
    )
