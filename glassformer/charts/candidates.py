"""The most probable next pieces of one step as bars, and how sampling changes their distribution, in one chart.

The axis goes from 0 to 1 on every step and at every setting, so you can compare them by eye.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import edge, layer, legend, level, listed, note, table, table_of, whole_rows
from glassformer.charts.hover import bold, on_lines, with_number
from glassformer.charts.theme import Spec, base_layout, literal, shortened
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
_FRAME = 110  # pixels of title and axis


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
    shares = [None] * count if drawn_from is None else drawn_from
    rules = [None] * count if rules is None else rules
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
        name = say_n("{n:,} other", "{n:,} others", others.count)
        rows.append(_Row(name, name, -1, others.probability, others.drawn_from))
        names.append((None, name))
    layout = _candidate_layout(title, rows)
    if not count:
        return {"data": [], "layout": layout}
    drawn = [say("probability of being drawn")] * (drawn_from is not None)
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
        tick = {"symbol": "line-ns-open", "size": 13, "color": theme.MARK_COLOR, "line": {"width": 2.5}}
        look = {"cliponaxis": False, "marker": tick}
        data.insert(1, layer("markers", own, np.arange(len(rows)), look, name=say("the model's own")))
    return {"data": data, "layout": layout}


def _label(piece: str, chosen: bool, mark: str) -> str:
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


def _candidate_layout(title: str, rows: Sequence[_Row]) -> Spec:
    layout = base_layout(title, say("Probability"), say("Token")) | {"bargap": 0.28, "barmode": "overlay"}
    layout["xaxis"] |= {"range": [0, 1], "tickformat": ".1f", "fixedrange": True}
    listed(layout, (row.label for row in rows))
    layout["margin"] |= {"r": 64}
    layout["height"] = int(np.clip(_FRAME + 10 + 24 * len(rows), 200, 560))
    layout["annotations"] = [at_the_edge(place, _at_the_edge(row), 60) for place, row in enumerate(rows)]
    if any(row.drawn_from is not None for row in rows):
        legend(layout, 76)
    return layout


def at_the_edge(place: int, text: str, room: int) -> Spec:
    """A number at the right edge, aligned with the others."""
    return note(1, place, text) | {"xref": "paper", "xanchor": "right", "xshift": room, "yref": "y"}


def _at_the_edge(row: _Row) -> str:
    if row.drawn_from == 0 and row.closed:
        return say("closed")
    return say("cut off") if row.drawn_from == 0 and row.id >= 0 else literal(chance(row.length))


def _candidate_bars(rows: Sequence[_Row], texts: Sequence[str]) -> Spec:
    # A pale bar alone is hard to see, and one of 0.1 % is nothing but its edge.
    # A pale bar alone is hard to see, and one of 0.1 % is nothing but its edge.
    widths = [1.5 if row.chosen else 1.0 if row.length else 0.0 for row in rows]
    edges = edge(widths, [theme.MARK_COLOR if row.chosen else theme.TARGET_COLOR for row in rows])
    shades = [theme.TARGET_COLOR if row.chosen else theme.TARGET_PALE for row in rows]
    look = {"marker": {"color": shades, "line": edges}}
    x, clicks = np.array([row.length for row in rows]), [row.id for row in rows]
    return layer("lying", x, np.arange(len(rows)), look, name=say("sampling probability"), texts=texts, clicks=clicks)


def _on_hover(row: _Row) -> list[str]:
    own, drawn = f"{row.probability:.4f}", "" if row.drawn_from is None else f"{row.drawn_from:.4f}"
    numbers = [with_number(PROBABILITY, own)]
    if drawn:
        numbers = [with_number(say("sampling probability"), drawn),
                   with_number(say("the model's own probability"), own)]  # fmt: skip
    return [literal(row.note), *numbers]


HOW_TO_READ_RESHAPED = say(
    "Each row is one token. The tick is the model's own probability, the diamond the probability after "
    "temperature. The bar is the sampling probability: top-k and top-p have removed some tokens, and the "
    "probabilities of the others are rescaled to sum to 1."
)
_RESHAPED_FRAME = 128  # pixels of title, names of the marks and axis
_ROW = 27  # pixels


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
    layout = _layout(title, shown)
    if border is not None and 0 < border < len(rows):
        layout["shapes"] = [level(border - 0.5, "dash")]
    table_of(
        layout,
        (say("token"), [row.name for row in shown]),
        (say("id"), [row.id for row in shown]),
        (say("the model's own"), [row.raw for row in shown]),
        (say("tempered"), [row.tempered for row in shown]),
        (say("sampling probability"), [row.cut for row in shown]),
        (say("note"), [row.note for row in shown]),
    )
    shades = [theme.TARGET_COLOR if row.drawn else theme.TARGET_PALE for row in shown]
    edges = {"color": theme.TARGET_COLOR, "width": [1.0 if row.cut else 0.0 for row in shown]}
    diamond = {"symbol": "diamond-open", "size": 9, "color": theme.SOURCE_COLOR, "line": {"width": 2}}
    tick = {"symbol": "line-ns-open", "size": 13, "color": theme.MARK_COLOR, "line": {"width": 2.5}}
    cut, tempered, raw = (np.array([getattr(row, field) for row in shown]) for field in ("cut", "tempered", "raw"))
    y, whole = np.arange(len(shown)), {"cliponaxis": False}
    data = [
        layer("lying", cut, y, {"marker": {"color": shades, "line": edges}}, name=say("sampling probability")),
        layer("markers", tempered, y, whole | {"marker": diamond}, name=say("tempered")),
        layer("markers", raw, y, whole | {"marker": tick}, name=say("model's own")),
        whole_rows([-1 if row.id is None else row.id for row in shown], [_reshaped_on_hover(row) for row in shown]),
    ]
    return {"data": data, "layout": layout}


def others_named(count: int) -> str:
    """The name of all pieces that are not listed."""
    return say_n("{n:,} other", "{n:,} others", count)


def _layout(title: str, shown: Sequence[Shares]) -> Spec:
    layout = base_layout(title, say("Probability"), say("Token")) | {"bargap": 0.34, "barmode": "overlay"}
    layout["xaxis"] |= {"range": [0, 1], "tickformat": ".1f", "fixedrange": True}
    listed(layout, map(_reshaped_label, shown))
    legend(layout, 92)
    layout["margin"] |= {"r": 68}
    layout["height"] = int(np.clip(_RESHAPED_FRAME + _ROW * len(shown), 220, 560))
    texts = [say("cut off") if row.cut == 0 and row.id is not None else literal(chance(row.cut)) for row in shown]
    layout["annotations"] = [at_the_edge(place, text, 64) for place, text in enumerate(texts)]
    return layout


def _reshaped_label(row: Shares) -> str:
    if row.id is None:
        return row.name
    label = literal(shortened(row.name))
    return f"✓ <b>{label}</b>" if row.drawn else label


def _reshaped_on_hover(row: Shares) -> str:
    return on_lines(
        bold(row.name),
        literal(row.note),
        with_number(say("the model's own probability"), f"{row.raw:.5f}"),
        with_number(say("tempered: probability"), f"{row.tempered:.5f}"),
        with_number(say("sampling probability"), f"{row.cut:.5f}"),
    )
