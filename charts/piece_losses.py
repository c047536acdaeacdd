"""What each piece of a text costs a model: its loss, as a bar a piece, with the mean and what guessing would cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts.candidates import percent
from charts.hover import bold, hover, on_lines, with_number
from charts.theme import (
    GUIDE_COLOR,
    MARK_COLOR,
    SOURCE_COLOR,
    SOURCE_PALE,
    Spec,
    as_figure,
    base_layout,
    literal,
    subtitle,
    ticks,
)
from words import say

HOW_TO_READ = say(
    "Each bar is one right piece and its loss −ln p, 0 where the model is certain of it; a pale bar is a piece that "
    "ranks first. The dotted line is the mean, the dashed one the loss of guessing among all pieces alike. Click a "
    "bar to look at that piece."
)
LOSS = say("Loss (nats)")
PIECE = say("Right piece")


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
    """Draw the loss of each piece of a text.

    Args:
        pieces: The pieces, in their order.
        losses: Of each, in nats.
        places: Their places in the text, from 0; a click on a bar gives its place as `customdata`.
        ranks: The place of each among all that the model could write there, from 1.
        best: The piece that the model finds likeliest there.
        best_probabilities: How likely it finds it, 0 to 1.
        chosen: The place that is looked at, marked.
        title: What the chart shows.
        piece_axis: What the pieces are.
        guessing: The loss of guessing among all pieces alike, in nats; None draws no line for it.

    Raises:
        ValueError: If the lists differ in length.
    """
    if {len(losses), len(places), len(ranks), len(best), len(best_probabilities)} != {len(pieces)}:
        raise ValueError(f"{len(pieces)} pieces need as many losses, places, ranks and likeliest pieces.")
    layout = base_layout(title, piece_axis, LOSS) | {"height": 380, "bargap": 0.25}
    labels = ticks(pieces, title=piece_axis)
    layout["xaxis"] = {**labels["axis"], "range": [-0.5, len(pieces) - 0.5], "uirevision": "\n".join(pieces)}
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 7}
    columns = [
        say("token"),
        say("piece"),
        LOSS,
        say("probability"),
        say("rank"),
        say("likeliest"),
        say("its probability"),
    ]
    rows = [
        [place + 1, piece, float(loss), float(np.exp(-loss)), int(rank), likeliest, float(probability)]
        for piece, loss, place, rank, likeliest, probability in zip(
            pieces, losses, places, ranks, best, best_probabilities, strict=True
        )
    ]
    layout["meta"] = {"ticks": {"xaxis": labels["spec"]}, "table": {"columns": columns, "rows": rows}}
    if not len(pieces):
        return {"data": [], "layout": layout}
    here = np.array([place == chosen for place in places], bool)
    bars = {
        "type": "bar",
        "x": np.arange(len(pieces), dtype=np.int32),
        "y": np.asarray(losses, np.float32),
        "customdata": [int(place) for place in places],
        "hovertext": [_said(*row) for row in rows],
        "hovertemplate": hover("%{hovertext}"),
        "marker": {
            "color": [SOURCE_PALE if rank == 1 else SOURCE_COLOR for rank in ranks],
            "line": {"color": [MARK_COLOR if one else SOURCE_COLOR for one in here],
                     "width": np.where(here, 3.0, 1.0)},
        },
    }  # fmt: skip
    layout["shapes"] = [level(float(np.mean(losses)), "dot")]
    if guessing is not None:
        layout["shapes"].append(level(guessing, "dash"))
        said = say("dotted: mean {mean:.3f} nats; dashed: guessing, {loss:.2f} nats",
                   mean=float(np.mean(losses)), loss=guessing)  # fmt: skip
        subtitle(layout, [said])
        layout["yaxis"]["range"] = [0, 1.08 * max(guessing, *losses)]
    return {"data": [bars], "layout": layout}


piece_losses = as_figure(piece_losses_spec)


def level(height: float, dash: str) -> Spec:
    """A line across a chart."""
    across = {"x0": 0, "x1": 1, "xref": "x domain", "y0": height, "y1": height}
    return {"type": "line", "line": {"color": GUIDE_COLOR, "width": 1.5, "dash": dash}, **across}


def _said(token: int, piece: str, loss: float, probability: float, rank: int, likeliest: str, best: float) -> str:
    return on_lines(
        say("token {n}: {piece}", n=token, piece=bold(piece)),
        with_number(say("loss"), f"{loss:.3f}"),
        say("probability {p}, rank {rank:,}", p=percent(probability), rank=rank),
        say("likeliest: {piece} ({p})", piece=literal(likeliest), p=percent(best)),
    )
