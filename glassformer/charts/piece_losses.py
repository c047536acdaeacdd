"""The loss of each piece of a text as a bar."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import along, edge, layer, level, table_of
from glassformer.charts.hover import bold, on_lines, with_number
from glassformer.charts.theme import Spec, base_layout, literal, subtitle
from transformer.i18n import say
from transformer.i18n.sentence import chance

HOW_TO_READ = say(
    "Each bar is the loss −ln p of one given token; it is 0 if the model is certain of that token. Pale bars are "
    "tokens that the model ranks first. The dotted line is the mean loss; the dashed line is the loss of guessing "
    "uniformly among all tokens. Click a bar to look at that token."
)
HOW_TO_READ_HIDDEN = say(
    "Each bar is one token's loss −ln p when only that token is hidden; it is 0 if the model is certain of the "
    "token. Pale bars are tokens that the model itself would have written. Click a bar to hide that token."
)
LOSS = say("Loss (nats)")
PIECE = say("Given token")


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
    piece_axis: str = PIECE,
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
        say("token {n}: {piece}", n=token, piece=bold(piece)),
        with_number(say("loss"), f"{loss:.3f}"),
        say("probability {p}, rank {rank:,}", p=literal(chance(probability)), rank=rank),
        say("likeliest: {piece} ({p})", piece=literal(likeliest), p=literal(chance(best))),
    )
