"""How sampling changes one step's distribution: the model's own, after temperature, and after the cut, in one chart.

The axis goes from 0 to 1 on every step and at every setting, so you can compare them by eye.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.candidates import at_the_edge
from glassformer.charts.grammar import layer, legend, level, listed, table_of, whole_rows
from glassformer.charts.hover import bold, on_lines, with_number
from glassformer.charts.theme import Spec, base_layout, literal, shortened
from transformer.i18n import say, say_n
from transformer.i18n.numbers import chance

HOW_TO_READ = say(
    "Each row is one piece. The tick is the model's own probability, the diamond the probability after "
    "temperature. The bar is the sampling probability: top-k and top-p have removed some pieces, and the "
    "probabilities of the others are rescaled to sum to 1."
)
_FRAME = 128  # pixels of title, names of the marks and axis
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
        (say("piece"), [row.name for row in shown]),
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
        whole_rows([-1 if row.id is None else row.id for row in shown], [_on_hover(row) for row in shown]),
    ]
    return {"data": data, "layout": layout}


def others_named(count: int) -> str:
    """The name of all pieces that are not listed."""
    return say_n("{n:,} other", "{n:,} others", count)


def _layout(title: str, shown: Sequence[Shares]) -> Spec:
    layout = base_layout(title, say("Probability"), say("Piece")) | {"bargap": 0.34, "barmode": "overlay"}
    layout["xaxis"] |= {"range": [0, 1], "tickformat": ".1f", "fixedrange": True}
    listed(layout, map(_label, shown))
    legend(layout, 92)
    layout["margin"] |= {"r": 68}
    layout["height"] = int(np.clip(_FRAME + _ROW * len(shown), 220, 560))
    texts = [say("cut off") if row.cut == 0 and row.id is not None else literal(chance(row.cut)) for row in shown]
    layout["annotations"] = [at_the_edge(place, text, 64) for place, text in enumerate(texts)]
    return layout


def _label(row: Shares) -> str:
    if row.id is None:
        return row.name
    label = literal(shortened(row.name))
    return f"✓ <b>{label}</b>" if row.drawn else label


def _on_hover(row: Shares) -> str:
    return on_lines(
        bold(row.name),
        literal(row.note),
        with_number(say("the model's own probability"), f"{row.raw:.5f}"),
        with_number(say("tempered: probability"), f"{row.tempered:.5f}"),
        with_number(say("sampling probability"), f"{row.cut:.5f}"),
    )
