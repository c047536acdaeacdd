"""The part Queries and keys: points of a head and of its layer's heads, tokens selected by a click, their table.

The selection is a set of tokens, the same in every head: all of the clicked token's piece or line, or those nearest to
it in the selected head.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from glassformer.extensions.corpus import corpora, open_corpus_run
from glassformer.extensions.corpus.charts import (
    HOW_TO_READ,
    HOW_TO_READ_HEADS,
    Cloud,
    Group,
    joined_heads_spec,
    joined_spec,
)
from glassformer.extensions.corpus.corpus_look import CorpusLook, Lit, PointsBy
from glassformer.extensions.corpus.corpus_pictures import PARTS, CorpusScene
from glassformer.extensions.corpus.library.joint_space import JointSpace, Tokens, nearest
from glassformer.extensions.corpus.library.queries import PeakPosition
from glassformer.extensions.corpus.open_corpus_run import OpenCorpus, card
from glassformer.extensions.sentences.line_table import opening_rows
from glassformer.runs.map_axes import head_of_kind
from glassformer.runs.picture import Picture, Plot
from glassformer.runs.show import show
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import here, st
from glassformer.state import session
from glassformer.state.fields import LONGEST_NAME
from glassformer.state.view import MAIN, Click, Slot, place_of
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import joined, say, say_n
from transformer.i18n.sentence import written
from transformer.model.anatomy import Kind
from transformer.text.tokenizer import SPACE_MARK

STRONG, WEAK = -0.9, -0.6  # correlations up to which distance accounts for most of the score, or for a third
N_NEAR: Final = 20


@dataclass(frozen=True, eq=False)
class Layer:
    """The queries and keys of the heads of a layer, by the heads' places from 0; all of the same tokens."""

    kind: Kind
    layer: int  # from 0
    head: int  # the selected one, from 0
    heads: Mapping[int, JointSpace]
    special: frozenset[str]  # the pieces that stand for no text
    look: CorpusLook
    slot: Slot = MAIN

    @property
    def own(self) -> JointSpace:
        """Those of the selected head."""
        return self.heads[self.head]

    @property
    def tokens(self) -> Tokens:
        """Those of all heads, but for their vectors."""
        return self.own.tokens

    @cached_property
    def spot(self) -> int | None:
        """The token that was clicked, by its place among all; None for one that is not drawn."""
        line, side, place = spot_of(self.look.spot) or (0, "", 0)
        tokens = self.tokens
        found = (tokens.line == line) & (tokens.place == place - 1) & (tokens.is_query == (side == "query"))
        return int(np.flatnonzero(found)[0]) if found.any() else None

    @cached_property
    def lit(self) -> np.ndarray | None:
        """Which tokens are selected [N]; None if nothing is."""
        tokens, spot, how = self.tokens, self.spot, self.look.lit
        if self.look.lit_piece:
            asked = bare(self.look.lit_piece)
            return np.array([bare(piece) == asked for piece in tokens.pieces])
        if spot is None:
            return None
        lit = np.zeros(len(tokens.line), bool)
        if how == "near":
            lit[nearest(self.own, spot, N_NEAR)] = True
        elif how == "piece":
            lit |= tokens.pieces == tokens.pieces[spot]
        elif how == "line":
            lit |= tokens.line == tokens.line[spot]
        lit[spot] = True
        return lit

    @cached_property
    def selected(self) -> list[int]:
        """The places of those tokens, the clicked one first, then in their order, or the nearest first."""
        if self.lit is None:
            return []
        found = np.flatnonzero(self.lit).tolist()
        if self.look.lit == "near" and self.spot is not None and not self.look.lit_piece:
            return [self.spot, *nearest(self.own, self.spot, N_NEAR).tolist()]
        return sorted(found, key=lambda token: token != self.spot)

    def cloud(self, head: int) -> Cloud:
        """A head's tokens as they are drawn."""
        of = self.heads[head]
        tokens, spot = of.tokens, None if self.look.lit_piece else self.spot
        return Cloud(
            of.plane.points, tokens.is_query, tokens.pieces.tolist(), tokens.line, tokens.place + 1, self.lit, spot
        )


def spot_of(text: str) -> tuple[int, str, int] | None:
    """Line, side and place of a token as the view has it; None for anything else."""
    parts = text.split(".")
    if len(parts) != 3 or parts[1] not in ("query", "key") or not (parts[0].isdecimal() and parts[2].isdecimal()):
        return None
    return int(parts[0]), parts[1], int(parts[2])


def spot_text(tokens: Tokens, token: int) -> str:
    """The same as text."""
    side = "query" if tokens.is_query[token] else "key"
    return f"{tokens.line[token]}.{side}.{tokens.place[token] + 1}"


def clicked_on(name: str) -> dict[str, Any]:
    """What is looked at when a token was clicked, by its name as of `spot_text`: it, and its line."""
    return {"spot": name, "lit_piece": "", "line": int(name.split(".")[0]) - 1}


