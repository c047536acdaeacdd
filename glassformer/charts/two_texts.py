"""Two rows of pieces, one above the other: inputs and labels of teacher forcing, or two texts until they diverge.

Each place reads what the place before it had to predict, so a line leads from every label to where it is read.
"""

from collections.abc import Sequence

import numpy as np

from glassformer.charts.bands import COLUMNS, Cell, bands, top, window
from glassformer.charts.hover import bold, on_lines, with_number
from glassformer.charts.theme import GUIDE_COLOR, Colour, Spec, literal
from transformer.i18n import say
from transformer.i18n.sentence import chance

HOW_TO_READ = say(
    "The two texts, position by position. Blue: identical up to the first difference, which is framed. Orange: "
    "what follows in each text; tokens in the same column need not correspond. Purple: the ending, identical in "
    "both texts."
)
AXIS = say("Position (wrapped into lines)")
_SHADES: dict[str, tuple[Colour, float]] = {
    "before": ("source", 0.25), "parts": ("target", 0.5), "after": ("target", 0.2), "end": ("neutral", 0.3),
}  # fmt: skip


def two_texts_spec(
    names: tuple[str, str],
    texts: tuple[Sequence[str], Sequence[str]],
    probabilities: tuple[Sequence[float], Sequence[float]],
    *,
    parts_at: int | None,
    tail: int,
    title: str,
) -> Spec:
    """Draw two texts, with the probability, 0 to 1, of each piece given the pieces before it in its own text.

    From place `parts_at` on, counted from 0, they differ, or only one continues; None if they are equal. After that
    place both end with the same `tail` pieces.
    """
    if [*map(len, texts)] != [*map(len, probabilities)]:
        raise ValueError("Give one probability for each token.")
    drawn = window(max(map(len, texts)), parts_at)
    rows = [
        (name, [_cell(name, text, each, i, parts_at, tail) if i < len(text) else None for i in drawn])
        for name, text, each in zip(names, texts, probabilities, strict=True)
    ]
    figure = bands(rows, first=drawn.start, title=title, axis=AXIS)
    columns = [say("text"), say("place"), say("token"), say("probability"), say("part")]
    told = {
        "before": say("same"),
        "parts": say("first difference"),
        "after": say("after the first difference"),
        "end": say("same ending"),
    }
    cells = [
        [name, i + 1, piece, float(p), told[_part(i, len(text), parts_at, tail)]]
        for name, text, each in zip(names, texts, probabilities, strict=True)
        for i, (piece, p) in enumerate(zip(text, each, strict=True))
    ]
    figure["layout"]["meta"] = {"first": drawn.start, "table": {"columns": columns, "rows": cells}}
    return figure


def _part(place: int, length: int, parts_at: int | None, tail: int) -> str:
    if parts_at is None or place < parts_at:
        return "before"
    if place >= length - tail:
        return "end"
    return "parts" if place == parts_at else "after"


def _cell(
    name: str, text: Sequence[str], probabilities: Sequence[float], place: int, parts_at: int | None, tail: int
) -> Cell:
    part = _part(place, len(text), parts_at, tail)
    said = on_lines(
        say("{text}, token {n}: {piece}", text=name, n=place + 1, piece=bold(text[place])),
        say("probability {p}", p=literal(chance(float(probabilities[place])))),
    )
    return Cell(text[place], said, *_SHADES[part], framed=place == parts_at)


HOW_TO_READ_SHIFT = say(
    "In each column, the decoder reads the upper token and all tokens before it, and has to predict the lower "
    "token. The stronger the lower token's colour, the larger its loss; the scale ends at the loss of pure "
    "guessing. The lower token of one column is the upper token of the next. Click a column to shade the tokens "
    "that it sees in the upper row."
)
READS, PREDICTS = say("reads"), say("has to predict")
_SEEN, _NOT_SEEN = 0.3, 0.0
SHIFT_AXIS = say("Position (wrapped into lines)")


def shift_spec(
    reads: Sequence[str],
    labels: Sequence[str],
    losses: Sequence[float],
    *,
    guessing: float,
    chosen: int | None,
    title: str,
) -> Spec:
    """Draw the last piece that each place reads and the label that it has to predict, with its loss in nats.

    The scale ends at `guessing`, the loss of guessing among all pieces. What the `chosen` place reads is shaded. A
    long text shows only the bands around that place: `layout.meta.first` is the first place drawn.
    """
    if {len(reads), len(losses)} != {len(labels)}:
        raise ValueError(f"{len(labels)} labels need as many tokens that are read, and losses.")
    drawn = window(len(labels), chosen)
    above = [_input(reads[i], i, chosen) for i in drawn]
    below = [_label(labels[i], i, float(losses[i]), guessing, i == chosen) for i in drawn]
    figure = bands([(READS, above), (PREDICTS, below)], first=drawn.start, title=title, axis=SHIFT_AXIS)
    layout = figure["layout"]
    layout["shapes"] = [*_arrows(len(drawn)), *layout["shapes"]]
    columns = [say("place"), READS, PREDICTS, say("loss (nats)")]
    rows = [
        [i + 1, *parts]
        for i, parts in enumerate(zip(reads, labels, map(float, losses), strict=True))
    ]  # fmt: skip
    layout["meta"] = {"first": drawn.start, "table": {"columns": columns, "rows": rows}}
    return figure


def _input(piece: str, place: int, chosen: int | None) -> Cell:
    seen = chosen is None or place <= chosen
    said = [say("token {n} reads {piece}", n=place + 1, piece=bold(piece))]
    if chosen is not None and seen:
        said.append(say("visible from token {n}, which sees itself and everything before it", n=chosen + 1))
    elif chosen is not None:
        said.append(say("not visible from token {n}, because this token comes later", n=chosen + 1))
    return Cell(piece, on_lines(*said), "source", _SEEN if seen else _NOT_SEEN, framed=place == chosen)


def _label(piece: str, place: int, loss: float, guessing: float, framed: bool) -> Cell:
    said = on_lines(
        say("token {n} has to predict {piece}", n=place + 1, piece=bold(piece)),
        with_number(say("loss"), literal(f"{loss:.3f}")),
        say("probability {p}", p=literal(chance(float(np.exp(-loss))))),
    )
    shade = min(loss / guessing, 1.0) if guessing and np.isfinite(loss) else 1.0
    return Cell(piece, said, "target", shade, framed)


def _arrows(count: int) -> list[Spec]:
    """From each label to where it is read, in the next column; the last of a band is read in the next band."""
    line = {"color": GUIDE_COLOR, "width": 1.5}
    found = []
    for place in range(count - 1):
        band, column = divmod(place, COLUMNS)
        if column < COLUMNS - 1:
            ends = {"x0": column + 0.2, "y0": top(band, 1, 2), "x1": column + 0.8, "y1": top(band, 0, 2) + 1}
            found.append({"type": "line", "layer": "below", "line": line, **ends})
    return found
