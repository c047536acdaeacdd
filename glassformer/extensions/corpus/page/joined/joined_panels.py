"""The part Queries and keys: a head's vectors over many lines, what is selected among them, and the layer's heads."""

from collections.abc import Sequence
from typing import Any, Final

import pandas as pd

from glassformer.extensions.corpus.corpus_look import CorpusLook, Lit, PointsBy
from glassformer.extensions.corpus.library.joined import Tokens
from glassformer.extensions.corpus.library.queries import Place
from glassformer.extensions.corpus.page import asking, hits
from glassformer.extensions.corpus.page.corpus_pictures import Scene
from glassformer.extensions.corpus.page.joined.joined_pictures import (
    N_NEAR,
    Layer,
    clicked_on,
    heads,
    points,
    spot_text,
)
from glassformer.extensions.corpus.page.opened import OpenCorpus, card
from glassformer.runs.show import show
from glassformer.shared import choices, drawing
from glassformer.shared.door import here, st
from glassformer.state import session
from glassformer.state.fields import LONGEST_NAME
from glassformer.state.view import MAIN
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import joined, say, say_n

TABLE, OPEN, CSV, CLEAR = "corpus_tokens", "corpus_tokens_open", "corpus_tokens_csv", "corpus_tokens_clear"
_BY: Final[dict[PointsBy, str]] = {
    "side": say("Colour: query or key"),
    "place": say("Colour: place in the line"),
    "group": say("Colour: kind of piece"),
}
_LIT: Final[dict[Lit, str]] = {
    "piece": say("Select: same piece"),
    "line": say("Select: same line"),
    "near": say("Select: {n} nearest", n=N_NEAR),
    "token": say("Select: this token"),
}
_MOST_LISTED: Final = 200  # tokens; the file has all
_HEIGHT: Final = 320  # pixels
_MOST_WITHOUT_SCROLLING: Final = 8  # tokens
_BESIDE: Final = 6  # pieces on each side of one


def draw(corpus: OpenCorpus) -> None:
    """Draw the part. Errors are those of `folder.check`."""
    run, scene = corpus.run, corpus.scene
    _controls(scene)
    if not run.with_vectors:
        st.info(say("This corpus run kept no queries and keys. To keep them, run it with --vectors 200."))
        return
    layer, head = scene.head
    with st.spinner(say("Reading queries and keys…")):
        found = asking.joined_heads(run, scene.kind, layer + 1, scene.size(scene.kind)[1])
    if head not in found:
        st.info(say("This corpus run kept no queries and keys of this head."), icon=":material/info:")
        return
    whose = corpus.whose()
    layer_ = Layer(scene.kind, layer, head, found, _special(whose), scene.view.of(CorpusLook))
    show(points, layer_)
    _selected(corpus, layer_, whose)
    show(heads, layer_)


def _special(whose: tuple[str, Checkpoint] | None) -> frozenset[str]:
    """The pieces that stand for no text; none known where the checkpoint is not here."""
    tokenizers = () if whose is None else (whose[1].src_tokenizer, whose[1].tgt_tokenizer)
    return frozenset(of.piece(i) for of in tokenizers for i in range(of.size) if of.is_special(i))