def bare(piece: str) -> str:
    """A piece without its mark for a space and without capitals."""
    return piece.replace(SPACE_MARK, " ").strip().casefold()


def group_of(piece: str, special: frozenset[str]) -> Group:
    """What kind of piece it is: punctuation has no characters but those of the Unicode categories P and S."""
    if piece in special:
        return "special"
    text = bare(piece)
    return "punctuation" if text and all(unicodedata.category(c)[0] in "PS" for c in text) else "other"


# ------------------------------------------------------------------------------------------------ pictures


def _points(scene: Layer) -> Plot:
    """The selected head; a click selects a token."""
    own, tokens, look = scene.own, scene.tokens, scene.look
    n, n_lines = len(tokens.line), len(np.unique(tokens.line))
    count = say_n("{n:,} token", "{n:,} tokens", n)
    lines = say_n("{n:,} line", "{n:,} lines", n_lines)
    selected = [say("{n:,} selected", n=int(scene.lit.sum()))] if scene.lit is not None else []
    spec = joined_spec(
        scene.cloud(scene.head),
        shares=own.plane.shares,
        title=say("{head}: queries and keys", head=head_of_kind(scene.kind, scene.layer, scene.head)),
        note=joined("; ", [say("{tokens} of {lines}", tokens=count, lines=lines), *selected]),
        by=look.points_by,
        groups=[group_of(piece, scene.special) for piece in tokens.pieces] if look.points_by == "group" else (),
    )
    alt = say(
        "The queries and keys of {head} on {lines}: {n:,} points on two axes, which hold {share:.0%} of the "
        "variance. The table that can be saved has every token.",
        head=head_of_kind(scene.kind, scene.layer, scene.head),
        lines=lines,
        n=n,
        share=sum(own.plane.shares),
    )
    read = joined(" ", [HOW_TO_READ, scaling(own)])
    return Plot(
        spec=spec, alt=alt, how_to_read=read, fit=True, of_sentence=False, clicked=partial(_clicked, _names(tokens))
    )


def scaling(own: JointSpace) -> str:
    """Why near should mean a large score, and how far it does here."""
    why = say(
        "Keys were moved so that both sides have the same mean, which softmax ignores. Queries were multiplied by "
        "c = {c:.2f} and keys by 1 / c, which leaves every q·k unchanged; c makes small distances go with large "
        "scores as far as possible.",
        c=own.scale,
    )
    if own.correlation is None:
        return why
    how = say(
        "Over all pairs of a query and a key in one line, the score q·(k − mean key) and the squared distance have "
        "the correlation r = {r}, so distance accounts for r² = {share:.0%} of the differences between scores.",
        r=written(f"{own.correlation:.2f}"),
        share=own.correlation**2,
    )
    if own.correlation <= STRONG:
        means = say("In this head, a large score goes with a small distance.")
    elif own.correlation <= WEAK:
        means = say("In this head, a large score often goes with a small distance, but not always.")
    else:
        means = say("In this head, distance says little about the score.")
    return joined(" ", [why, how, means])


def _names(tokens: Tokens) -> list[str]:
    return [spot_text(tokens, token) for token in range(len(tokens.line))]


def _clicked(names: Sequence[str], click: Click) -> Mapping[str, Any] | None:
    place = place_of(click)
    return None if place is None or place >= len(names) else clicked_on(names[place])


points: Final = Picture(PARTS["joined"], "corpus_joined", say("Queries and keys of a head over a corpus"), _points)


def _heads(scene: Layer) -> Plot | None:
    """All heads of the layer; a click opens one and selects a token."""
    if len(scene.heads) < 2:
        return None
    return Plot(
        spec=joined_heads_spec(
            {head: scene.cloud(head) for head in scene.heads},
            chosen=scene.head,
            title=say("All heads of layer {layer}: the same tokens", layer=scene.layer + 1),
        ),
        alt=say(
            "The same queries and keys in each of the {n} heads of layer {layer}, one small chart per head.",
            n=len(scene.heads),
            layer=scene.layer + 1,
        ),
        how_to_read=HOW_TO_READ_HEADS,
        of_sentence=False,
        clicked=partial(_head_clicked, _names(scene.tokens), list(scene.heads)),
    )


def _head_clicked(names: Sequence[str], heads: Sequence[int], click: Click) -> Mapping[str, Any] | None:
    match click.customdata:
        case [int(head), int(token)] if head in heads and 0 <= token < len(names):
            return {"head": head, **clicked_on(names[token])}
    return None


heads: Final = Picture(PARTS["joined"], "corpus_joined_heads", say("Queries and keys of all heads of a layer"), _heads)


