"""Pictures of the embedding tables: the nearest tokens of one token, and a 2-D map of the sentence's tokens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import numpy as np

from glassformer.charts.marks import Axis, Numbers
from glassformer.charts.marks import bars as bars_of
from glassformer.charts.points import KIND_NAMES, MapPoint, piece_map_spec
from glassformer.charts.points import Kind as Origin
from glassformer.charts.theme import Colour
from glassformer.inside import InsideLook
from glassformer.inside.token_selection import INSIDE, side_of
from glassformer.runs.picture import Captions, Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.state.view import Side, place_below
from transformer.analysis import neighbours
from transformer.analysis.neighbours import Measure, Neighbours, Plane
from transformer.i18n import joined, say
from transformer.model.anatomy import anatomy

if TYPE_CHECKING:
    from transformer.text.tokenizer import AnyTokenizer

HOW_TO_READ_COSINE = say(
    "Each bar shows the cosine cos = a·b / (‖a‖‖b‖) between one token's vector and the chosen token's vector: 1 "
    "means the same direction, 0 a right angle. Click a bar to choose its token."
)
HOW_TO_READ_DISTANCE = say(
    "Each bar shows the distance ‖a − b‖ between one token's vector and the chosen token's vector. The shorter the "
    "bar, the nearer the token. Click a bar to choose its token."
)
NEIGHBOURS: Final = 10  # pieces that are listed as nearest
MOST_MAPPED: Final = 60  # different pieces of the sentence


@dataclass(frozen=True, eq=False)
class Book:
    """One table of embeddings."""

    key: tuple[str, str]  # says which table of which checkpoint it is
    colour: Colour  # of its side; a shared one has none
    values: np.ndarray  # [piece, d_model]; not to be written to
    norms: np.ndarray  # length of each row [piece]
    ordinary: np.ndarray  # which pieces are neither special nor unused, bool [piece]
    tokenizer: AnyTokenizer  # its pieces


@dataclass(frozen=True, eq=False)
class Mapped:
    """What the map shows: the ids, the given ones first; which of them brought in each neighbour; and the places."""

    ids: list[int]
    near: dict[int, list[int]]
    plane: Plane


@dataclass(frozen=True)
class ChosenPiece(RunScene):
    """What is looked at: the side, its table, the id of a piece."""

    side: Side
    book: Book
    token: int  # of the sentence
    typed: int | None  # a piece that was chosen otherwise, and goes before that token's

    @property
    def by(self) -> Measure:
        """What nearness is."""
        return self.run.view.of(InsideLook).nearness

    @property
    def id(self) -> int:
        """The piece."""
        return ids_of(self.run, self.side)[self.token] if self.typed is None else self.typed

    @property
    def piece(self) -> str:
        """The text of the piece."""
        return self.book.tokenizer.piece(self.id)

    @cached_property
    def nearest(self) -> Neighbours:
        """The nearest pieces of the chosen one; made once."""
        book, chosen, by = self.book, self.id, self.by
        near = partial(
            neighbours.nearest, book.values, book.norms, chosen, count=NEIGHBOURS, by=by, allowed=book.ordinary
        )
        key = ("neighbours", *book.key, chosen, by)
        return self.run.work.compute(key, near, nbytes=lambda found: 3 * found.ids.nbytes)

    @cached_property
    def kinds(self) -> dict[int, Origin]:
        """The pieces of the table that may be seen, each once, and where they are from; the chosen one first."""
        trace, config = self.run.trace, self.run.checkpoint.config
        n_given = 0 if anatomy(config).reads else len(trace.src_ids)  # a prompt, which the decoder reads
        source, target = list(trace.src_ids), list(trace.read_ids[n_given : self.run.visible.n_rows])
        if not config.shared_vocab:
            source, target = (source, []) if self.side == "source" else ([], target)
        kinds: dict[int, Origin] = {}
        for i in (self.id, *source, *target):
            where = (i in source, i in target)
            kinds[i] = "both" if all(where) else "source" if where[0] else "target" if where[1] else "typed"
        return kinds

    @property
    def shown(self) -> tuple[int, ...]:
        """Those that the map has room for."""
        return tuple(self.kinds)[:MOST_MAPPED]

    @cached_property
    def mapped(self) -> Mapped:
        """The map of those with their neighbours; made once."""
        book, ids, chosen, by = self.book, self.shown, self.id, self.by

        def work() -> Mapped:
            vectors, count, ordinary = book.values, per_piece(len(ids)), book.ordinary
            found = neighbours.neighbourhoods(vectors, book.norms, ids, count=NEIGHBOURS, by=by, allowed=ordinary)
            near: dict[int, list[int]] = {}
            for i, others in zip(ids, found, strict=True):
                for other in others[: None if i == chosen else count].tolist():
                    if other not in ids:
                        near.setdefault(other, []).append(i)
            everyone = [*ids, *near]
            return Mapped(everyone, near, neighbours.plane(vectors[everyone], unit=by == "cosine"))

        key = ("piece_map", *book.key, ids, chosen, by)
        return self.run.work.compute(key, work, nbytes=lambda found: 200 * len(found.ids))


def per_piece(n_pieces: int) -> int:
    """How many neighbours each piece brings into the map: fewer, the more pieces there are."""
    return 3 if n_pieces <= 20 else 2 if n_pieces <= 40 else 1


def ids_of(run: ViewedRun, side: Side) -> tuple[int, ...]:
    """The pieces of a side that may be seen."""
    return tuple(run.trace.src_ids if side == "source" else run.trace.read_ids[: run.visible.n_rows])


def open_piece(run: ViewedRun) -> ChosenPiece:
    """The selected piece: one that was typed or clicked if it is of this table, else a token's."""
    side = side_of(run)
    book = _open_book(run, side)
    asked, own = (run.view.key, 0) if side == "source" else (run.view.query, run.visible.row)
    token = min(own if asked is None else asked, len(ids_of(run, side)) - 1)  # of the output what the step reads
    table, _, piece = run.view.of(InsideLook).piece.partition(".")
    fits = table == book.key[1] and piece.isascii() and piece.isdigit() and int(piece) < len(book.values)
    return ChosenPiece(run, side, book, token, int(piece) if fits else None)


