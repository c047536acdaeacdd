"""The tables of embeddings: which pieces stand near one, and where the pieces of the sentence stand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import streamlit as st

import charts
from charts.neighbours import (
    HOW_TO_READ_COSINE,
    HOW_TO_READ_DISTANCE,
    HOW_TO_READ_MAP,
    KIND_NAMES,
    MapPoint,
)
from charts.neighbours import Kind as Origin
from transformer.analysis import neighbours
from transformer.analysis.neighbours import Measure, Neighbours, Plane
from ui.inside import pieces_controls
from ui.inside.pieces_controls import Book, Chosen
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.shared import drawing
from ui.shared.clicks import on_click, place_below

BARS: Final = "piece_neighbours"
MAP: Final = "piece_map"
N_NEIGHBOURS: Final = 10
MOST_MAPPED: Final = 60  # different pieces of the sentence


def draw(run: OpenRun) -> None:
    """Draw it."""
    chosen = attempt(lambda: pieces_controls.draw(run))
    if chosen is None:
        return
    st.markdown(drawing.plain(what_it_is(run, chosen)))
    left, right = st.columns([2, 3], gap="large")
    with left:
        attempt(lambda: _bars(run, chosen))
    with right:
        attempt(lambda: _map(run, chosen))


def what_it_is(run: OpenRun, chosen: Chosen) -> str:
    """Which table is looked at, and how long the chosen vector is among the others."""
    config, book = run.checkpoint.config, chosen.book
    rows, d_model = book.values.shape
    if config.shared_vocab:
        table = f"Source and target share one table of {rows:,} pieces × {d_model:,} numbers"
    else:
        table = f"The {chosen.side} has a table of its own: {rows:,} pieces × {d_model:,} numbers"
    tied = config.tie_output and (config.shared_vocab or chosen.side == "target")
    table += "; the output projection is the same table." if tied else "."
    ordinary, length = book.norms[book.ordinary], float(book.norms[chosen.id])
    if not ordinary.size:
        return f"{table} It has special pieces only."
    share = float((ordinary < length).mean())
    left_out = rows - int(book.ordinary.sum())
    return (
        f"{table} The vector of {chosen.piece} is {length:.3f} long, longer than {share:.0%} of all; half of them "
        f"are at most {float(np.median(ordinary)):.3f}. The {left_out:,} special and unused pieces are left out "
        "among the neighbours."
    )


# ------------------------------------------------------------------------------------------------ the nearest


def _bars(run: OpenRun, chosen: Chosen) -> None:
    book, by = chosen.book, chosen.by
    found = nearest(chosen)
    if not len(found.ids):
        st.caption(
            "Its vector is 0, which has no direction and so no cosine. Choose the distance."
            if book.norms[chosen.id] == 0 and by == "cosine"
            else "There is no other ordinary piece in this table."
        )
        return
    pieces = [book.tokenizer.piece(i) for i in found.ids.tolist()]
    figure = charts.neighbour_bars_spec(
        pieces, found.ids.tolist(), found.cosine, found.distance, by=by, colour=book.colour,
        title=f"Nearest to {chosen.piece}",
    )  # fmt: skip
    chart, choose = run.key(BARS), partial(pieces_controls.choose, run.slot, book.key)
    follow = on_click(chart, place_below(len(book.norms)), choose)
    alt = f"The {len(pieces)} pieces whose vectors are nearest to that of {chosen.piece}, from {pieces[0]} down."
    how_to_read = HOW_TO_READ_COSINE if by == "cosine" else HOW_TO_READ_DISTANCE
    drawing.chart(figure, key=chart, alt=alt, how_to_read=how_to_read, on_click=follow)


def nearest(chosen: Chosen) -> Neighbours:
    """The nearest pieces of the chosen one; made once.

    Raises:
        BusyError: The model has too much to do.
    """
    book = chosen.book
    return loading.runner().compute(
        ("neighbours", *book.key, chosen.id, chosen.by),
        lambda: neighbours.nearest(
            book.values, book.norms, chosen.id, count=N_NEIGHBOURS, by=chosen.by, allowed=book.ordinary
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
            book.values, book.norms, ids, count=N_NEIGHBOURS, by=by, allowed=book.ordinary
        )
        near: dict[int, list[int]] = {}
        for i, others in zip(ids, found, strict=True):
            for other in others[: None if i == chosen else count].tolist():
                if other not in ids:
                    near.setdefault(other, []).append(i)
        everyone = [*ids, *near]
        return Mapped(everyone, near, neighbours.plane(book.values[everyone], unit=by == "cosine"))

    return loading.runner().compute(
        ("piece map", *book.key, ids, chosen, by), work, nbytes=lambda found: 200 * len(found.ids)
    )


def kinds_of(run: OpenRun, chosen: Chosen) -> dict[int, Origin]:
    """The pieces that may be seen and are in the table, each once, and where they are from; the chosen one first."""
    written = run.trace.read_ids[: run.looking.n_rows]
    source, target = list(run.trace.src_ids), list(written)
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
    note = "" if len(kinds) == len(shown) else f"{len(shown)} of the sentence's {len(kinds)} different pieces"
    figure = charts.piece_map_spec(
        points, shares=found.plane.shares, chosen=chosen.id, note=note,
        title="The sentence's pieces and their neighbours",
    )  # fmt: skip
    chart, choose = run.key(MAP), partial(pieces_controls.choose, run.slot, book.key)
    follow = on_click(chart, place_below(len(book.norms)), choose)
    said = ", ".join(f"{sum(p.kind == kind for p in points)} {text}" for kind, text in KIND_NAMES.items())
    alt = f"A map of {len(points)} pieces by their vectors: {said}."
    drawing.chart(figure, key=chart, alt=alt, how_to_read=HOW_TO_READ_MAP, on_click=follow)
    scaled = " Every vector was scaled to length 1 first." if chosen.by == "cosine" else ""
    st.caption(
        f"The two axes together hold {sum(found.plane.shares):.0%} of the variance of these {len(points)} vectors. "
        f"Each piece of the sentence brings its {per_piece(len(shown))} nearest, the chosen one its {N_NEIGHBOURS}."
        f"{scaled}"
    )
