"""The choices of the embeddings part: side, piece and measure, and the table that they lead to.

A piece is chosen among the tokens of the sentence, by typing it, or by a click on a neighbour; a click on one that is
in the sentence looks at its token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from charts.theme import Colour
from transformer.analysis import neighbours
from transformer.analysis.neighbours import Measure
from transformer.text.normalise import normalise
from transformer.text.tokenizer import SPACE_MARK, AnyTokenizer
from ui.inside import tokens
from ui.runs import loading
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing
from ui.shared.door import st
from ui.state import session
from ui.state.view import Side, Slot
from words import say

TOKEN: Final = "piece_token"
TYPED: Final = "piece_typed"
NOT_FOUND: Final = "piece_not_found"
MEASURES: Final[dict[Measure, str]] = {"cosine": say("Cosine"), "distance": say("Distance")}
MOST_TYPED: Final = 64  # characters
MOST_PARTS: Final = 8  # pieces of a text that is not one


@dataclass(frozen=True, eq=False)
class Book:
    """One table of embeddings."""

    key: tuple[str, str]  # says which table of which checkpoint it is
    colour: Colour  # of its side; a shared one has none
    values: np.ndarray  # [piece, d_model]; not to be written to
    norms: np.ndarray  # length of each row [piece]
    ordinary: np.ndarray  # which pieces are neither special nor unused, bool [piece]
    tokenizer: AnyTokenizer  # its pieces


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


def draw(run: OpenRun, row: Any) -> Chosen:
    """Draw the choices.

    Args:
        run: What is looked at.
        row: Where the controls of the page stand.

    Raises:
        BusyError: The model has too much to do.
    """
    slot = run.slot
    with row:
        kept = choices.field(slot, "side")
        side = tokens.choose_side(run, replace(kept, take=partial(_forgetting, slot, kept.take)))
        book = open_book(run, side)
        ids = run.trace.src_ids if side == "source" else run.trace.read_ids[: run.looking.n_rows]
        token = _choose_token(run, side, [book.tokenizer.piece(i) for i in ids])
        _type(slot, book, run.checkpoint.config.normalisation)
        by: Measure = choices.choose(choices.field(slot, "nearness"), say("Nearness"), MEASURES, bare=True)
    drawing.notes([said for said in [_not_found(slot, book)] if said])
    own = _own(slot, book)
    return Chosen(side, book, ids[token] if own is None else own, by)


def open_book(run: OpenRun, side: Side) -> Book:
    """The table of a side.

    Raises:
        BusyError: The model has too much to do.
    """
    checkpoint = run.checkpoint
    model, shared = checkpoint.model, checkpoint.config.shared_vocab
    table = (model.src_table if side == "source" else model.target_table).detach().float().numpy()
    tokenizer = checkpoint.src_tokenizer if side == "source" else checkpoint.tgt_tokenizer
    key = (checkpoint.content_hash, "shared" if shared else side)
    norms, ordinary = loading.runner().compute(
        ("embedding_table", *key),
        lambda: (neighbours.row_norms(table), np.array([not tokenizer.is_special(i) for i in range(tokenizer.size)])),
        nbytes=lambda found: found[0].nbytes + found[1].nbytes,
    )
    return Book(key, "neutral" if shared else side, table, norms, ordinary, tokenizer)


def choose(slot: Slot, table: tuple[str, str], piece: int) -> None:
    """Callback: look at a piece of a table (`Book.key`)."""
    _forget(slot)
    session.replace(slot, piece=f"{table[1]}.{piece}")


def find(text: str, tokenizer: AnyTokenizer) -> int | None:
    """The piece that a person means: the one that begins a word if there is one, else exactly the text."""
    candidates = (SPACE_MARK + text, text) if text else ()
    return next((i for i in map(tokenizer.id_of, candidates) if i is not None), None)


def _own(slot: Slot, book: Book) -> int | None:
    """The piece that was chosen from this table; None if none was, or from another one."""
    table, _, piece = session.view(slot).piece.partition(".")
    fits = table == book.key[1] and piece.isascii() and piece.isdigit() and int(piece) < len(book.values)
    return int(piece) if fits else None


def _not_found(slot: Slot, book: Book) -> str:
    """What to say of what was typed for this table and is no piece of it."""
    table, said = st.session_state.get(f"{slot}{NOT_FOUND}") or (None, "")
    return said if table == book.key else ""


def _forget(slot: Slot) -> None:
    """Callback: the tokens of the sentence decide again."""
    session.replace(slot, piece="")
    st.session_state[f"{slot}{NOT_FOUND}"], st.session_state[f"{slot}{TYPED}"] = None, ""


def _forgetting(slot: Slot, take: Callable[[Any], None], value: object) -> None:
    """Callback: take a choice that a piece which was typed does not outlive."""
    _forget(slot)
    take(value)


def _choose_token(run: OpenRun, side: Side, pieces: list[str]) -> int:
    kept = choices.field(run.slot, "key" if side == "source" else "query", key=TOKEN)
    fallback = 0 if side == "source" else run.looking.row  # of the output, what the current step reads
    wanted = min(fallback if kept.value is None else kept.value, len(pieces) - 1)
    kept = replace(kept, value=wanted, take=partial(_forgetting, run.slot, kept.take))
    return choices.menu(kept, say("Piece of the sentence"), choices.labelled(pieces), bare=True, width=140)


def _type(slot: Slot, book: Book, normalisation: Sequence[str]) -> None:
    tokenizer, table, key = book.tokenizer, book.key, f"{slot}{TYPED}"

    def take() -> None:
        typed = st.session_state[key].encode("utf-8", "replace").decode("utf-8").strip()
        text = normalise(typed, normalisation)
        found = find(text, tokenizer)
        said = (table, _not_one(text, tokenizer)) if found is None and text else None
        st.session_state[f"{slot}{NOT_FOUND}"] = said
        session.replace(slot, piece="" if found is None else f"{table[1]}.{found}")

    if _own(slot, book) is None and not _not_found(slot, book):
        st.session_state[key] = ""  # typed for another table
    st.text_input(
        say("Any other piece"),
        key=key,
        placeholder=say("Any other piece"),
        label_visibility="collapsed",
        max_chars=MOST_TYPED,
        on_change=take,
        width=130,
        help=say("As the beginning of a word if the vocabulary has it so (▁ stands for the space), else as typed."),
    )


def _not_one(text: str, tokenizer: AnyTokenizer) -> str:
    parts = tokenizer.encode(text).pieces
    listed = " ".join(parts[:MOST_PARTS]) + (" …" if len(parts) > MOST_PARTS else "")
    return say("“{text}” is not one piece of this vocabulary; it is split into {parts}.", text=text, parts=listed)
