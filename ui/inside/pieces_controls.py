"""The choices of the embeddings part: side, piece and measure, and the table that they lead to.

A piece is chosen among the tokens of the sentence, by typing it, or by a click on a neighbour; a click on one that is
in the sentence looks at its token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import streamlit as st

from charts.theme import Colour
from transformer.analysis import neighbours
from transformer.analysis.neighbours import Measure
from transformer.text.normalise import normalise
from transformer.text.tokenizer import SPACE_MARK, Tokenizer
from ui.runs import loading
from ui.runs.open_run import OpenRun
from ui.runs.sides import SIDES
from ui.shared import drawing
from ui.shared.choices import KEEP
from ui.state import keys
from ui.state.view import Side, View

TOKEN: Final = "piece_token"
TYPED: Final = "piece_typed"
NOT_FOUND: Final = "piece_not_found"
MEASURES: Final[dict[Measure, str]] = {"cosine": "Cosine", "distance": "Distance"}
MOST_TYPED: Final = 64  # characters
MOST_PARTS: Final = 8  # pieces of a text that is not one

_PLACES: Final[dict[Side, str]] = {"source": keys.KEY, "target": keys.QUERY}


@dataclass(frozen=True, eq=False)
class Book:
    """One table of embeddings.

    Attributes:
        key: Says which table of which checkpoint it is.
        colour: Of its side; a shared one has none.
        values: [piece, d_model]; not to be written to.
        norms: Length of each row [piece].
        ordinary: Which pieces are neither special nor unused, bool [piece].
        tokenizer: Its pieces.
    """

    key: tuple[str, str]
    colour: Colour
    values: np.ndarray
    norms: np.ndarray
    ordinary: np.ndarray
    tokenizer: Tokenizer


@dataclass(frozen=True)
class Chosen:
    """What is looked at: the side, its table, the id of a piece, and what nearness is."""

    side: Side
    book: Book
    id: int
    by: Measure

    @property
    def piece(self) -> str:
        """The text of the piece."""
        return self.book.tokenizer.piece(self.id)


def draw(run: OpenRun) -> Chosen:
    """Draw the choices.

    Raises:
        BusyError: The model has too much to do.
    """
    st.session_state.setdefault(keys.SIDE, View.side)
    st.session_state.setdefault(keys.NEARNESS, View.nearness)
    with st.container(horizontal=True, gap="medium", key="piece_controls"):
        side: Side = st.segmented_control(
            "Side", list(SIDES), key=keys.SIDE, format_func=SIDES.__getitem__, required=True, persist_state=KEEP,
            on_change=_forget,
        ) or View.side  # fmt: skip
        book = open_book(run, side)
        ids = run.trace.src_ids if side == "source" else run.trace.read_ids[: run.looking.n_rows]
        token = _choose_token(run, side, [book.tokenizer.piece(i) for i in ids])
        _type(book, run.checkpoint.config.normalisation)
        by: Measure = st.segmented_control(
            "Nearness", list(MEASURES), key=keys.NEARNESS, format_func=MEASURES.__getitem__, required=True,
            persist_state=KEEP,
        ) or "cosine"  # fmt: skip
    drawing.notes([said for said in [_not_found(book)] if said])
    own = _own(book)
    return Chosen(side, book, ids[token] if own is None else own, by)


def open_book(run: OpenRun, side: Side) -> Book:
    """The table of a side.

    Raises:
        BusyError: The model has too much to do.
    """
    checkpoint = run.checkpoint
    model, shared = checkpoint.model, checkpoint.config.shared_vocab
    table = (model.src_table if side == "source" else model.target_table).detach().numpy()
    tokenizer = checkpoint.src_tokenizer if side == "source" else checkpoint.tgt_tokenizer
    key = (checkpoint.content_hash, "shared" if shared else side)
    norms, ordinary = loading.runner().compute(
        ("embedding table", *key),
        lambda: (
            neighbours.row_norms(table),
            np.array([not tokenizer.is_special(i) for i in range(tokenizer.size)]),
        ),
        nbytes=lambda found: found[0].nbytes + found[1].nbytes,
    )
    return Book(key, "neutral" if shared else side, table, norms, ordinary, tokenizer)


def choose(table: tuple[str, str], piece: object, n_rows: int) -> None:
    """Callback: look at a piece of a table (`Book.key`), if it has one of this id."""
    if isinstance(piece, int) and not isinstance(piece, bool) and 0 <= piece < n_rows:
        _forget()
        st.session_state[keys.PIECE] = f"{table[1]}.{piece}"


def find(text: str, tokenizer: Tokenizer) -> int | None:
    """The piece that a person means: the one that begins a word if there is one, else exactly the text."""
    candidates = (SPACE_MARK + text, text) if text else ()
    return next((i for i in map(tokenizer.id_of, candidates) if i is not None), None)


def _own(book: Book) -> int | None:
    """The piece that was chosen from this table; None if none was, or from another one."""
    table, _, piece = str(st.session_state.get(keys.PIECE) or "").partition(".")
    fits = table == book.key[1] and piece.isascii() and piece.isdigit() and int(piece) < len(book.values)
    return int(piece) if fits else None


def _not_found(book: Book) -> str:
    """What to say of what was typed for this table and is no piece of it."""
    table, said = st.session_state.get(NOT_FOUND) or (None, "")
    return said if table == book.key else ""


def _forget() -> None:
    """Callback: the tokens of the sentence decide again."""
    st.session_state[keys.PIECE], st.session_state[NOT_FOUND], st.session_state[TYPED] = "", None, ""


def _choose_token(run: OpenRun, side: Side, pieces: list[str]) -> int:
    place, last = _PLACES[side], len(pieces) - 1
    wanted = run.view.key if side == "source" else run.view.query
    fallback = 0 if side == "source" else run.view.step  # of the output, what the current step reads
    st.session_state[TOKEN] = min(fallback if wanted is None else wanted, last)

    def follow() -> None:
        _forget()
        st.session_state[place] = st.session_state[TOKEN]

    chosen: int = st.selectbox(
        "Piece of the sentence",
        range(len(pieces)),
        key=TOKEN,
        format_func=lambda token: f"{token + 1}: {pieces[token]}" if token <= last else "",
        on_change=follow,
        width=200,
    )
    return chosen


def _type(book: Book, normalisation: Sequence[str]) -> None:
    tokenizer, table = book.tokenizer, book.key

    def take() -> None:
        typed = st.session_state[TYPED].encode("utf-8", "replace").decode("utf-8").strip()
        text = normalise(typed, normalisation)
        found = find(text, tokenizer)
        st.session_state[NOT_FOUND] = (table, _not_one(text, tokenizer)) if found is None and text else None
        st.session_state[keys.PIECE] = "" if found is None else f"{table[1]}.{found}"

    if _own(book) is None and not _not_found(book):
        st.session_state[TYPED] = ""  # typed for another table
    st.text_input(
        "Any other piece",
        key=TYPED,
        placeholder="Type it",
        max_chars=MOST_TYPED,
        on_change=take,
        width=160,
        help="As the beginning of a word if the vocabulary has it so (▁ stands for the space), else as typed.",
    )


def _not_one(text: str, tokenizer: Tokenizer) -> str:
    parts = tokenizer.encode(text).pieces
    listed = " ".join(parts[:MOST_PARTS]) + (" …" if len(parts) > MOST_PARTS else "")
    return f"“{text}” is not one piece of this vocabulary; it is split into {listed}."