def _open_book(run: ViewedRun, side: Side) -> Book:
    checkpoint = run.checkpoint
    model, shared = checkpoint.model, checkpoint.config.shared_vocab
    table = (model.src_table if side == "source" else model.target_table).float().numpy(force=True)
    tokenizer = checkpoint.src_tokenizer if side == "source" else checkpoint.tgt_tokenizer
    key = (checkpoint.content_hash, "shared" if shared else side)
    norms, ordinary = run.work.compute(
        ("embedding_table", *key),
        lambda: (neighbours.row_norms(table), np.array([not tokenizer.is_special(i) for i in range(tokenizer.size)])),
        nbytes=lambda found: found[0].nbytes + found[1].nbytes,
    )
    return Book(key, "neutral" if shared else side, table, norms, ordinary, tokenizer)


PIECES = INSIDE.part("pieces", open_piece)


@PIECES.picture("piece_neighbours", say("The nearest tokens"))
def bars(o: ChosenPiece) -> Plot | None:
    """The nearest pieces of the chosen one; a click means a piece. None where nothing is near."""
    found, name = o.nearest, o.book.tokenizer.piece
    if not len(found.ids):
        return None
    pieces = [name(i) for i in found.ids.tolist()]
    both = [Numbers(say("cosine"), found.cosine, ".4f"), Numbers(say("distance"), found.distance, ".4f")]
    drawn, other = both if o.by == "cosine" else reversed(both)
    values = np.nan_to_num(drawn.values)
    chart = bars_of(
        say("Nearest to {piece}", piece=o.piece),
        Axis(say("Token"), pieces, o.book.colour, found.ids.tolist(), counted=False),
        drawn,
        other,
        Numbers(say("id"), found.ids, ".0f"),
        ends=lambda i: f"{drawn.values[i]:.3f}",
    )
    most = 1.0 if o.by == "cosine" else float(values.max()) or 1.0
    layout = chart["spec"]["layout"]
    layout["height"] = max(layout["height"], 440)  # beside the map, with what is said of the piece under it
    layout["xaxis"]["range"] = [1.2 * min(0.0, float(values.min())), 1.18 * most]
    alt = say(
        "The {n} tokens whose vectors are nearest to the vector of {piece}, starting with {first}.",
        n=len(pieces),
        piece=o.piece,
        first=pieces[0],
    )
    clicked, said = place_below(len(o.book.norms)), Captions(below=what_it_is(o))
    read = HOW_TO_READ_COSINE if o.by == "cosine" else HOW_TO_READ_DISTANCE
    return Plot(spec=chart["spec"], alt=alt, how_to_read=read, of_sentence=False, clicked=clicked, said=said)


