"""The tables of embeddings: which pieces stand near one, and where the pieces of the sentence stand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

import charts
from charts.neighbours import HOW_TO_READ_COSINE, HOW_TO_READ_DISTANCE, HOW_TO_READ_MAP, KIND_NAMES, MapPoint
from charts.neighbours import Kind as Origin
from transformer.analysis import neighbours
from transformer.analysis.neighbours import Measure, Neighbours, Plane
from transformer.model.anatomy import anatomy
from ui.inside import pieces_controls
from ui.inside.pieces_controls import Book, Chosen
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.figures import NEIGHBOURS
from ui.runs.open_run import OpenRun
from ui.shared import drawing
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state.click import place_below
from words import joined, say

BARS: Final = "piece_neighbours"
MAP: Final = "piece_map"
MOST_MAPPED: Final = 60  # different pieces of the sentence


def draw(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    chosen = attempt(lambda: pieces_controls.draw(run, row))
    if chosen is None:
        return

    def near() -> None:
        attempt(lambda: _bars(run, chosen))
        st.markdown(drawing.plain(what_it_is(run, chosen)))

    drawing.beside(near, lambda: attempt(lambda: _map(run, chosen)), widths=(2, 3))


def what_it_is(run: OpenRun, chosen: Chosen) -> str:
    """Which table is looked at, and how long the chosen vector is among the others."""
    book = chosen.book
    table, ordinary, length = _table(run, chosen), book.norms[book.ordinary], float(book.norms[chosen.id])
    if not ordinary.size:
        return joined(" ", [*table, say("It has special pieces only.")])
    said = [
        *table,
        say("The vector of {piece} is {length:.3f} long, longer than {share:.0%} of all; half of them are at most "
            "{median:.3f}.", piece=chosen.piece, length=length, share=float((ordinary < length).mean()),
            median=float(np.median(ordinary))),
        say("The {n:,} special and unused pieces are left out among the neighbours.",
            n=len(book.norms) - int(book.ordinary.sum())),
    ]  # fmt: skip
    return joined(" ", said)


def _table(run: OpenRun, chosen: Chosen) -> list[str]:
    """Which table it is, and whether the output layer uses the same one."""
    config, parts = run.checkpoint.config, anatomy(run.checkpoint.config)
    rows, width = chosen.book.values.shape
    if not (parts.reads and parts.writes):
        said = say("This model has one table of {rows:,} pieces × {width:,} numbers.", rows=rows, width=width)
    elif config.shared_vocab:
        said = say(
            "Source and target share one table of {rows:,} pieces × {width:,} numbers.", rows=rows, width=width
        )
    elif chosen.side == "source":
        return [
            say("The source has a table of its own: {rows:,} pieces × {width:,} numbers.", rows=rows, width=width)
        ]
    else:
        said = say("The target has a table of its own: {rows:,} pieces × {width:,} numbers.", rows=rows, width=width)
    tied = parts.writes and config.tie_output
    return [said, say("The output layer uses the same table.")] if tied else [said]


# ------------------------------------------------------------------------------------------------ the nearest


def _bars(run: OpenRun, chosen: Chosen) -> None:
    book, by = chosen.book, chosen.by
    found = nearest(chosen)
    if not len(found.ids):
        st.caption(
            say("Its vector is 0, which has no direction and so no cosine. Choose the distance.")
            if book.norms[chosen.id] == 0 and by == "cosine"
            else say("There is no other ordinary piece in this table.")
        )
        return
    pieces = [book.tokenizer.piece(i) for i in found.ids.tolist()]
    figure = charts.neighbour_bars_spec(
        pieces, found.ids.tolist(), found.cosine, found.distance, by=by, colour=book.colour,
        title=say("Nearest to {piece}", piece=chosen.piece),
    )  # fmt: skip
    chart, choose = run.key(BARS), partial(pieces_controls.choose, run.slot, book.key)
    follow = on_click(chart, place_below(len(book.norms)), choose)
    alt = say("The {n} pieces whose vectors are nearest to that of {piece}, from {first} down.", n=len(pieces),
              piece=chosen.piece, first=pieces[0])  # fmt: skip
    how_to_read = HOW_TO_READ_COSINE if by == "cosine" else HOW_TO_READ_DISTANCE
    drawing.chart(figure, key=chart, alt=alt, how_to_read=how_to_read, on_click=follow, of_sentence=False)


def nearest(chosen: Chosen) -> Neighbours:
    """The nearest pieces of the chosen one; made once.

    Raises:
        BusyError: The model has too much to do.
    """
    book = chosen.book
    return loading.runner().compute(
        ("neighbours", *book.key, chosen.id, chosen.by),
        lambda: neighbours.nearest(
            book.values, book.norms, chosen.id, count=NEIGHBOURS, by=chosen.by, allowed=book.ordinary
        ),
        nbytes=lambda found: 3 * found.ids.nbytes,
    )


# ------------------------------------------------------------------------------------------------ the map


@dataclass(frozen=True, eq=False)
class Mapped:
    """What the map shows: the ids, the given ones first; which of them brought in each neighbour; and the places."""

    ids: list[int]
    near: dict[int, list[int]]
    plane: Plane


def per_piece(n_pieces: int) -> int:
    """How many neighbours each piece brings into the map: fewer, the more pieces there are."""
    return 3 if n_pieces <= 20 else 2 if n_pieces <= 40 else 1


def mapped(book: Book, ids: tuple[int, ...], chosen: int, by: Measure) -> Mapped:
    """The map of some pieces with their neighbours; made once.

    Raises:
        BusyError: The model has too much to do.
    """

    def work() -> Mapped:
        count = per_piece(len(ids))
        found = neighbours.neighbourhoods(
            book.values, book.norms, ids, count=NEIGHBOURS, by=by, allowed=book.ordinary
        )
        near: dict[int, list[int]] = {}
        for i, others in zip(ids, found, strict=True):
            for other in others[: None if i == chosen else count].tolist():
                if other not in ids:
                    near.setdefault(other, []).append(i)
        everyone = [*ids, *near]
        return Mapped(everyone, near, neighbours.plane(book.values[everyone], unit=by == "cosine"))

    return loading.runner().compute(
        ("piece_map", *book.key, ids, chosen, by), work, nbytes=lambda found: 200 * len(found.ids)
    )


def kinds_of(run: OpenRun, chosen: Chosen) -> dict[int, Origin]:
    """The pieces that may be seen and are in the table, each once, and where they are from; the chosen one first."""
    trace = run.trace
    n_given = 0 if anatomy(run.checkpoint.config).reads else len(trace.src_ids)  # a prompt, which the decoder reads
    source, target = list(trace.src_ids), list(trace.read_ids[n_given : run.looking.n_rows])
    if not run.checkpoint.config.shared_vocab:
        source, target = (source, []) if chosen.side == "source" else ([], target)
    kinds: dict[int, Origin] = {}
    for i in (chosen.id, *source, *target):
        where = (i in source, i in target)
        kinds[i] = "both" if all(where) else "source" if where[0] else "target" if where[1] else "typed"
    return kinds


def _map(run: OpenRun, chosen: Chosen) -> None:
    book, kinds = chosen.book, kinds_of(run, chosen)
    shown = tuple(kinds)[:MOST_MAPPED]
    found = mapped(book, shown, chosen.id, chosen.by)
    name = book.tokenizer.piece
    points = [
        MapPoint(
            name(i), i, kinds[i] if i in shown else "neighbour", x, y, ", ".join(map(name, found.near.get(i, [])[:3]))
        )
        for i, (x, y) in zip(found.ids, found.plane.points.tolist(), strict=True)
    ]
    note = ""
    if len(kinds) > len(shown):
        note = say("{n} of the sentence's {count} different pieces", n=len(shown), count=len(kinds))
    figure = charts.piece_map_spec(
        points, shares=found.plane.shares, chosen=chosen.id, note=note,
        title=say("The sentence's pieces and their neighbours"),
    )  # fmt: skip
    chart, choose = run.key(MAP), partial(pieces_controls.choose, run.slot, book.key)
    follow = on_click(chart, place_below(len(book.norms)), choose)
    counts = [
        say("{n} {where}", n=sum(point.kind == kind for point in points), where=where)
        for kind, where in KIND_NAMES.items()
    ]
    alt = say("A map of {n} pieces by their vectors: {counts}.", n=len(points), counts=joined(", ", counts))
    drawing.chart(figure, key=chart, alt=alt, how_to_read=HOW_TO_READ_MAP, on_click=follow)
    said = [
        say("The two axes together hold {share:.0%} of the variance of these {n} vectors.",
            share=sum(found.plane.shares), n=len(points)),
        say("Each piece of the sentence brings its {n} nearest, the chosen one its {most}.", n=per_piece(len(shown)),
            most=NEIGHBOURS),
    ]  # fmt: skip
    if chosen.by == "cosine":
        said += [say("Every vector was scaled to length 1 first.")]
    st.caption(joined(" ", said))
