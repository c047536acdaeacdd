"""Inputs and labels of teacher forcing: what the decoder reads, above what it has to predict, shifted by one.

Each place reads what the place before it had to predict, so a line leads from every label to where it is read.
"""

from collections.abc import Sequence

import numpy as np

from glassformer.charts.bands import COLUMNS, Cell, bands, top, window
from glassformer.charts.hover import bold, on_lines, with_number
from glassformer.charts.theme import GUIDE_COLOR, Spec, literal
from transformer.i18n import say
from transformer.i18n.numbers import chance

HOW_TO_READ = say(
    "In each column, the decoder reads the upper piece and all pieces before it, and has to predict the lower "
    "piece. The stronger the lower piece's colour, the larger its loss; the scale ends at the loss of pure "
    "guessing. The lower piece of one column is the upper piece of the next. Click a column to shade the pieces "
    "that it sees in the upper row."
)
READS, PREDICTS = say("reads"), say("has to predict")
_SEEN, _NOT_SEEN = 0.3, 0.0
AXIS = say("Position (wrapped into lines)")


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
        raise ValueError(f"{len(labels)} labels need as many pieces that are read, and losses.")
    drawn = window(len(labels), chosen)
    above = [_input(reads[i], i, chosen) for i in drawn]
    below = [_label(labels[i], i, float(losses[i]), guessing, i == chosen) for i in drawn]
    figure = bands([(READS, above), (PREDICTS, below)], first=drawn.start, title=title, axis=AXIS)
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
        said.append(say("not visible from token {n}, because this piece comes later", n=chosen + 1))
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