TABLE, OPEN, CSV, CLEAR = "corpus_tokens", "corpus_tokens_open", "corpus_tokens_csv", "corpus_tokens_clear"
_BY: Final[dict[PointsBy, str]] = {
    "side": say("Colour: query or key"),
    "place": say("Colour: place in the line"),
    "group": say("Colour: kind of token"),
}
_LIT: Final[dict[Lit, str]] = {
    "piece": say("Select: same token"),
    "line": say("Select: same line"),
    "near": say("Select: {n} nearest", n=N_NEAR),
    "token": say("Select: this token"),
}
_MOST_LISTED: Final = 200  # tokens; the file has all
_HEIGHT: Final = 320  # pixels
_MOST_TOKENS: Final = 8  # without scrolling
_BESIDE: Final = 6  # pieces on each side of one


def draw(corpus: OpenCorpus) -> None:
    """Draw the part. Errors are those of `folder.check`."""
    run, scene = corpus.run, corpus.scene
    _controls(scene)
    (layer, head), found = scene.head, dict[int, JointSpace]()
    if run.with_vectors:
        with st.spinner(open_corpus_run.READING):
            found |= corpora.joined_heads(run, scene.kind, layer + 1, scene.size(scene.kind)[1])
    if head not in found:
        st.info(say("This corpus run kept no queries and keys. To keep them, run it with --vectors 200."))
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


def _controls(scene: CorpusScene) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="corpus_joined_controls"):
        controls.menu(controls.field(MAIN, "points_by"), say("Colour"), _BY, bare=True, width=190)
        controls.menu(controls.field(MAIN, "lit"), say("Select"), _LIT, bare=True, width=180)
        kept = controls.field(MAIN, "lit_piece", forgets=("spot", "line"))
        help = say("All tokens whose token is this text, in capitals or not, with a space before it or not.")
        controls.typed(kept, say("Select a token by its text"), most=LONGEST_NAME, width=200, help=help)
        look = scene.view.of(CorpusLook)
        if look.spot or look.lit_piece:
            nothing = partial(session.replace, MAIN, spot="", lit_piece="", line=None)
            st.button(say("Select nothing"), key=CLEAR, icon=":material/deselect:", on_click=nothing)


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
        say("● {n}", n=int(tokens.line[token])) if token == layer.spot else str(tokens.line[token]) for token in listed
    ]
    button = drawing.opening(
        OPEN, say("Line"), names, lambda name: session.replace(MAIN, **clicked_on(name)), type="tertiary", width=62
    )
    cells, text = _cells(tokens, listed), st.column_config.TextColumn
    looks = {
        "side": text(here(say("Side")), width=80),
        "token": st.column_config.NumberColumn(here(say("Token")), format="%d", width=70),
        "piece": text(here(say("Token")), width=110),
        "around": text(here(say("In its line")), width=420),
    }
    title = say("selected queries and keys")
    opening_rows(TABLE, cells, looks, opens=opens, button=button, alt=title, most=_MOST_TOKENS, height=_HEIGHT)
    count = say_n("{n:,} token is selected.", "{n:,} tokens are selected.", len(found))
    first = say("The first {n} are listed; the file has all.", n=_MOST_LISTED)
    how = say("Click a number to select that token and to see the way to its line.")
    st.caption(joined(" ", [count, *[first] * (len(found) > _MOST_LISTED), how]))
    file = {"line": tokens.line[found], **_cells(tokens, found)}
    open_corpus_run.csv_button(corpus.run, file, key=CSV, title=title)


def _cells(of: Tokens, tokens: Sequence[int]) -> dict[str, Sequence[Any]]:
    return {
        "side": [say("query") if of.is_query[token] else say("key") for token in tokens],
        "token": [int(of.place[token]) + 1 for token in tokens],
        "piece": [of.pieces[token] for token in tokens],
        "around": [_around(of, token) for token in tokens],
    }


def _around(of: Tokens, token: int) -> str:
    """A piece in brackets between its neighbours; tokens of a line and side are in one row."""
    low, high = max(token - _BESIDE, 0), token + _BESIDE + 1
    mine = [
        n
        for n in range(low, min(high, len(of.line)))
        if of.line[n] == of.line[token] and of.is_query[n] == of.is_query[token]
    ]
    return " ".join(f"[{of.pieces[n]}]" if n == token else of.pieces[n] for n in mine)


def _place(corpus: OpenCorpus, layer: Layer, token: int) -> PeakPosition:
    """Where the Attention page shows a token: its row or its column, at its step."""
    place, is_query = int(layer.tokens.place[token]), bool(layer.tokens.is_query[token])
    query, key = (place, None) if is_query else (None, place)
    found, step = corpus.line, None
    if layer.kind == "decoder" or (layer.kind == "cross" and is_query):
        n_prompt = 1 if "cross" in corpus.scene.kinds or found is None else found.sentence["n_source"] or 1
        step = max(place - n_prompt + 1, 0)  # rows of a prompt come before the first step
    return PeakPosition(layer.kind, layer.layer + 1, layer.head + 1, query, key, step, None, None, None)