def _controls(scene: Scene) -> None:
    """Draw what colours mean and what is selected, in a row."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="corpus_joined_controls"):
        choices.menu(choices.field(MAIN, "points_by"), say("Colour"), _BY, bare=True, width=190)
        choices.menu(choices.field(MAIN, "lit"), say("Select"), _LIT, bare=True, width=180)
        kept = choices.field(MAIN, "lit_piece", forgets=("spot", "line"))
        help = say("All tokens whose piece is this text, in capitals or not, with a space before it or not.")
        choices.typed(kept, say("Select a piece by its text"), most=LONGEST_NAME, width=200, help=help)
        look = scene.view.of(CorpusLook)
        if look.spot or look.lit_piece:
            st.button(say("Select nothing"), key=CLEAR, icon=":material/deselect:", on_click=_let_go)


def _let_go() -> None:
    """Callback: select nothing."""
    session.replace(MAIN, spot="", lit_piece="", line=None)


# ------------------------------------------------------------------------------------------------ what is selected


def _selected(corpus: OpenCorpus, layer: Layer, whose: tuple[str, Checkpoint] | None) -> None:
    """Draw the tokens that are selected, and the way to the one that was clicked."""
    look, tokens, found = layer.look, layer.tokens, layer.selected
    if layer.lit is None:
        if look.spot:
            st.caption(say("The token that the address names is not among those drawn."))
        return
    if not found:
        st.caption(drawing.plain(say("No token here is “{piece}”.", piece=look.lit_piece)))
        return
    if layer.spot is not None and not look.lit_piece:
        card(corpus, at_head=False, place=_place(corpus, layer, layer.spot))
    listed = found[:_MOST_LISTED]
    names = [spot_text(tokens, token) for token in listed]
    opens: list[str] = [
        say("● {n}", n=int(tokens.line[token])) if token == layer.spot else str(tokens.line[token])
        for token in listed
    ]
    button = drawing.opening(OPEN, say("Line"), names, _click, type="tertiary", width=62)
    cells, text = _cells(layer, listed), st.column_config.TextColumn
    looks = {
        "side": text(here(say("Side")), width=80),
        "token": st.column_config.NumberColumn(here(say("Token")), format="%d", width=70),
        "piece": text(here(say("Piece")), width=110),
        "around": text(here(say("In its line")), width=420),
    }
    alt = say("The selected tokens: line, side, place, piece, and the pieces around it.")
    hits.drawn(TABLE, here(cells), opens, button, looks, alt, most=_MOST_WITHOUT_SCROLLING, height=_HEIGHT)
    count = say_n("{n:,} token is selected.", "{n:,} tokens are selected.", len(found))
    first = say("The first {n} are listed; the file has all.", n=_MOST_LISTED)
    how = say("Click a number to select that token and to see the way to its line.")
    st.caption(joined(" ", [count, *[first] * (len(found) > _MOST_LISTED), how]))
    title = say("selected queries and keys")
    file = {"line": tokens.line[found], **_cells(layer, found)}
    drawing.csv_button(pd.DataFrame(here(file)), key=CSV, title=title, of=hits.origin(corpus.run, title))


def _click(name: str) -> None:
    """Callback: select a token by its name."""
    session.replace(MAIN, **clicked_on(name))


def _cells(layer: Layer, tokens: Sequence[int]) -> dict[str, Sequence[Any]]:
    """The columns of a table of tokens."""
    of = layer.tokens
    return {
        "side": [say("query") if of.is_query[token] else say("key") for token in tokens],
        "token": [int(of.place[token]) + 1 for token in tokens],
        "piece": [of.pieces[token] for token in tokens],
        "around": [_around(of, token) for token in tokens],
    }


def _around(of: Tokens, token: int) -> str:
    """A piece between those beside it, in brackets; tokens of a line and side stand in a row."""
    low, high = max(token - _BESIDE, 0), token + _BESIDE + 1
    mine = [
        n
        for n in range(low, min(high, len(of.line)))
        if of.line[n] == of.line[token] and of.is_query[n] == of.is_query[token]
    ]
    return " ".join(f"[{of.pieces[n]}]" if n == token else of.pieces[n] for n in mine)


def _place(corpus: OpenCorpus, layer: Layer, token: int) -> Place:
    """Where the Attention page shows a token: its row or its column, at its step."""
    of, place = layer.tokens, int(layer.tokens.place[token])
    is_query = bool(of.is_query[token])
    query, key = (place, None) if is_query else (None, place)
    found = corpus.line
    step = None
    if layer.kind == "decoder" or (layer.kind == "cross" and is_query):
        n_prompt = 1 if "cross" in corpus.scene.kinds or found is None else found.sentence["n_source"] or 1
        step = max(place - n_prompt + 1, 0)  # rows of a prompt come before the first step
    return Place(layer.kind, layer.layer + 1, layer.head + 1, query, key, step, None, None, None)
