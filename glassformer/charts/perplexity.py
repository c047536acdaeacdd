"""Perplexity by position: of each piece of a text alone, and of all pieces up to it."""

from collections.abc import Sequence

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import Kind, along, edge, layer, legend, level, numbered, table_of
from glassformer.charts.hover import hover, with_number
from glassformer.charts.piece_losses import PIECE
from glassformer.charts.theme import Spec, base_layout, subtitle
from transformer.i18n import say

HOW_TO_READ = say(
    "Each point is the perplexity 1 / p of one piece with probability p: the model was as unsure as if it were "
    "guessing among that many equally likely pieces. 1 means certain. The line is e to the power of the mean loss "
    "so far; it ends at the perplexity of the whole text."
)
PERPLEXITY = say("Perplexity (logarithmic)")
_MOST_MARKED = 200  # points with a size that can be hit


def perplexity_spec(
    pieces: Sequence[str],
    alone: Sequence[float],
    so_far: Sequence[float],
    *,
    n_pieces: int,
    chosen: int | None,
    title: str,
    piece_axis: str = PIECE,
) -> Spec:
    """Draw the perplexity by position, from 1: of each piece `alone`, and of all so far. A click returns the place.

    `n_pieces`, the size of the vocabulary, is the perplexity of guessing.
    """
    values = [np.asarray(one, np.float64) for one in (alone, so_far)]
    if any(one.shape != (len(pieces),) for one in values):
        raise ValueError(f"{len(pieces)} pieces need a perplexity alone and one so far each.")
    layout = base_layout(title, piece_axis, PERPLEXITY) | {"height": 380}
    legend(layout, 94)
    along(layout, pieces)
    top = max(float(n_pieces), *(float(one[np.isfinite(one)].max(initial=1)) for one in values))
    layout["yaxis"] |= {"type": "log", "range": [-0.08, float(np.log10(top)) + 0.3]}
    layout["yaxis"] |= {"tickvals": [10**i for i in range(int(np.log10(top)) + 2)], "tickformat": ",d"}
    layout["shapes"] = [level(float(n_pieces), "dash", xref="x domain")]
    subtitle(layout, [say("dashed: guessing among all {n:,} pieces", n=n_pieces)])
    table_of(
        layout,
        (say("place"), range(1, len(pieces) + 1)),
        (say("piece"), pieces),
        (say("perplexity of this piece"), values[0].tolist()),
        (say("perplexity so far"), values[1].tolist()),
    )
    here = np.arange(len(pieces)) == chosen
    marker = {"color": theme.SOURCE_COLOR, "symbol": "circle", "line": edge(np.where(here, 2, 0))}
    marker["size"] = np.where(here, 13, 8 if len(pieces) <= _MOST_MARKED else 4)
    kinds: list[tuple[Kind, str, Spec]] = [
        ("markers", say("this piece"), {"marker": marker}),
        ("lines", say("all so far"), {"line": {"color": theme.NEUTRAL_COLOR, "width": 2.5}}),
    ]
    x, texts, data = np.arange(len(pieces), dtype=np.int32), numbered(pieces), []
    for (kind, name, look), y in zip(kinds, values, strict=True):
        says = hover("%{hovertext}", with_number(name, "%{y:,.4~g}"))
        data.append(layer(kind, x, y, look, name=name, says=says, texts=texts, clicks=range(len(pieces))))
    return {"data": data if len(pieces) else [], "layout": layout}
