"""Part "Embeddings": choice of a token, its nearest neighbours, and a 2D map of the sentence.

A piece is selected among the tokens of the sentence, by typing it, or by a click on a neighbour; a click on a piece
of the sentence selects its token.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from glassformer.inside import embeddings_pictures as pictures
from glassformer.inside import inside_controls
from glassformer.inside.embeddings_pictures import Book, ChosenPiece, ids_of, open_piece
from glassformer.runs.error_boundary import attempt
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import show
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.view import Slot
from transformer.analysis.neighbours import Measure
from transformer.i18n import say
from transformer.text.tokenizer import SPACE_MARK, AnyTokenizer, normalise

TOKEN, TYPED, NOT_FOUND = "piece_token", "piece_typed", "piece_not_found"
MEASURES: Final[dict[Measure, str]] = {"cosine": say("Cosine"), "distance": say("Distance")}
MOST_PARTS: Final = 8  # pieces of a text that is not one


def draw(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    o = attempt(lambda: _choose(run, row))
    if o is None:
        return
    take = partial(choose, run.slot, o.book.key)
    near = partial(attempt, lambda: _nearest(o, take))
    drawing.beside(near, partial(attempt, lambda: show(pictures.piece_map, o, take=take)), widths=(2, 3))


def _choose(run: OpenRun, row: Any) -> ChosenPiece:
    slot = run.slot
    with row:
        kept = controls.field(slot, "side")
        inside_controls.choose_side(run, replace(kept, take=partial(_forgetting, slot, kept.take)))
        o = open_piece(run)
        _choose_token(o)
        _type(o)
        controls.choose(controls.field(slot, "nearness"), say("Nearness"), MEASURES, bare=True)
    drawing.notes([*filter(None, [_not_found(slot, o.book)])])
    return o


def _choose_token(o: ChosenPiece) -> None:
    kept, reads = controls.field(o.slot, "key" if o.side == "source" else "query", key=TOKEN), o.side == "source"
    value = o.token if reads or kept.value is not None else None
    kept = replace(kept, value=value, take=partial(_forgetting, o.slot, kept.take))
    pieces = controls.labelled([o.book.tokenizer.piece(i) for i in ids_of(o.run, o.side)])
    options: dict[int | None, str] = dict(pieces.items())
    if not reads:
        options = inside_controls.of_the_step(pieces)
    controls.menu(kept, say("Token of the sentence"), options, bare=True, width=140)


def _type(o: ChosenPiece) -> None:
    slot, normalisation = o.slot, o.run.checkpoint.config.normalisation
    tokenizer, table, key = o.book.tokenizer, o.book.key, f"{slot}{TYPED}"

    def take() -> None:
        typed = st.session_state[key].encode("utf-8", "replace").decode("utf-8").strip()
        text = normalise(typed, normalisation)
        found = find(text, tokenizer)
        said = (table, _not_one(text, tokenizer)) if found is None and text else None
        st.session_state[f"{slot}{NOT_FOUND}"] = said
        session.replace(slot, piece="" if found is None else f"{table[1]}.{found}")

    if o.typed is None and not _not_found(slot, o.book):
        st.session_state[key] = ""  # typed for another table
    st.text_input(
        say("Any other token"),
        key=key,
        placeholder=say("Any other token"),
        label_visibility="collapsed",
        max_chars=64,
        on_change=take,
        width=130,
        help=say(
            "Your text is looked up with ▁ in front, as the beginning of a word (▁ stands for a space). If the "
            "vocabulary does not have this token, the text is looked up as typed."
        ),
    )


def find(text: str, tokenizer: AnyTokenizer) -> int | None:
    """The piece that a person means: the one that begins a word if there is one, else exactly the text."""
    candidates = (SPACE_MARK + text, text) if text else ()
    return next((i for i in map(tokenizer.id_of, candidates) if i is not None), None)


def _not_one(text: str, tokenizer: AnyTokenizer) -> str:
    parts = tokenizer.encode(text).pieces
    listed = " ".join(parts[:MOST_PARTS]) + (" …" if len(parts) > MOST_PARTS else "")
    return say("“{text}” is not a single token of this vocabulary; it is split into {parts}.", text=text, parts=listed)


def _not_found(slot: Slot, book: Book) -> str:
    """The message for a typed text that is not a piece of this table."""
    table, said = st.session_state.get(f"{slot}{NOT_FOUND}") or (None, "")
    return said if table == book.key else ""


def choose(slot: Slot, table: tuple[str, str], piece: int) -> None:
    """Callback: look at a piece of a table (`Book.key`)."""
    _forget(slot)
    session.replace(slot, piece=f"{table[1]}.{piece}")


def _forget(slot: Slot) -> None:
    """Callback: the tokens of the sentence decide again."""
    session.replace(slot, piece="")
    st.session_state[f"{slot}{NOT_FOUND}"], st.session_state[f"{slot}{TYPED}"] = None, ""


def _forgetting(slot: Slot, take: Callable[[Any], None], value: object) -> None:
    """Callback: take a choice that a piece which was typed does not outlive."""
    _forget(slot)
    take(value)


def _nearest(o: ChosenPiece, take: Callable[[int], None]) -> None:
    if len(o.nearest.ids):
        show(pictures.bars, o, take=take)
        return
    said = say("Apart from this token, the table has only special or unused tokens.")
    if o.book.norms[o.id] == 0 and o.by == "cosine":
        said = say("This token's vector is 0: it has no direction, so there is no cosine. Choose Distance instead.")
    st.caption(said)
    st.markdown(drawing.plain(pictures.what_it_is(o)))