def what_it_is(o: ChosenPiece) -> str:
    """Which table is looked at, and how long the chosen vector is among the others."""
    book, table = o.book, _table(o)
    ordinary, length = book.norms[book.ordinary], float(book.norms[o.id])
    if not ordinary.size:
        return joined(" ", [*table, say("This table has only special tokens.")])
    said = [
        *table,
        say("The vector of {piece} has length {length:.3f}, longer than {share:.0%} of all vectors; the median "
            "length is {median:.3f}.", piece=o.piece, length=length, share=float((ordinary < length).mean()),
            median=float(np.median(ordinary))),
        say("The {n:,} special and unused tokens are not listed among the neighbours.",
            n=len(book.norms) - int(book.ordinary.sum())),
    ]  # fmt: skip
    return joined(" ", said)


def _table(o: ChosenPiece) -> list[str]:
    """Which table it is, and whether the output layer uses the same one."""
    config, parts = o.run.checkpoint.config, anatomy(o.run.checkpoint.config)
    rows, width = o.book.values.shape
    if not (parts.reads and parts.writes):
        said = say("This model has one embedding table of {rows:,} tokens × {width:,} numbers.", rows=rows, width=width)
    elif config.shared_vocab:
        said = say(
            "Source and target share one embedding table of {rows:,} tokens × {width:,} numbers.",
            rows=rows,
            width=width,
        )
    else:
        said = say("This side has its own embedding table of {rows:,} tokens × {width:,} numbers.", rows=rows,
                   width=width)  # fmt: skip
    tied = parts.writes and config.tie_output and (config.shared_vocab or o.side == "target")
    return [said, say("The output layer uses the same table.")] if tied else [said]


@PIECES.picture("piece_map", say("The sentence's tokens and their neighbours"))
def piece_map(o: ChosenPiece) -> Plot:
    """The pieces of the sentence with their neighbours; a click means a piece."""
    found, kinds, name, shown = o.mapped, o.kinds, o.book.tokenizer.piece, o.shown
    points = []
    for i, (x, y) in zip(found.ids, found.plane.points.tolist(), strict=True):
        near = ", ".join(map(name, found.near.get(i, [])[:3]))
        points.append(MapPoint(name(i), i, kinds[i] if i in shown else "neighbour", x, y, near))
    note = ""
    if len(kinds) > len(shown):
        note = say("{n} of the sentence's {count} different tokens", n=len(shown), count=len(kinds))
    spec = piece_map_spec(points, shares=found.plane.shares, chosen=o.id, note=note, title=piece_map.title)
    counts = [
        say("{n} {where}", n=sum(point.kind == kind for point in points), where=where)
        for kind, where in KIND_NAMES.items()
    ]
    alt = say("{n} tokens plotted by their vectors: {counts}.", n=len(points), counts=joined(", ", counts))
    return Plot(spec=spec, alt=alt, clicked=place_below(len(o.book.norms)), said=Captions(below=_of_map(o), pale=True))


def _of_map(o: ChosenPiece) -> str:
    """What the map cannot show, and whose neighbours it has."""
    said = [
        say("Together, the two axes capture {share:.0%} of the variance of these {n} vectors.",
            share=sum(o.mapped.plane.shares), n=len(o.mapped.ids)),
        say("Each token of the sentence is shown with its {n} nearest neighbours, and the chosen token with its "
            "{most} nearest.",
            n=per_piece(len(o.shown)), most=NEIGHBOURS),
    ]  # fmt: skip
    if o.by == "cosine":
        said += [say("All vectors were scaled to length 1 before plotting.")]
    return joined(" ", said)
